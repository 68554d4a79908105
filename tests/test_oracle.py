import ast
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from calls import WITH_ARGUMENTS, also_empty, filled, ordinary, several, statics

from refssm import oracle
from refssm._declaration.operator import Operator
from refssm._declaration.signature import length_of
from refssm.cauchy import CAUCHY_KERNEL
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import grade_outputs
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM

FILES = sorted(Path(oracle.__file__).parent.glob("*.py"))
EPS = float(np.finfo(np.longdouble).eps)
ROUNDOFF = Fraction(EPS) / 2
long_double = pytest.mark.skipif(
    bool(np.finfo(float).eps <= EPS), reason="numpy.longdouble has no more digits than float64 here"
)


def numbers(*shapes, seed=1):
    """Doubles of several magnitudes that use all 53 bits."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s) * 10.0 ** rng.integers(-3, 4, s) for s in shapes]


def exactly(x) -> Any:
    """Nested lists of doubles as nested lists of rational numbers."""
    return [exactly(y) for y in x] if isinstance(x, list) else Fraction(x)


def rational(x):
    """A long double as a rational number."""
    head = float(x)
    return Fraction(head) + Fraction(float(x - head))


def nearest(actual, wanted):
    """True if every entry is the rational number, rounded once to long double."""
    entries = zip(actual.ravel(), np.ravel(np.array(wanted, dtype=object)), strict=True)
    return all(abs(rational(y) - exact) <= ROUNDOFF * abs(exact) for y, exact in entries)


def scan(a, b, x0):
    """x_k = a_k x_{k-1} + b_k in rational numbers."""
    x = [x0]
    for a_k, b_k in zip(a, b, strict=True):
        x.append([p * q + r for p, q, r in zip(a_k, x[-1], b_k, strict=True)])
    return x[1:]


def scan_tangent(a, b, x0, ta, tb, tx0):
    """ẋ_k = ȧ_k x_{k-1} + a_k ẋ_{k-1} + ḃ_k in rational numbers."""
    before = [x0, *scan(a, b, x0)[:-1]]
    pushed = [
        [p * q + r for p, q, r in zip(ta_k, x_k, tb_k, strict=True)]
        for ta_k, x_k, tb_k in zip(ta, before, tb, strict=True)
    ]
    return scan(a, pushed, tx0)


def test_scans_are_the_exact_rational_numbers_rounded_once():
    a, b, x0 = numbers((30, 2), (30, 2), (2,))
    A, B, X0 = (exactly(x.tolist()) for x in (a, b, x0))
    (x,) = oracle.evaluate(LINEAR_SCAN, a, b)
    assert nearest(x, scan(A, B, [Fraction(0)] * 2))
    (x,) = oracle.evaluate(LINEAR_SCAN_FROM, a, b, x0)
    assert nearest(x, scan(A, B, X0))


def test_cauchy_sums_are_the_exact_rational_numbers_rounded_once():
    v, w, z = numbers((20,), (20,), (5,))
    (k,) = oracle.evaluate(CAUCHY_KERNEL, v, w, z)
    V, W, Z = (exactly(x.tolist()) for x in (v, w, z))
    assert nearest(k, [sum(p / (q - r) for p, r in zip(V, W, strict=True)) for q in Z])


def test_the_check_against_rational_numbers_sees_one_unit_in_the_last_place():
    a, b = numbers((30, 2), (30, 2))
    A, B = exactly(a.tolist()), exactly(b.tolist())
    (x,) = oracle.evaluate(LINEAR_SCAN, a, b)
    assert not nearest(np.nextafter(x, np.inf), scan(A, B, [Fraction(0)] * 2))


def test_complex_values_are_exact_where_long_double_holds_them():
    a = np.array([[2j], [1 + 1j], [0.5], [-3j]])
    b = np.array([[1 - 1j], [2], [3j], [0.25]])
    (x,) = oracle.evaluate(LINEAR_SCAN, a, b)
    assert x.ravel().tolist() == [1 - 1j, 4, 2 + 3j, 9.25 - 6j]
    v, w, z = [1 + 1j, 4, 1j], [0j, -1, -1 - 2j], [2j, 1]
    (k,) = oracle.evaluate(CAUCHY_KERNEL, *map(np.array, (v[:1], w[:1], z)))
    assert k.tolist() == [0.5 - 0.5j, 1 + 1j]
    (k,) = oracle.evaluate(CAUCHY_KERNEL, *map(np.array, (v, w, z[1:])))
    assert k.tolist() == [(1 + 1j) + 2 + (0.25 + 0.25j)]


def test_derivatives_of_scans_are_the_exact_rational_numbers_rounded_once():
    arrays = numbers((12, 2), (12, 2), (2,))
    tangents = numbers((12, 2), (12, 2), (2,), seed=2)
    exact = [exactly(x.tolist()) for x in (*arrays, *tangents)]
    (dx,) = oracle.derivative(LINEAR_SCAN_FROM, arrays, tangents)
    assert nearest(dx, scan_tangent(*exact))


def test_derivatives_of_cauchy_sums_are_the_exact_rational_numbers_rounded_once():
    arrays, tangents = numbers((9,), (9,), (4,)), numbers((9,), (9,), (4,), seed=2)
    (dk,) = oracle.derivative(CAUCHY_KERNEL, arrays, tangents)
    V, W, Z, TV, TW, TZ = (exactly(x.tolist()) for x in (*arrays, *tangents))
    modes = list(zip(V, W, TV, TW, strict=True))
    wanted = [
        sum(tv / (z - w) - v * (tz - tw) / (z - w) ** 2 for v, w, tv, tw in modes)
        for z, tz in zip(Z, TZ, strict=True)
    ]
    assert nearest(dk, wanted)


def test_derivatives_do_not_depend_on_the_units_of_an_argument():
    a, b, x0 = numbers((3, 1), (3, 1), (1,))
    tangents = numbers((3, 1), (3, 1), (1,), seed=2)
    for unit in (1.0, 2.0**-60, 2.0**60):  # of a wrong unit a step would vanish
        exact = [exactly(x.tolist()) for x in (a, unit * b, x0, *tangents)]
        (dx,) = oracle.derivative(LINEAR_SCAN_FROM, (a, unit * b, x0), tangents)
        assert nearest(dx, scan_tangent(*exact))


def test_the_derivative_of_a_product_of_small_arguments_is_exact_too():
    arrays = [2.0**-200 * numbers((4, 1))[0], np.zeros((4, 1)), np.ones(1)]
    tangents = [numbers((4, 1), seed=2)[0], np.zeros((4, 1)), np.zeros(1)]
    exact = [exactly(x.tolist()) for x in (*arrays, *tangents)]
    (dx,) = oracle.derivative(LINEAR_SCAN_FROM, arrays, tangents)
    assert nearest(dx, scan_tangent(*exact))


def test_the_derivative_of_complex_arguments_is_complex_linear():
    v, w, z = (np.array([x], complex) for x in (3 + 1j, -1, 1 + 2j))
    zero = np.zeros(1, complex)
    for t in (1, 1j):
        (dk,) = oracle.derivative(CAUCHY_KERNEL, (v, w, z), (zero + t, zero, zero))
        assert dk[0] == t * (0.25 - 0.25j)
        (dk,) = oracle.derivative(CAUCHY_KERNEL, (v, w, z), (zero, zero + t, zero))
        assert dk[0] == t * (3 + 1j) * (-0.125j)


def test_batches_are_the_core_values_side_by_side():
    a, b = numbers((3, 1, 4, 2), (2, 4, 2))
    (x,) = oracle.evaluate(LINEAR_SCAN, a, b)
    assert x.shape == (3, 2, 4, 2)
    for i, j in np.ndindex(3, 2):
        assert np.array_equal(x[i, j], oracle.evaluate(LINEAR_SCAN, a[i, 0], b[j])[0])
    tangents = numbers((3, 1, 4, 2), (2, 4, 2), seed=3)
    (dx,) = oracle.derivative(LINEAR_SCAN, (a, b), tangents)
    for i, j in np.ndindex(3, 2):
        pushed = tangents[0][i, 0], tangents[1][j]
        (slice_,) = oracle.derivative(LINEAR_SCAN, (a[i, 0], b[j]), pushed)
        assert np.array_equal(dx[i, j], slice_)


@pytest.mark.parametrize("op", WITH_ARGUMENTS, ids=str)
def test_sizes_of_zero_give_zeros_or_nothing(op):
    letters = sorted({d[-1] for dims in (*op.input_dims, *op.output_dims) for d in dims})
    for zero in letters:
        sizes = {d: 0 if d in (zero, also_empty(op, zero)) else 3 for d in letters}
        shapes = [tuple(length_of(d, sizes) for d in dims) for dims in op.input_dims]
        named = zip(op.inputs, shapes, strict=True)
        arrays = [filled(op, name, shape, number=0.5, l=sizes.get("l", 0)) for name, shape in named]
        lengths = statics(op) | ({zero: 0} if zero in op.static else {})
        outputs = oracle.evaluate(op, *arrays, **lengths)
        assert [y.shape for y in outputs] == op.output_shapes(*arrays, **lengths)
        wanted = tuple(map(np.asarray, several(op.reference(*arrays, **lengths))))
        same = all(map(np.array_equal, outputs, wanted))
        assert same or grade_outputs(op, arrays, wanted, expect(op, arrays, lengths)).ok
    empty = ordinary(op, batch=(0,), size=2)
    outputs = oracle.evaluate(op, *empty, **statics(op, 2))
    assert all(y.size == 0 for y in outputs)


@long_double
def test_values_between_two_doubles_are_kept_in_long_double():
    one, small = np.ones((2, 1)), np.full((2, 1), 2.0**-60)
    (x,) = oracle.evaluate(LINEAR_SCAN, small, one)
    assert x[1, 0] - 1 == 2.0**-60
    (x,) = oracle.evaluate(LINEAR_SCAN, small * 1j, one * 1j)
    assert (x[1, 0].real, x[1, 0].imag) == (-(2.0**-60), 1)
    (x,) = oracle.evaluate(LINEAR_SCAN, small, one * 1j)
    assert x[1, 0].imag - 1 == 2.0**-60


@long_double
def test_arguments_in_long_double_are_taken_exactly():
    b = np.ones((1, 1), np.longdouble) + np.longdouble(2) ** -60
    (x,) = oracle.evaluate(LINEAR_SCAN, np.ones_like(b), b)
    assert x == b


def test_a_value_is_long_double_and_complex_where_an_argument_is():
    real, imaginary = np.ones((1, 1)), np.full((1, 1), 1j)
    assert oracle.evaluate(LINEAR_SCAN, real, real)[0].dtype == np.longdouble
    for arrays in ((real, imaginary), (imaginary, real)):
        assert oracle.evaluate(LINEAR_SCAN, *arrays)[0].dtype == np.clongdouble


def test_several_outputs_are_a_tuple_in_the_order_of_the_signature(monkeypatch):
    def linear_scan(a, b):
        return a, b

    linear_scan.__module__ = "refssm.scan"
    pair = Operator(linear_scan, "(l,n),(l,n)->(l,n),(l,n)", LINEAR_SCAN.inputs,
                    outputs=("p", "q"))  # fmt: skip
    monkeypatch.setattr("refssm.oracle.scan.linear_scan", linear_scan)
    p, q = oracle.evaluate(pair, np.full((3, 2, 1), 5.0), np.full((2, 1), 7.0))
    assert (p.shape, q.shape) == ((3, 2, 1), (3, 2, 1))
    assert (p == 5).all()
    assert (q == 7).all()


def test_a_value_beyond_the_doubles_is_not_nan():
    big = np.full((2, 1), 1e200)
    (x,) = oracle.evaluate(LINEAR_SCAN, big, big)
    assert not np.isnan(x).any()


def test_an_oracle_that_cannot_answer_raises():
    with pytest.raises(ZeroDivisionError):
        oracle.evaluate(CAUCHY_KERNEL, np.ones(1), np.ones(1), np.ones(1))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_an_oracle_imports_nothing_from_refssm_but_oracles(path):
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            ours = (node.module or "").startswith("refssm.oracle.")
            imported |= set() if ours else {(node.module or "").split(".")[0]}
    assert imported <= {"mpmath", "numpy"}


def test_the_working_precision_is_left_as_it_was():
    before = mpmath.mp.dps
    oracle.derivative(LINEAR_SCAN, numbers((2, 1), (2, 1)), numbers((2, 1), (2, 1)))
    with pytest.raises(ZeroDivisionError):
        oracle.evaluate(CAUCHY_KERNEL, np.ones(1), np.ones(1), np.ones(1))
    assert mpmath.mp.dps == before
