"""NumPy arrays of ml_dtypes' bfloat16: judged if declared, and skipped without ml_dtypes."""

import itertools
from functools import partial

import ml_dtypes
import numpy as np
import pytest
from judging import judged, plugin, rounded_to, run, scan, verdicts

from refssm.conformance.calling.adapters import numpy_arrays
from refssm.scan import LINEAR_SCAN
from refssm.testing import Budget, check

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SINGLE = {"accuracy": Budget(computes="float32")}
ABSENT = "bfloat16 is not judged: ml_dtypes is not installed (pip install ml_dtypes)"
bfloat16 = partial(judged, "linear_scan", dtypes=("bfloat16",))
SEEN = set()


def watching(a, b):
    SEEN.update(x.dtype for x in (a, b))
    return scan(a, b)


def accumulating(a, b):
    """Computes in float32 and returns the type of the arguments."""
    return scan(a.astype(np.float32), b.astype(np.float32)).astype(b.dtype)


@pytest.mark.long
def test_a_numpy_scan_is_judged_in_bfloat16_by_all_laws_but_one():
    results = bfloat16(watching, profile="default", vjp=LINEAR_SCAN.bare_vjp)
    assert {r.dtype for r in results} == {"bfloat16"}
    assert {BFLOAT16} == SEEN
    laws = {"value", "gradient", "nan", "prefix", "scaling", "zero", "causal", "batch"}
    conduct = {"copies", "summed", "repeat", "strides", "readonly", "unchanged", "alias"}
    conduct |= {"shapes", "empty"}
    assert verdicts(results) == dict.fromkeys(laws | conduct, "pass")
    assert [r.message for r in results if r.verdict == "skipped"] == ["needs linear_scan_from"]


@pytest.mark.long
def test_other_types_are_judged_beside_it():
    given = {"profile": "default", "dtypes": ("bfloat16", "float16", "float32")}
    results = judged("linear_scan", scan, "value", **given)
    assert [r.dtype for r in results] == ["float32", "float16", "bfloat16"]
    assert {r.verdict for r in results} == {"pass"}


def in_bits(bits, a, b):
    x, state = np.empty_like(b), np.zeros_like(b[..., 0, :], np.float32)
    for k in range(b.shape[-2]):
        state = rounded_to(bits, a[..., k, :].astype(np.float32) * state + b[..., k, :])
        x[..., k, :] = state
    return x


def losing_the_carry(a, b):
    x = scan(a, b)
    x[..., 64:, :] = scan(a[..., 64:, :], b[..., 64:, :])
    return x


def test_few_bits_and_a_wrong_formula_fail():
    (right,) = bfloat16(partial(in_bits, 8), "value")
    (coarse,) = bfloat16(partial(in_bits, 2), "value")
    (lost,) = bfloat16(losing_the_carry, "value")
    assert (right.verdict, lost.verdict) == ("pass", "wrong")
    assert coarse.failed
    assert "worst x[" in lost.message


def test_a_state_kept_in_bfloat16_is_refused_where_float32_is_declared():
    (kept,) = bfloat16(accumulating, "value", profile="default", **SINGLE)
    (lost,) = bfloat16(scan, "value", profile="default", **SINGLE)
    assert kept.verdict == "pass"
    assert lost.failed


def test_a_gradient_is_judged_too():
    (right,) = bfloat16(scan, "gradient", vjp=LINEAR_SCAN.bare_vjp)
    (wrong,) = bfloat16(scan, "gradient", vjp=lambda *x: LINEAR_SCAN.bare_vjp(*x)[::-1])
    assert (right.verdict, right.dtype) == ("pass", "bfloat16")
    assert wrong.failed


def test_a_kernel_may_return_the_float32_it_computes_in_and_it_is_named():
    def widened(a, b):
        return scan(a.astype(np.float32), b.astype(np.float32))

    (result,) = bfloat16(widened, "value")
    assert result.verdict == "pass"
    assert "`x` is wider than bfloat16" in result.notes


def test_a_result_in_the_other_byte_order_is_the_same_numbers():
    assert not bfloat16(lambda a, b: scan(a, b).astype(BFLOAT16.newbyteorder()), "value")[0].failed


NO_ARRAYS = {
    "float16": (lambda a, b: scan(a, b).astype(np.float16), "`x` is a float16 array, want"),
    "eight bits": (  # NumPy calls the kind of this one f, and of the next one V
        lambda a, b: scan(a, b).astype(ml_dtypes.float8_e5m2),
        "`x` is a float8_e5m2 array, want",
    ),
    "eight other bits": (
        lambda a, b: scan(a, b).astype(ml_dtypes.float8_e4m3fn),
        "`x` is an array of float8_e4m3fn, want",
    ),
    "two bytes": (lambda a, b: scan(a, b).view("V2"), "`x` is an array of |V2, want"),
    "complex": (lambda a, b: accumulating(a, b) + 0j, "`x` is a complex64 array, want"),
}


