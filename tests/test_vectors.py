import json
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from judging import SCAN, plugin, run

from refssm.catalog import OPERATORS
from refssm.conformance.candidate import Candidate
from refssm.conformance.deviations import deviations
from refssm.conformance.found import Found
from refssm.conformance.honest import implementations
from refssm.conformance.plugin import operator_named
from refssm.conformance.vectors import making
from refssm.conformance.vectors.check import verdict_of
from refssm.conformance.vectors.document import checksum, few_bits, hexadecimal, numbers, text_of
from refssm.conformance.vectors.draw import shows
from refssm.conformance.vectors.reading import files, read
from refssm.conformance.worker import InProcess

FOLDER = Path(__file__).parent / "vectors"
FILES = sorted(FOLDER.glob("*.json"))
SCANS = FOLDER / "linear_scan.json"
DEFAULTS = {"seed": 0, "count": 24, "longest": 65}  # of `refssm vectors write`
of_each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
BUGS = {(d.op, d.name): d for d in deviations()}
HONEST = [h for h in implementations() if (FOLDER / f"{h.op}.json").is_file()]
# compiling a mirror takes longer than all of these tests: two stand for them
HONEST = [h for h in HONEST if h.name != "numba" or h.op in ("linear_scan", "cauchy_kernel")]


@pytest.fixture
def flint():
    return pytest.importorskip("flint", reason="vectors need python-flint: '.[flint]'")


def verdict(found, case):
    worker = InProcess([found])
    return verdict_of(Candidate(found.op, worker, worker.found[0]).judged_in(case.dtype), case)


@of_each_file
def test_a_file_is_written_again_bit_for_bit(path, flint):
    assert text_of(making.made(operator_named(path.stem), **DEFAULTS)) == path.read_text("utf-8")


def test_the_files_are_sound_and_small(capfd):
    code, out, err = run(capfd, "vectors", "lint", FOLDER)
    assert (code, err) == (0, "")
    assert out.count("ok ") == len(FILES) >= 10
    assert sum(path.stat().st_size for path in FILES) < 500_000


@of_each_file
def test_the_reference_is_right_by_the_stored_outputs(path):
    vectors = read(path)
    types = {case.dtype for case in vectors.cases}
    for case in vectors.cases:
        if vectors.op.constructor and case.dtype != max(types):
            continue  # the reference answers in double precision
        judged = verdict(Found(vectors.op, vectors.op.reference, None), case)
        assert judged.grade in "AB", (case.name, judged)


