"""Folders of cases: the judge uses what was written, and bugs do not pass."""

import sys

import numpy as np
import pytest
from exchanging import answer, given, judged, manifest, written
from jsonschema import Draft202012Validator
from judging import run

from refssm import diagonal_kernel_zoh
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.exchange.manifest import CHECKS, load, schema
from refssm.conformance.planted import planted_bugs
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.scan import LINEAR_SCAN

SCAN = [d for d in planted_bugs() if d.op == "linear_scan"]
# one for each check that files support; no real arguments among complex ones
BY_CHECK = {d.caught_by: d for d in reversed(SCAN) if d.caught_by.partition("[")[0] in CHECKS}
TOLD = [d for check, d in BY_CHECK.items() if "float32" in check]
QUICK = ("--profile", "quick", "--dtype", "float32")
scan = LINEAR_SCAN.reference


def mended(folder, function, *options):
    """A folder of quick cases of linear_scan with answers."""
    written(folder, "--operator", "linear_scan", *QUICK, *options)
    answer(folder, function)
    return folder


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Cases of linear_scan: every check in single precision."""
    folder = tmp_path_factory.mktemp("written") / "cases"
    checks = [option for name in ("value", "gradient", *laws()) for option in ("--check", name)]
    return written(folder, "--operator", "linear_scan", *checks, "--dtype", "float32")


@pytest.fixture(scope="module")
def loaded(everything):
    """The same cases, loaded once."""
    return load(everything)


def laws():
    return [check for check in CHECKS if check not in ("value", "state", "gradient")]


@pytest.mark.long
def test_what_is_written_keeps_to_the_schema_that_is_packaged(everything):
    document = manifest(everything)
    Draft202012Validator.check_schema(schema())
    Draft202012Validator(schema()).validate(document)
    assert {case["check"] for case in document["cases"]} >= {"value", "gradient", "nan", "prefix"}
    for case in document["cases"]:
        for told, a in zip(case["inputs"], given(everything, case), strict=True):
            assert (told["dtype"], told["shape"]) == (a.dtype.name, [*a.shape])
            assert a.dtype.byteorder in "=|"
            assert a.flags.c_contiguous


@pytest.mark.long
def test_the_text_of_a_case_says_what_is_called_and_which_files_there_are(everything):
    text = (everything / "linear_scan-gradient-float32-001" / "case.txt").read_text(
        encoding="utf-8"
    )
    assert text.splitlines() == [
        "call linear_scan_vjp",
        "dtype float32",
        "check gradient",
        "input dx.npy float32 b=1 l=1 n=1",
        "input a.npy float32 b=1 l=1 n=1",
        "input b.npy float32 b=1 l=1 n=1",
        "output da.npy float32 b=1 l=1 n=1",
        "output db.npy float32 b=1 l=1 n=1",
    ]


@pytest.mark.long
def test_right_answers_pass_every_check_that_is_written(everything):
    answer(everything)
    results = judged(everything)
    assert len(results) >= 9
    assert {r.verdict for r in results.values()} == {"pass"}
    assert {r.grade for r in results.values()} == {"A"}


@pytest.mark.long
@pytest.mark.parametrize("bug", TOLD, ids=str)
def test_planted_bugs_are_caught_in_files_by_the_checks_that_they_name(everything, loaded, bug):
    name = bug.caught_by.partition("[")[0]
    found = bug.found()
    answer(everything, found.forward, found.vjp, name)
    assert judged(everything, name, cases=loaded)[bug.caught_by].failed


@pytest.mark.long
def test_the_verdict_of_files_is_the_verdict_of_a_function(tmp_path):
    def a_little_off(a, b):
        return scan(a, b) * np.float32(1 + 3e-7)

    folder = mended(tmp_path / "cases", a_little_off, "--check", "value", "--dtype", "float64")
    found = next(d for d in SCAN).found()
    found = type(found)(found.op, a_little_off, None)
    how = {"profile": "quick", "only_checks": ("value",), "types": ("float32", "float64")}
    there = list(
        results_of(Session(InProcess([found]), "", Settings(folder=None, shrink=False, **how)))
    )
    for check in there:
        here = judged(folder)[f"value[{check.dtype}]"]
        assert (here.verdict, here.grade) == (check.verdict, check.grade)
        if not check.failed:  # otherwise the sweep stops at the first failure
            assert (here.ratio, here.bits) == (check.ratio, check.bits)


def test_of_kernels_that_are_wrong_a_short_one_is_named(tmp_path):
    folder = written(
        tmp_path / "cases", "--operator", "diagonal_kernel_zoh", "--check", "value", *QUICK
    )
    answer(folder, lambda *arrays, l: (1 + (l > 8)) * diagonal_kernel_zoh(*arrays, l=l))
    named = judged(folder)["value[float32]"].smallest.partition(":")[0]
    cases = {case["id"]: case for case in manifest(folder)["cases"]}
    wrong = [case for case in cases.values() if case["statics"]["l"] > 8]
    numbers = {case["id"]: sum(a.size for a in given(folder, case)) for case in wrong}
    assert min(numbers, key=lambda id: cases[id]["statics"]["l"] + numbers[id]) in named


@pytest.mark.long
@pytest.mark.parametrize("name", ["linear_scan", "causal_convolution", "dplr_kernel"])
@pytest.mark.parametrize("size", [0.99, 1.01])
def test_what_the_files_allow_is_what_the_judge_accepts(tmp_path, name, size):
    options = (*QUICK, "--check", "value", "--where", "l=1..65")
    folder = written(tmp_path / "cases", "--operator", name, *options)
    told, rng = {}, np.random.default_rng(7)
    for case in manifest(folder)["cases"]:
        place, within = folder / case["id"], True
        for output in case["outputs"]:
            want = np.load(place / output["want"]["file"])
            allowed = np.load(place / output["allowed"]["file"])
            dtype = np.dtype(output["dtype"])
            with np.errstate(all="ignore"):
                error = size * np.where(np.isfinite(allowed), allowed, 1.0)
                y = (want + error * (rng.random(want.shape) < 0.1)).astype(dtype)
                y = np.where(np.isfinite(y), y, want).astype(dtype)
                within &= bool((np.abs(y - want) <= allowed).all())
            np.save(place / output["file"], y)
        told[case["id"]] = within
    (result,) = judged(folder).values()
    drawn = [id_ for line in manifest(folder)["judged"] for id_ in line["calls"]]  # some twice
    failing = [id_ for id_ in drawn if not told[id_]]
    assert result.failed == bool(failing)
    note = next((n for n in result.notes if "cases fail" in n), "0 of")
    assert int(note.split()[0]) == len(failing)


@pytest.mark.parametrize("name", ["discretize_bilinear", "nplr_legs"])
def test_what_only_the_judge_can_measure_has_no_allowed_errors_and_is_judged(tmp_path, name):
    small = ("--where", "n=1..3", "--check", "value", "--profile", "quick")
    dtype = "complex64" if name == "nplr_legs" else "float32"
    folder = written(tmp_path / "cases", "--operator", name, *small, "--dtype", dtype)
    cases, op = manifest(folder)["cases"], operator_named(name)
    assert {case["contract"] for case in cases} == {"normwise"}
    assert {output["allowed"] for case in cases for output in case["outputs"]} == {None}
    answer(folder)
    assert {r.verdict for r in judged(folder).values()} == {"pass"}

    def off(*args, **statics):
        return tuple(a * a.dtype.type(1.01) for a in op.reference(*args, **statics))

    answer(folder, off)
    assert {r.verdict for r in judged(folder).values()} <= {"wrong", "inaccurate"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_types_of_16_bits_lie_there_as_float16_and_as_float32_with_few_digits(tmp_path, dtype):
    options = ("--profile", "quick", "--check", "value", "--dtype", dtype)
    folder = written(tmp_path / "cases", "--operator", "linear_scan", *options)
    case = manifest(folder)["cases"][0]
    assert case["inputs"][0]["dtype"] == dtype
    assert {a.dtype.name for a in given(folder, case)} == {
        "float16" if dtype == "float16" else "float32"
    }
    answer(folder)
    (result,) = judged(folder).values()
    assert (result.verdict, result.grade, result.notes) == ("pass", "A", result.notes)
    assert not any("wider" in note for note in result.notes)
    answer(folder, lambda a, b: scan(a, b) * (1 + 64 * 2.0 ** (-11 if dtype == "float16" else -8)))
    (result,) = judged(folder).values()
    assert result.verdict in ("wrong", "inaccurate")


@pytest.mark.long
def test_a_layout_puts_the_axes_of_all_files_where_the_author_wants_them(tmp_path):
    layout = "n b l, b l n -> l n b"
    small = ("--where", "l=1..65", "--check", "value", "--check", "gradient")
    options = ("--layout", layout, "--vjp", *small)
    folder = written(tmp_path / "cases", "--operator", "linear_scan", *QUICK, *options)

    def inside(a, b):
        return np.transpose(a, (1, 2, 0)), b

    def forward(a, b):
        return np.transpose(scan(*inside(a, b)), (1, 2, 0))

    def vjp(dx, a, b):
        da, db = LINEAR_SCAN.vjp()(np.transpose(dx, (2, 0, 1)), *inside(a, b))
        return np.transpose(da, (2, 0, 1)), db

    answer(folder, forward, vjp)
    assert {r.verdict for r in judged(folder).values()} == {"pass"}
    for case in manifest(folder)["cases"]:
        for output in case["outputs"]:
            want = np.load(folder / case["id"] / output["want"]["file"])
            assert [*want.shape] == output["shape"]
    answer(folder, lambda a, b: np.transpose(scan(*inside(a, b)), (0, 2, 1)), vjp)
    result = judged(folder, "value")["value[float32]"]
    assert result.verdict == "wrong"
    assert "shape" in result.message


def test_one_seed_writes_the_same_bytes_and_another_one_others(tmp_path):
    options = ("--operator", "linear_scan", *QUICK, "--check", "value", "--where", "l=1..9")
    folders = [written(tmp_path / f"{i}", *options, "--seed", s) for i, s in enumerate((3, 3, 4))]
    first, same, other = (
        {p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in folders
    )
    assert first == same
    assert first != other


@pytest.mark.long
def test_sizes_may_be_narrowed_and_subnormal_numbers_flushed(tmp_path):
    def flushed(a, b):
        tiny = np.finfo(np.float32).tiny
        return scan(a, np.where(np.abs(b) < tiny, 0, b).astype(b.dtype))

    options = ("--where", "n=16..16", "--check", "value")
    strict = mended(tmp_path / "strict", flushed, *options)
    declared = mended(tmp_path / "declared", flushed, *options, "--ftz")
    assert {case["inputs"][0]["shape"][-1] for case in manifest(strict)["cases"]} == {16}
    assert judged(strict)["value[float32]"].failed
    assert not judged(declared)["value[float32]"].failed


@pytest.mark.long
def test_several_operators_lie_in_one_folder_and_are_told_apart(capfd, tmp_path):
    small = ("--where", "l=1..3", "--check", "value", "--check", "state")
    options = ("--profile", "quick", *small)
    names = ("--operator", "linear_scan", "--operator", "ssd_recurrent_stateful")
    folder = written(tmp_path / "cases", *names, *options, "--dtype", "float32")
    answer(folder)
    result, out, _ = run(capfd, "cases", "judge", "-v", folder)
    assert result == 0
    assert out.count("\npass ") == 3
    result, out, _ = run(capfd, "cases", "judge", "-v", folder, "--operator", "linear_scan")
    assert (result, out.count("\npass ")) == (0, 1)
    result, out, _ = run(capfd, "cases", "judge", folder, "--check", "state", "--json")
    assert '"check": "state"' in out
    assert '"check": "value"' not in out


@pytest.mark.long
def test_a_machine_without_long_double_still_has_the_nearest_double(everything, monkeypatch):
    answer(everything)
    monkeypatch.setattr(np, "longdouble", np.float64)
    assert judged(everything, "gradient")["gradient[float32]"].verdict == "pass"
    assert sys.byteorder == "little"