@pytest.mark.parametrize("what", NO_ARRAYS)
def test_a_result_of_another_type_is_told(what):
    function, sentence = NO_ARRAYS[what]
    (result,) = bfloat16(function, "value")
    assert (result.verdict, result.message) == ("wrong", f"{sentence} an array")


def test_a_bfloat16_result_of_a_float32_scan_is_too_narrow():
    (result,) = judged("linear_scan", lambda a, b: scan(a, b).astype(BFLOAT16), "value")
    assert (result.verdict, result.message) == ("wrong", "`x` is a bfloat16 array, want an array")


COUNT = itertools.count()
CONDUCT = {
    "repeat": lambda a, b: scan(a, b + np.asarray(next(COUNT), BFLOAT16)),
    "strides": lambda a, b: scan(a, b if b.flags.c_contiguous else b + BFLOAT16.type(1)),
    "unchanged": lambda a, b: scan(a, b.__imul__(BFLOAT16.type(2))) / BFLOAT16.type(2),
    "alias": lambda a, b: b[..., ::-1],
}


@pytest.mark.parametrize("name", CONDUCT)
def test_conduct_is_checked_with_arrays_of_bfloat16(name):
    (right,) = bfloat16(scan, name)
    (wrong,) = bfloat16(CONDUCT[name], name)
    assert right.verdict == "pass"
    assert wrong.failed


MINE = """
from refssm.scan import LINEAR_SCAN
from refssm.testing import implements

@implements("linear_scan", dtypes="bfloat16")
def scan(a, b):
    return LINEAR_SCAN.reference(a, b)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a plug-in, its inputs and its output, saved by NumPy."""
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, MINE)
    a, b = np.full((3, 1), 0.5, BFLOAT16), np.arange(3.0)[:, None].astype(BFLOAT16)
    np.savez(tmp_path / "mine.npz", a=a, b=b)
    np.savez(tmp_path / "wide.npz", a=a.astype(np.float32), b=b.astype(np.float32))
    np.save(tmp_path / "right.npy", scan(a, b))
    np.save(tmp_path / "wrong.npy", scan(a, b) + BFLOAT16.type(0.5))
    return tmp_path


INPUTS = {
    "my_ops.py --inputs mine.npz": 0,
    "my_ops.py --inputs wide.npz": 0,
    "my_ops.py --against my_ops.py --check against --profile quick": 0,
    "--as linear_scan --inputs mine.npz --output right.npy": 0,
    "--as linear_scan --inputs mine.npz --output wrong.npy": 1,
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("options", INPUTS)
def test_saved_arrays_and_an_older_implementation_are_judged_in_it(options, capfd):
    asked = ["-v", *options.split(), "--dtype", "bfloat16", "--in-process"]
    result, out, _ = run(capfd, "verify", *asked)
    assert result == INPUTS[options]
    assert f"{'FAIL' if result else 'pass'} linear_scan/" in out
    assert "[bfloat16]" in out


@pytest.fixture
def without(monkeypatch):
    """No ml_dtypes."""
    monkeypatch.setattr(numpy_arrays, "find_spec", lambda name: None)


@pytest.mark.usefixtures("without")
@pytest.mark.parametrize("beside", [(), ("float16",), ("float32",)], ids=str)
def test_without_ml_dtypes_bfloat16_is_skipped_and_nothing_else(beside):
    results = judged("linear_scan", scan, "value", profile="default", dtypes=(*beside, "bfloat16"))
    by_type = {r.dtype: r for r in results}
    assert {t: r.verdict for t, r in by_type.items()} == dict.fromkeys(beside, "pass") | {
        "bfloat16": "skipped"
    }
    assert by_type["bfloat16"].message == ABSENT


@pytest.mark.usefixtures("without", "folder")
def test_without_ml_dtypes_there_may_be_nothing_to_check(capfd):
    result, out, _ = run(capfd, "verify", "my_ops.py", "--profile", "quick", "--in-process")
    assert result == 5
    assert f"skip linear_scan   value [bfloat16]: {ABSENT}\n" in out


@pytest.mark.usefixtures("without")
def test_without_ml_dtypes_a_users_test_says_what_to_install():
    with pytest.raises(ValueError, match="nothing was judged") as refused:
        check("linear_scan", scan, dtypes=("bfloat16",), profile="quick")
    assert ABSENT in str(refused.value)


@pytest.mark.usefixtures("without", "folder")
@pytest.mark.parametrize(
    ("file", "place"), [("mine.npz", "mine.npz: "), ("wide.npz", "wide.npz: linear_scan: ")]
)
def test_without_ml_dtypes_saved_arrays_are_a_sentence(file, place, capfd):
    asked = ("my_ops.py", "--inputs", file, "--dtype", "bfloat16", "--in-process")
    result, _, err = run(capfd, "verify", *asked)
    assert result == 4
    assert err == f"refssm: {place}{ABSENT}\n"