@pytest.mark.parametrize("honest", HONEST, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_no_honest_implementation_is_rejected(honest):
    from refssm.conformance.sweep import Declined

    if honest.absent:
        pytest.skip(f"needs {honest.needs}")
    judged = 0
    for case in read(FOLDER / f"{honest.op}.json").cases:
        try:
            assert verdict(honest.found(), case).ok, case.name
            judged += 1
        except Declined:
            continue
    assert judged or honest.only


@of_each_file
@pytest.mark.filterwarnings("ignore")
def test_every_case_shows_the_planted_bugs_that_it_names(path):
    vectors = read(path)
    for case in vectors.cases:
        for name in case.catches:
            assert shows(BUGS[vectors.op.name, name], case), (case.name, name)
    named = [name for case in vectors.cases for name in case.catches]
    assert len(set(named)) == len(named) > 20


def test_every_type_of_the_operator_has_a_case():
    types = {case.dtype for case in read(SCANS).cases}
    assert types == {"float32", "float64", "complex64", "complex128"}


def test_all_numbers_of_a_small_file_come_out_of_both_oracles_again(capfd, flint):
    code, out, _ = run(capfd, "vectors", "lint", "--thorough", FOLDER / "cauchy_kernel.json")
    assert code == 0
    assert "every number worked out again" in out


def test_a_last_digit_that_is_wrong_is_found_by_working_it_out(capfd, tmp_path, flint):
    document = json.loads((FOLDER / "hippo_legs.json").read_text("utf-8"))
    numbers_of = document["cases"][1]["outputs"]["B"]["float64"]
    right = float.fromhex(numbers_of[1])
    numbers_of[1] = hexadecimal(np.nextafter(right, 0.0))
    path = saved(tmp_path, document)
    assert run(capfd, "vectors", "lint", path)[0] == 0  # nothing in the file contradicts it
    code, _, err = run(capfd, "vectors", "lint", "--thorough", path)
    assert code == 4
    wanted = f"wanted {hexadecimal(right)}, came {numbers_of[1]}"
    assert f"cases[1].outputs.B.float64[1]: {wanted}" in err


def test_the_same_command_writes_the_same_bytes_and_another_seed_others(tmp_path, capfd, flint):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, seed in ((one, 0), (two, 1)):
        code, out, _ = run(
            capfd, "vectors", "write", folder, "--operator", "linear_step", "--seed", seed
        )
        assert (code, "show 18 of 18 planted bugs" in out) == (0, True)
    again = text_of(making.made(operator_named("linear_step"), **DEFAULTS))
    assert (one / "linear_step.json").read_bytes() == again.encode()
    assert (two / "linear_step.json").read_bytes() != again.encode()


def test_an_interrupt_leaves_whole_files_only(tmp_path, capfd, monkeypatch, flint):
    small, made = operator_named("linear_step"), making.made

    def interrupted(op, *rest):
        if op is not small:
            raise KeyboardInterrupt
        return made(op, *rest)

    monkeypatch.setattr(making, "made", interrupted)
    names = ["--operator", "linear_step", "--operator", "linear_scan"]
    assert run(capfd, "vectors", "write", tmp_path, *names)[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["linear_step.json"]
    assert read(tmp_path / "linear_step.json").op is small


def test_without_flint_writing_says_what_to_install(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(making, "find_spec", lambda name: None)
    for command in (["write", tmp_path / "new"], ["lint", "--thorough", SCANS]):
        code, _, err = run(capfd, "vectors", *command)
        assert (code, "pip install 'refssm[flint]'" in err) == (4, True)
    assert not (tmp_path / "new").exists()


def test_judging_and_doubting_need_no_flint(tmp_path, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)
    for name in [name for name in sys.modules if name.startswith("refssm.enclosure")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.chdir(tmp_path)
    path = plugin(tmp_path, SCAN)
    assert run(capfd, "vectors", "lint", SCANS)[0] == 0
    assert run(capfd, "vectors", "check", SCANS, path, "--in-process")[0] == 0


def test_an_operator_without_enclosure_has_no_vectors(tmp_path, capfd):
    pytest.importorskip("flint")
    code, _, err = run(capfd, "vectors", "write", tmp_path, "--operator", "nplr_legs")
    assert (code, "nplr_legs has no vectors" in err) == (4, True)
    assert not [*tmp_path.iterdir()]


def test_a_right_scan_passes_in_every_type(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capfd, "vectors", "check", FOLDER, plugin(tmp_path, SCAN))
    assert code == 0
    assert out.count("pass linear_scan/vectors[") == 4
    assert "4 checks: 4 pass" in out


def test_a_wrong_scan_fails_and_the_line_says_what_the_case_is_there_for(
    tmp_path, capfd, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    wrong = SCAN.replace("+ b[..., k, :]", "- b[..., k, :]")
    code, out, _ = run(capfd, "vectors", "check", SCANS, plugin(tmp_path, wrong))
    assert code == 1
    assert "FAIL linear_scan/vectors[float32]" in out
    assert "sign (b subtracted)" in out


def test_what_has_no_vectors_is_skipped_and_nothing_is_left_to_check(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = plugin(tmp_path, SCAN.replace("linear_scan", "linear_step").replace("a, b", "a, b, x"))
    code, out, _ = run(capfd, "vectors", "check", SCANS, path, "--in-process")
    assert (code, "no vectors of it" in out) == (5, True)


def test_an_implementation_that_raises_is_an_error_not_a_traceback(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = plugin(tmp_path, "def linear_scan(a, b):\n    raise OSError('no device')\n")
    code, out, _ = run(capfd, "vectors", "check", SCANS, path, "--json")
    results = json.loads(out)["results"]
    assert (code, {r["verdict"] for r in results}) == (1, {"error"})


def test_declared_types_alone_are_judged(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    declared = "from refssm.testing import implements\n\n@implements('linear_scan', dtypes=('{}',))"
    for dtype, code in (("float64", 0), ("bfloat16", 5)):
        text = SCAN.replace("def linear_scan", f"{declared.format(dtype)}\ndef linear_scan")
        got, out, _ = run(capfd, "vectors", "check", SCANS, plugin(tmp_path, text, f"{dtype}.py"))
        assert (got, "complex" in out.replace("vectors in float32", "")) == (code, code == 5)


def test_bounds_are_rounded_up_to_few_bits():
    k = np.array([1.0, 1.001, 3e-200, 0.1])
    up = few_bits(k, np.array([0.0, 0.0, 0.0, 5.0]))
    assert (up >= np.maximum(k, [0, 0, 0, 5.0])).all()
    assert (up[:3] <= k[:3] * (1 + 2.0**-7)).all()
    assert up[0] == 1.0
    assert up[3] == 5.0


def test_hexadecimal_numbers_are_short_and_exact():
    for x, text in ((-3.0, "-0x1.8p+1"), (0.0, "0x0p+0"), (-0.0, "-0x0p+0"), (0.1, None)):
        assert text in (hexadecimal(x), None)
        assert float.fromhex(hexadecimal(x)) == x
    assert numbers(np.array([1 + 2j], np.complex64)) == ["0x1p+0", "0x1p+1"]


def saved(folder, document):
    """A document with the checksum that belongs to it."""
    path = folder / "changed.json"
    path.write_text(json.dumps(document | {"sha256": checksum(document)}), "utf-8")
    return path


def changed(*keys, to):
    """Something inside the document replaced; `to` a value, a function, or del."""

    def change(document):
        inside = document
        for key in keys[:-1]:
            inside = inside[key]
        if to is del_:
            del inside[keys[-1]]
        else:
            inside[keys[-1]] = to(inside[keys[-1]]) if callable(to) else to

    return change


def del_():
    """Stands for leaving a key out."""


def twice(document):
    document["cases"].append(document["cases"][0] | {"name": "other"})


C0, B = ("cases", 0), ("cases", 0, "inputs", "b")
X = ("cases", 0, "outputs", "x_next")
MALFORMED = {
    "format": (changed("format", to="refssm-vectors/9"), "format: wanted 'refssm-vectors/1'"),
    "no_format": (changed("format", to=del_), "wanted the key 'format'"),
    "unknown_key": (changed("author", to="me"), "the key 'author' too"),
    "operator": (changed("operator", to="linear_scam"), 'came "linear_scam"'),
    "operator_null": (changed("operator", to=None), "operator: wanted a name"),
    "operator_list": (changed("operator", to=[1]), "operator: wanted a name"),
    "other_operator": (changed("operator", to="linear_scan"), "signature: wanted"),
    "signature": (changed("signature", to="(n)->(n)"), 'came "(n)->(n)"'),
    "seed": (changed("seed", to=-1), "seed: wanted a whole number"),
    "seed_true": (changed("seed", to=True), "seed: wanted a whole number"),
    "cases": (changed("cases", to={}), "cases: wanted a list"),
    "no_cases": (changed("cases", to=[]), "cases: wanted at least one"),
    "case": (changed(*C0, to=7), "cases[0]: wanted an object, came 7"),
    "no_name": (changed(*C0, "name", to=""), "cases[0].name: wanted a word"),
    "same_name": (changed("cases", 1, "name", to="float32-1"), "stands there twice"),
    "same_arguments": (twice, "the same arguments as cases[0]"),
    "dtype": (changed(*C0, "dtype", to="float8"), "cases[0].dtype: wanted one of float32"),
    "u": (changed(*C0, "u", to="0x1p-23"), "cases[0].u: wanted '0x1p-24'"),
    "allowed": (changed(*C0, "allowed", to=1e9), "cases[0].allowed: wanted 16"),
    "catches": (changed(*C0, "catches", to=["sign"]), "cases[0].catches: wanted"),
    "unknown_bug": (changed(*C0, "catches", to={"luck": "bad"}), "wanted a planted bug of"),
    "renamed_bug": (changed(*C0, "catches", "sign", to="other words"), "came 'other words'"),
    "parameters": (changed(*C0, "parameters", to={"l": 3}), "parameters: wanted no key"),
    "parameters_null": (changed(*C0, "parameters", to=None), "parameters: wanted an object"),
    "no_input": (changed(*B, to=del_), "inputs: wanted the key 'b'"),
    "kind": (changed(*B, "kind", to="quaternion"), "inputs.b.kind: wanted real"),
    "complex_in_float32": (changed(*B, "kind", to="complex"), "inputs.b.kind: wanted real"),
    "shape": (changed(*B, "shape", to="2x3"), "inputs.b.shape: wanted a list"),
    "shape_negative": (changed(*B, "shape", to=[-1]), "shape: wanted a whole number"),
    "shape_huge": (changed(*B, "shape", to=[10**9, 10**9]), "values: wanted 1000000000000000000"),
    "shape_other": (changed(*B, "shape", to=lambda s: s[::-1]), "cases[0].inputs: linear_step"),
    "too_few": (changed(*B, "values", to=lambda v: v[1:]), "inputs.b.values: wanted"),
    "decimal": (changed(*B, "values", 0, to="0.5"), "values[0]: wanted a hexadecimal number"),
    "number": (changed(*B, "values", 0, to=0.5), "values[0]: wanted a hexadecimal number"),
    "word_nan": (changed(*B, "values", 0, to="nan"), "values[0]: wanted a hexadecimal number"),
    "overflow": (changed(*B, "values", 0, to="0x1p+9999"), "a number of double precision"),
    "too_wide": (changed(*B, "values", 0, to="0x1.0000000001p+0"), "a number of float32"),
    "spelling": (changed(*B, "values", 0, to="0x1.80p+0"), "wanted the spelling 0x1.8p+0"),
    "flag": (changed(*B, "values", 0, to=True), "values[0]: wanted a hexadecimal number"),
    "no_output": (changed(*X, to=del_), "outputs: wanted the key 'x_next'"),
    "output_shape": (changed(*X, "shape", to=[1]), "outputs.x_next.shape: wanted"),
    "output_kind": (changed(*X, "kind", to="complex"), "outputs.x_next.kind: wanted 'real'"),
    "no_k0": (changed(*X, "k0", to=del_), "outputs.x_next: wanted the key 'k0'"),
    "k0_small": (changed(*X, "k0", 0, to="0x0p+0"), "k0[0]: wanted no less than |y|"),
    "k1_negative": (changed(*X, "k1", 0, to="-0x1p+0"), "k1[0]: wanted no less than |y|"),
    "rounded": (changed(*X, "float32", 0, to="0x1p+100"), "float32[0]: wanted"),
    "float64_missing": (changed(*X, "float64", to=del_), "wanted the key 'float64'"),
}


@pytest.fixture(scope="module")
def document():
    """A small file, as JSON."""
    pytest.importorskip("flint", reason="vectors need python-flint: '.[flint]'")
    return json.loads(text_of(making.made(operator_named("linear_step"), 0, 1, 3)))


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_file_is_one_sentence(kind, document, tmp_path, capfd):
    change, fragment = MALFORMED[kind]
    document = deepcopy(document)
    change(document)
    path = saved(tmp_path, document)
    code, out, err = run(capfd, "vectors", "lint", path)
    assert (code, out) == (4, "")
    assert err.startswith(f"refssm: {path}: ")
    assert fragment in err
    assert err.count("\n") == 1


TEXTS = {
    "empty": (b"", "wanted JSON"),
    "binary": (b"\x93NUMPY\xff\xfe", "UTF-8"),
    "half": (b'{"format": "refssm-vect', "wanted JSON"),
    "list": (b"[]", "the document: wanted an object"),
    "nan": (b'{"format": NaN}', "came NaN"),
    "deep": (b"[" * 200_000, "JSON"),
    "long_number": (b'{"format": ' + b"9" * 5000 + b"}", "JSON"),
    "twice": (b'{"format": 1, "format": 2}', "the key 'format' stands twice"),
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("command", ["lint", "check"])
def test_what_is_no_document_is_one_sentence(kind, command, tmp_path, capfd):
    text, fragment = TEXTS[kind]
    path = tmp_path / "bad.json"
    path.write_bytes(text)
    target = [plugin(tmp_path, SCAN)] * (command == "check")
    code, _, err = run(capfd, "vectors", command, path, *target)
    assert code == 4
    assert fragment in err
    assert err.startswith(f"refssm: {path}: ")


def test_a_changed_number_shows_by_the_checksum(document, tmp_path, capfd):
    document = deepcopy(document)
    document["seed"] = 5
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(document), "utf-8")
    code, _, err = run(capfd, "vectors", "lint", path)
    assert (code, "sha256: wanted" in err) == (4, True)


def test_one_bad_file_does_not_hide_the_others(tmp_path, capfd):
    (tmp_path / "bad.json").write_text("{}")
    code, out, err = run(capfd, "vectors", "lint", tmp_path, SCANS)
    assert (code, out.count("ok "), err.count("bad.json")) == (4, 1, 1)


@pytest.mark.parametrize("place", ["absent.json", "."])
def test_a_place_without_vectors_is_one_sentence(place, tmp_path, capfd):
    code, _, err = run(capfd, "vectors", "lint", tmp_path / place)
    assert code == 4
    assert "no such file" in err or "without a .json file" in err


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path, capfd, flint):
    (tmp_path / "file").write_text("")
    code, _, err = run(
        capfd, "vectors", "write", tmp_path / "file" / "in", "--operator", "linear_step"
    )
    assert (code, "Not a directory" in err) == (4, True)


def test_files_are_found_once_however_they_are_named():
    assert files([FOLDER, SCANS]) == FILES


def test_every_operator_that_may_have_vectors_is_counted():
    assert len(making.enclosed()) == sum("enclosure" not in op.lacks for op in OPERATORS)
