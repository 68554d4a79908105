"""What is asked in every type, of every gradient, and of integers in place of flags."""

import numpy as np
import pytest
from judging import judged

import refssm
from refssm import oracle
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.checks.checks import PROFILES, checks_of, derived
from refssm.conformance.judging.grading import judge
from refssm.discretize import DISCRETIZE_GBT
from refssm.hankel import GRAMIANS
from refssm.nplr import NPLR_LEGS
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_PACKED

scan = LINEAR_SCAN.reference
SEEDS = pytest.mark.parametrize("seed", range(5))


def single(a):
    return a.astype(np.complex64 if np.iscomplexobj(a) else np.float32)


@SEEDS
def test_a_gradient_of_a_solve_that_is_single_precision_inside_is_refused(seed):
    def vjp(*arrays, alpha):
        gradients = DISCRETIZE_GBT.bare_vjp(*map(single, arrays), alpha=alpha)
        return tuple(g.astype(a.dtype) for g, a in zip(gradients, arrays[2:], strict=True))

    def found(types):
        name, right = "discretize_gbt", DISCRETIZE_GBT.reference
        return judged(name, right, "gradient", vjp=vjp, types=types, profile="default", seed=seed)

    assert [(r.dtype, r.failed) for r in found(("float32", "float64"))] == [
        ("float32", False),
        ("float64", True),
    ]


@pytest.mark.parametrize("op", [DISCRETIZE_GBT, GRAMIANS], ids=str)
def test_the_derivative_of_the_oracle_is_the_gradient(op):
    case = ordinary_case(op, "complex128", sizes=(2, 1))
    rng = np.random.default_rng(1)
    shapes = op.output_shapes(*case.arrays, **case.statics)
    cotangents = [rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in shapes]
    exact = oracle.gradient(op, cotangents, case.arrays, **case.statics)
    ours = op.bare_vjp(*cotangents, *case.arrays, **case.statics)
    for g, e, a in zip(ours, exact, case.arrays, strict=True):
        assert g.shape == e.shape == a.shape
        assert np.abs(g - e).max() <= 2.0**-40 * np.abs(e).max()
        assert np.iscomplexobj(e) == np.iscomplexobj(a)


def test_gradients_of_solves_are_judged_in_double_precision_on_small_cases():
    profile = PROFILES["default"]
    checks = checks_of(GRAMIANS, profile, ["float32", "float64"], vjp=True)
    (of_double,) = (c for c in checks if c.id == "gramians/gradient[float64]")
    assert derived(GRAMIANS, "float64")
    assert not derived(LINEAR_SCAN, "float64")
    cases = of_double.cases().cases(of_double.count, 0)
    assert max(case.sizes["n"] for case in cases) <= 3


def in_memory_order(a):
    """The memory of an array as if it were contiguous."""
    base = a if a.base is None or a.flags["C_CONTIGUOUS"] else a.base
    flat = np.ravel(base, order="K")
    return np.resize(flat, a.shape).astype(a.dtype)


def test_views_are_given_in_every_type():
    def ignoring(a, b):
        if b.dtype == np.float32:
            return scan(a, b)
        return scan(in_memory_order(a), in_memory_order(b))

    lines = judged("linear_scan", ignoring, "strides", types=("float32", "float64"))
    assert [(r.dtype, r.failed) for r in lines] == [("float32", False), ("float64", True)]


def test_memory_of_arguments_is_returned_in_no_type():
    def returning(a, b):
        x = scan(a, b)
        if b.dtype == np.float64:
            b[...] = x
            return b
        return x

    lines = judged("linear_scan", returning, "alias", types=("float32", "float64"))
    assert [(r.dtype, r.failed) for r in lines] == [("float32", False), ("float64", True)]


@SEEDS
def test_a_race_in_a_backward_pass_is_found_by_equal_calls(seed):
    calls = []

    def vjp(dx, a, b):
        da, db = LINEAR_SCAN.bare_vjp(dx, a, b)
        calls.append(1)
        if dx.shape[-2] > 200 and len(calls) % 7 == 0:
            db = db.copy()
            db[..., 100, :] = 0
        return da, db

    (line,) = judged("linear_scan", scan, "repeat", vjp=vjp, types=("float32",), seed=seed)
    assert line.failed
    assert "later calls of the VJP differ from the first" in line.message


def test_other_bits_of_a_right_backward_pass_are_a_note():
    calls = []

    def vjp(dx, a, b):
        da, db = LINEAR_SCAN.bare_vjp(dx, a, b)
        calls.append(1)
        return da, np.nextafter(db, np.float32(np.inf)) if len(calls) % 3 == 0 else db

    (line,) = judged("linear_scan", scan, "repeat", vjp=vjp, types=("float32",))
    assert not line.failed
    assert any("later calls of the VJP differ" in note for note in line.notes)


def inverted(a, b, resets):
    """A scan by ~resets, which of integers is true where it should be false."""
    keep = ~resets
    begins = ~keep if keep.dtype == bool else keep == 0
    return LINEAR_SCAN_PACKED.reference(a, b, begins)


def refusing(a, b, resets):
    if resets.dtype != bool:
        raise TypeError("resets must be bool")
    return LINEAR_SCAN_PACKED.reference(a, b, resets)


@SEEDS
def test_resets_may_be_integers(seed):
    (line,) = judged("linear_scan_packed", inverted, "flags", types=("float32",), seed=seed)
    assert line.failed
    assert line.message.startswith("with resets of 0 and 1 as integers: worst x")


def test_code_that_refuses_integer_resets_gets_a_note():
    (line,) = judged("linear_scan_packed", refusing, "flags", types=("float32",))
    assert not line.failed
    assert any("resets must be bool" in note for note in line.notes)


def test_every_reference_takes_integer_resets_as_its_page_says():
    a, b = np.array([[0.5], [0.5], [0.5]], np.float32), np.array([[1], [1], [1]], np.float32)
    right = refssm.linear_scan_packed(a, b, np.array([False, True, False]))
    assert np.array_equal(LINEAR_SCAN_PACKED.reference(a, b, np.array([0, 2, 0])), right)


def test_modes_in_another_order_than_the_page_promises_get_a_note():
    def backwards(*, n):
        w, P, B, V = refssm.nplr_legs(n=n)
        turned = slice(None, None, -1)
        return tuple(y.copy() for y in (w[turned], P[turned], B[turned], V[:, turned]))

    told = judge(NPLR_LEGS, backwards, n=4)
    assert told.grade == "A"
    assert told.notes == ("the modes come in another order than the operator's page promises",)
    assert judge(NPLR_LEGS, refssm.nplr_legs, n=4).notes == ()
