"""S4D's kernels of conjugate pairs: twice the real part, the kernel of a real system."""

import numpy as np
import pytest

import refssm
import refssm.jit.diagonal as jit
from refssm import diagonal, initial
from refssm.conformance.judging.grading import judge
from refssm.diagonal import DIAGONAL_KERNEL_BILINEAR_REAL, DIAGONAL_KERNEL_ZOH_REAL

PAIRS = {
    DIAGONAL_KERNEL_ZOH_REAL: diagonal.diagonal_kernel_zoh,
    DIAGONAL_KERNEL_BILINEAR_REAL: diagonal.diagonal_kernel_bilinear,
}
each = pytest.mark.parametrize("op", PAIRS, ids=str)
roles = pytest.mark.parametrize("role", [diagonal, jit], ids=["reference", "jit"])
each_type = pytest.mark.parametrize("dtype", ["complex64", "complex128"])


def s4d(dtype, n=8):
    """S4D-Lin with normal C: w, B, C and dt."""
    r = np.random.default_rng(1)
    w = initial.diagonal("lin", n=n)["w"]
    C = initial.complex_normal(r, (n,))
    real = np.finfo(dtype).dtype
    return w.astype(dtype), np.ones(n, dtype), C.astype(dtype), np.array(0.1, real)


@each
@roles
@each_type
def test_it_is_the_kernel_of_both_modes_of_every_pair(op, role, dtype):
    w, B, C, dt = s4d(dtype)
    modes, inputs, outputs = (np.concatenate([x, x.conj()]) for x in (w, B, C))
    whole = PAIRS[op](modes, inputs, outputs, dt, l=50)
    assert judge(op, lambda *_, **__: whole.real, w, B, C, dt, l=50).ok
    assert judge(op, getattr(role, op.name), w, B, C, dt, l=50).grade == "A"


@each
@roles
def test_the_result_is_real_in_the_precision_of_the_arguments(op, role):
    for dtype in ("float32", "float64", "complex64", "complex128"):
        real = np.finfo(dtype).dtype
        arrays = [np.full(2, -0.5, dtype) for _ in range(3)]
        k = getattr(role, op.name)(*arrays, np.array(0.5, real), l=3)
        assert k.dtype == real


@each
@roles
def test_a_real_mode_counts_twice(op, role):
    w, one, dt = np.array([-0.5]), np.ones(1), np.array(0.25)
    k = getattr(role, op.name)(w, one, one, dt, l=4)
    alone = PAIRS[op](w, one, one, dt, l=4)
    assert np.allclose(k, 2 * alone, rtol=2.0**-50, atol=0)


@each
@roles
def test_the_gradient_is_the_complex_kernels_for_twice_the_cotangent(op, role):
    arrays, dk = s4d("complex128"), np.linspace(-1, 1, 9)
    found = getattr(role, f"{op.name}_vjp")(dk, *arrays, l=9)
    complex_vjp = getattr(diagonal, f"{PAIRS[op].__name__}_vjp")
    for g, wanted, x in zip(found, complex_vjp(2 * dk + 0j, *arrays, l=9), arrays, strict=True):
        assert g.dtype == x.dtype
        assert np.allclose(g, wanted, rtol=2.0**-40, atol=2.0**-40)


def test_the_unitary_quarter_turn_has_four_exact_values():
    k = refssm.diagonal_kernel_bilinear_real([2j], [1.0], [1 - 1j], 1.0, l=4)
    assert np.abs(k - [2, 0, -2, 0]).max() < 2.0**-50
