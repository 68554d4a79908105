import json
import sys
from pathlib import Path

import numpy as np
import pytest
from honest import implementations
from judging import SCAN, plugin, run

from refssm.catalog import OPERATORS
from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.planted import planted_bugs
from refssm.conformance.vectors import making
from refssm.conformance.vectors.check import verdict_of
from refssm.conformance.vectors.document import checksum, few_bits, hexadecimal, numbers, text_of
from refssm.conformance.vectors.draw import shows
from refssm.conformance.vectors.reading import files, read

FOLDER = Path(__file__).parents[2] / "vectors"
FILES = sorted(FOLDER.glob("*.json"))
SCANS = FOLDER / "linear_scan.json"
DEFAULTS = {"seed": 0, "count": 24, "longest": 65}  # the defaults of `refssm vectors write`
of_each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
BUGS = {(d.op, d.name): d for d in planted_bugs()}
HONEST = [h for h in implementations() if (FOLDER / f"{h.op}.json").is_file()]
# compiling all mirrors and importing torch lasts longer than these tests: two represent them
MIRRORS = ("cauchy_kernel-numba", "vandermonde_kernel-numba")
HONEST = [
    h for h in HONEST if h.name not in ("numba", "scipy_fft", "torch_fft") or str(h) in MIRRORS
]


@pytest.fixture
def flint():
    return pytest.importorskip("flint", reason="vectors need python-flint: '.[flint]'")


def verdict(found, case):
    worker = InProcess([found])
    return verdict_of(Candidate(found.op, worker, worker.found[0]).judged_in(case.dtype), case)


@pytest.mark.long
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
            continue  # the reference computes in double precision
        judged = verdict(Found(vectors.op, vectors.op.reference, None), case)
        assert judged.grade in "AB", (case.name, judged)


@pytest.mark.parametrize("honest", HONEST, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_no_honest_implementation_is_rejected(honest):
    from refssm.conformance.calling.one_call import Declined

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
    assert "every number computed again" in out


def test_a_last_digit_that_is_wrong_is_found_by_working_it_out(capfd, tmp_path, flint):
    document = json.loads((FOLDER / "hippo_legs.json").read_text("utf-8"))
    numbers_of = document["cases"][1]["outputs"]["B"]["float64"]
    right = float.fromhex(numbers_of[1])
    numbers_of[1] = hexadecimal(np.nextafter(right, 0.0))
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(document | {"sha256": checksum(document)}), "utf-8")
    assert run(capfd, "vectors", "lint", path)[0] == 0  # the file is consistent
    code, _, err = run(capfd, "vectors", "lint", "--thorough", path)
    assert code == 4
    wanted = f"wanted {hexadecimal(right)}, got {numbers_of[1]}"
    assert f"cases[1].outputs.B.float64[1]: {wanted}" in err


def test_the_same_command_writes_the_same_bytes_and_another_seed_others(tmp_path, capfd, flint):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, seed in ((one, 0), (two, 1)):
        code, out, _ = run(
            capfd, "vectors", "write", folder, "--operator", "linear_step", "--seed", seed
        )
        assert (code, "show 19 of 19 planted bugs" in out) == (0, True)
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
        assert (code, "pip install python-flint" in err) == (4, True)
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
    code, out, _ = run(capfd, "vectors", "check", "-v", FOLDER, plugin(tmp_path, SCAN))
    assert code == 0
    assert out.count("pass linear_scan/vectors[") == 4
    assert "(4 checks, " in out


def test_a_wrong_scan_fails_and_the_line_says_what_the_case_is_there_for(
    tmp_path, capfd, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    wrong = SCAN.replace("+ b[..., k, :]", "- b[..., k, :]")
    code, out, _ = run(capfd, "vectors", "check", SCANS, plugin(tmp_path, wrong))
    assert code == 1
    assert "FAIL linear_scan/vectors[float32]" in out
    assert "sign (b subtracted)" in out


def test_two_files_of_one_operator_are_both_judged(tmp_path, capfd, monkeypatch, flint):
    monkeypatch.chdir(tmp_path)
    other = making.made(operator_named("linear_scan"), 1, 1, 3)
    for name, text in (("a", SCANS.read_text("utf-8")), ("b", text_of(other))):
        (tmp_path / f"{name}.json").write_text(text, "utf-8")
    path = plugin(tmp_path, SCAN)
    code, out, _ = run(capfd, "vectors", "check", "-v", tmp_path, path, "--in-process")
    singles = sum(c.dtype == "float32" for v in (read(SCANS), other) for c in v.cases)
    assert (code, f"{singles} cases" in out) == (0, True)


def test_what_has_no_vectors_is_skipped_and_nothing_is_left_to_check(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = plugin(tmp_path, SCAN.replace("linear_scan", "linear_step").replace("a, b", "a, b, x"))
    code, out, _ = run(capfd, "vectors", "check", SCANS, path, "--in-process")
    assert (code, "there are no vectors" in out) == (5, True)


def test_an_implementation_that_raises_is_an_error_not_a_traceback(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = plugin(tmp_path, "def linear_scan(a, b):\n    raise OSError('no device')\n")
    code, out, _ = run(capfd, "vectors", "check", SCANS, path, "--json")
    results = json.loads(out)["results"]
    assert (code, {r["verdict"] for r in results}) == (1, {"error"})


@pytest.mark.long
def test_declared_types_alone_are_judged(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    declared = "from refssm.testing import implements\n\n@implements('linear_scan', dtypes=('{}',))"
    for dtype, code in (("float64", 0), ("bfloat16", 5)):
        text = SCAN.replace("def linear_scan", f"{declared.format(dtype)}\ndef linear_scan")
        got, out, _ = run(capfd, "vectors", "check", SCANS, plugin(tmp_path, text, f"{dtype}.py"))
        assert (got, "complex" in out.replace("vectors are in float32", "")) == (code, code == 5)


@pytest.mark.long
def test_a_declared_type_that_raises_is_an_error(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    real = SCAN.replace("    x =", "    assert b.dtype.kind == 'f', 'real only'\n    x =", 1)
    declared = "from refssm.testing import implements\n\n@implements('linear_scan', dtypes={})"
    for dtypes, code, verdict in (((), 0, "skipped"), (("float32", "complex64"), 1, "error")):
        text = real.replace("def linear_scan", f"{declared.format(dtypes)}\ndef linear_scan")
        path = plugin(tmp_path, text, f"of_{len(dtypes)}.py")
        got, out, _ = run(capfd, "vectors", "check", SCANS, path, "--json")
        results = {r["dtype"]: r["verdict"] for r in json.loads(out)["results"]}
        assert (got, results["float32"], results["complex64"]) == (code, "pass", verdict)


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


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path, capfd, flint):
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, _, err = run(
        capfd, "vectors", "write", tmp_path / "file" / "in", "--operator", "linear_step"
    )
    assert (code, "Not a directory" in err) == (4, True)


def test_files_are_found_once_however_they_are_named():
    assert files([FOLDER, SCANS]) == FILES


def test_every_operator_that_may_have_vectors_is_counted():
    assert len(making.enclosed()) == sum("enclosure" not in op.lacks for op in OPERATORS)
