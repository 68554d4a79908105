"""S4D's kernels of conjugate pairs: twice the real part, the kernel of a real system."""

import numpy as np
import pytest

import refssm
import refssm.jit.diagonal as jit
from refssm import diagonal, initial
from refssm.conformance.cases.case import Case, Knob
from refssm.conformance.judging.certificate import adjoint_slip
from refssm.conformance.judging.grading import judge
from refssm.conformance.standard import C as ALLOWED
from refssm.diagonal import DIAGONAL_KERNEL_BILINEAR_REAL, DIAGONAL_KERNEL_ZOH_REAL

PAIRS = {
    DIAGONAL_KERNEL_ZOH_REAL: diagonal.diagonal_kernel_zoh,
    DIAGONAL_KERNEL_BILINEAR_REAL: diagonal.diagonal_kernel_bilinear,
}
PLAIN = {"w": "near", "dt": "usual"}
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
    alone = PAIRS[op](w, one, one, dt, l=4)
    assert judge(op, lambda *_, **__: 2 * alone, w, one, one, dt, l=4).grade == "A"
    assert not judge(op, lambda *_, **__: alone, w, one, one, dt, l=4).ok
    assert judge(op, getattr(role, op.name), w, one, one, dt, l=4).grade == "A"


@each
@roles
def test_the_gradients_are_the_oracles_also_where_an_argument_is_real(op, role):
    vjp = getattr(role, f"{op}_vjp")
    for real in ((), ("w",), ("B",), ("C",)):
        knobs = {
            name: Knob(PLAIN.get(name, "normal"), "each", domain.real or name in real)
            for name, domain in op.inputs.items()
        }
        kind, sizes = np.dtype("complex128"), {"l": 9, "n": 3}
        assert adjoint_slip(op, vjp, Case(op, kind, sizes, {"d": 2}, knobs, 1)) <= ALLOWED


@each
def test_a_complex_cotangent_of_the_real_result_is_refused(op):
    vjp = getattr(refssm, f"{op}_vjp")
    with pytest.raises(TypeError, match="`dk` is complex, but `k` is real"):
        vjp(np.ones(5) + 1j, *s4d("complex128"), l=5)


def test_a_quarter_turn_at_each_step_by_hand():
    arrays = [np.array(x) for x in ([2j], [1.0], [1 - 1j], 1.0)]
    by_hand = np.array([2.0, 0.0, -2.0, 0.0])
    assert judge(DIAGONAL_KERNEL_BILINEAR_REAL, lambda *_, **__: by_hand, *arrays, l=4).ok
