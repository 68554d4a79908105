from itertools import product

import numpy as np
import pytest

import refssm
import refssm.jit.diagonal as jit
from refssm import diagonal
from refssm.conformance.cases.case import Case, Knob
from refssm.conformance.judging.certificate import adjoint_slip
from refssm.conformance.judging.grading import judge, kind_of
from refssm.conformance.standard import C as ALLOWED
from refssm.diagonal import (
    DIAGONAL_KERNEL_BILINEAR,
    DIAGONAL_KERNEL_ZOH,
    DSS_EXP_KERNEL,
    DSS_SOFTMAX_KERNEL,
    EMA_KERNEL,
    SHIFT_KERNEL,
)

TYPES = ("float32", "float64", "complex64", "complex128")
OPERATORS = (
    DIAGONAL_KERNEL_ZOH,
    DIAGONAL_KERNEL_BILINEAR,
    DSS_EXP_KERNEL,
    DSS_SOFTMAX_KERNEL,
    EMA_KERNEL,
    SHIFT_KERNEL,
)
EXPONENTIAL = OPERATORS[:4]
roles = pytest.mark.parametrize("role", [diagonal, jit], ids=["reference", "jit"])
each = pytest.mark.parametrize("op", OPERATORS, ids=str)
each_type = pytest.mark.parametrize("dtype", TYPES)
PLAIN = {"w": "near", "dt": "usual", "delta": "usual", "alpha": "usual"}


def kernel(role, op):
    return getattr(role, op.name)


def case(op, dtype, l=9, n=3, d=2, seed=1, **maps):
    """Arguments of an operator, from its tame maps or the given ones."""
    dtype = np.dtype(dtype)
    knobs = {
        name: Knob(
            maps.get(name, PLAIN.get(name, "normal")), "each", domain.real or dtype.kind == "f"
        )
        for name, domain in op.inputs.items()
    }
    return Case(op, dtype, {"l": l, "n": n}, {"d": d}, knobs, seed)


def right(op, value, *arrays):
    """True if the judge accepts `value` as the output of `op`."""
    arrays = [np.asarray(a) for a in arrays]
    return judge(op, lambda *_, **__: value, *arrays, l=value.shape[-1]).ok


def wide(arrays):
    """In long double; complex if the array is complex."""
    return [a.astype(np.result_type(a, np.longdouble)) for a in arrays]


@roles
def test_by_hand_with_modes_that_halve_and_stay(role):
    w, log2 = [0.0, -np.log(2)], np.log(2)
    k = role.diagonal_kernel_zoh(w, [1.0, log2], [1.0, 2.0], 1.0, l=4)
    for value in (k, 1 + 0.5 ** np.arange(4)):
        assert right(DIAGONAL_KERNEL_ZOH, value, w, [1.0, log2], [1.0, 2.0], 1.0)
    k = role.dss_exp_kernel(w, [1.0, 2 * log2], 1.0, l=4)
    for value in (k, 1 + 0.5 ** np.arange(4)):
        assert right(DSS_EXP_KERNEL, value, w, [1.0, 2 * log2], 1.0)


@roles
@pytest.mark.parametrize(("w", "root", "gain"), [(-6.0, -0.5, 0.25), (-2 / 3, 0.5, 0.75)])
def test_the_bilinear_map_by_hand(role, w, root, gain):
    value = 4 * gain * root ** np.arange(12.0)
    for k in (role.diagonal_kernel_bilinear([w], [2.0], [2.0], 1.0, l=12), value):
        assert right(DIAGONAL_KERNEL_BILINEAR, k, [w], [2.0], [2.0], 1.0)


@roles
@each_type
@pytest.mark.parametrize("dt", [1.0, 0.25])
def test_a_step_of_minus_two_over_w_leaves_the_first_entry_alone(role, dtype, dt):
    w, B, C = np.array([[-2 / dt]], dtype), np.array([[3]], dtype), np.array([[4]], dtype)
    k = role.diagonal_kernel_bilinear(w, B, C, dt, l=70)
    assert k.tolist() == [[6 * dt] + [0] * 69]  # B̄ = dt B/2
    for place, wanted in ((0, [12 * dt**2 / 8, 2 * dt, 1.5 * dt]), (1, [12 * dt**2 / 8, 0, 0])):
        dk = (np.arange(70) == place).astype(dtype)[None]
        gradients = role.diagonal_kernel_bilinear_vjp(dk, w, B, C, dt, l=70)
        assert [g.ravel().tolist() for g in gradients[:3]] == [[x] for x in wanted]
    dk = (np.arange(70) > 1).astype(dtype)[None]
    assert not any(g.any() for g in role.diagonal_kernel_bilinear_vjp(dk, w, B, C, dt, l=70))


@roles
@pytest.mark.parametrize("name", ["two", "wide", "real", "slow", "growing"])
@each_type
def test_the_bilinear_kernel_is_right_about_minus_two_and_far_beyond(role, dtype, name):
    c = case(DIAGONAL_KERNEL_BILINEAR, dtype, l=200, n=16, w=name, dt="one")
    assert judge(DIAGONAL_KERNEL_BILINEAR, role.diagonal_kernel_bilinear, *c.arrays, l=200).ok


@roles
@pytest.mark.parametrize("op", [DIAGONAL_KERNEL_ZOH, DIAGONAL_KERNEL_BILINEAR], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("l", [32, 33])
def test_a_kernel_is_the_response_of_the_discretized_recurrence_to_an_impulse(op, dtype, l, role):
    c = case(op, dtype, l=l, d=1)
    w, B, C, dt = (a[0] for a in wide(c.arrays))
    rule = "zoh" if op is DIAGONAL_KERNEL_ZOH else "bilinear"
    discretize = getattr(refssm, f"discretize_diagonal_{rule}")
    A_bar, B_bar = discretize(w, B[:, None], np.full(3, dt))
    impulse = np.eye(1, l, dtype=np.longdouble).T
    y = refssm.diagonal_ssm(A_bar, B_bar, C[None], np.zeros((1, 1)), impulse)[:, 0]
    states = refssm.dense_scan(np.diag(A_bar), impulse * B_bar.T)
    for value in (y, (states * C).sum(-1), kernel(role, op)(*c.arrays, l=l)[0]):
        assert right(op, value.astype(dtype), *(a[0] for a in c.arrays))


@roles
@each_type
def test_zero_order_hold_is_the_vandermonde_kernel_of_the_discretized_system(role, dtype):
    w, B, C, dt = case(DIAGONAL_KERNEL_ZOH, dtype).arrays
    h = np.broadcast_to(dt[:, None], w.shape)
    _, B_bar = refssm.discretize_diagonal_zoh(w, B[..., None], h)
    value = refssm.vandermonde_kernel(C * B_bar[..., 0], h * w, l=9)
    for k in (value, role.diagonal_kernel_zoh(w, B, C, dt, l=9)):
        assert right(DIAGONAL_KERNEL_ZOH, k, w, B, C, dt)


@roles
@each_type
def test_dss_exp_is_zero_order_hold_with_an_input_of_one(role, dtype):
    w, C, dt = case(DSS_EXP_KERNEL, dtype).arrays
    held = role.diagonal_kernel_zoh(w, np.ones_like(w), C, dt, l=9)
    assert np.array_equal(role.dss_exp_kernel(w, C, dt, l=9), held)


@roles
@each_type
def test_an_integrator_sums(role, dtype):
    zero, two = np.zeros(1, dtype), np.full(1, 2, dtype)
    assert role.diagonal_kernel_zoh(zero, two, two, 0.5, l=3).tolist() == [2, 2, 2]
    assert role.diagonal_kernel_bilinear(zero, two, two, 0.5, l=3).tolist() == [2, 2, 2]
    assert role.dss_exp_kernel(zero, two, 0.5, l=3).tolist() == [1, 1, 1]


@roles
@pytest.mark.parametrize("dt", [2**-4, 2**-7, 2**-10])
def test_the_two_rules_differ_by_a_twelfth_of_the_square_of_the_step(role, dt):
    w = -1 + 2j
    held, mapped = (kernel(role, op)([w], [1.0], [1.0], dt, l=1)[0] for op in OPERATORS[:2])
    # φ₁(z) − 1/(1 − z/2) = −z²/12 + Σ_{j>2} c_j z^j, |c_j| ≤ 1/12: relative rest |z|/(1 − |z|)
    z = abs(dt * w)
    assert abs((mapped - held) / dt * 12 / (dt * w) ** 2 - 1) <= 2 * z


@each
@roles
@each_type
def test_every_length_begins_with_the_same_entries_call_after_call(op, role, dtype):
    arrays = case(op, dtype).arrays
    first, longer, again = (kernel(role, op)(*arrays, l=l) for l in (37, 74, 37))
    assert np.array_equal(first, again)
    if "causal" in op.traits:
        assert right(op, longer[..., :37], *arrays)


@each
@roles
@pytest.mark.parametrize("l", [1, 2, 63, 64, 65, 256])
def test_even_and_odd_lengths_are_right(op, role, l):
    for dtype in ("float32", "complex128"):
        arrays = case(op, dtype, l=l).arrays
        assert judge(op, kernel(role, op), *arrays, l=l).grade == "A"


@each
@roles
def test_no_steps_and_no_modes(op, role):
    arrays = case(op, "float64").arrays
    assert kernel(role, op)(*arrays, l=0).shape == (2, 0)
    none = [a[..., :0] if dims else a for a, dims in zip(arrays, op.input_dims, strict=True)]
    assert kernel(role, op)(*none, l=3).tolist() == [[0] * 3] * 2
    for some, l in ((arrays, 0), (none, 3)):
        gradients = getattr(role, f"{op}_vjp")(np.ones((2, l)), *some, l=l)
        assert [g.shape for g in gradients] == [a.shape for a in some]
        assert not any(g.any() for g in gradients)


@each
@roles
@pytest.mark.parametrize("length", [-1, 2.0, True, None], ids=repr)
def test_what_is_no_length_is_told(op, role, length):
    with pytest.raises(ValueError, match=f"^{op}: `l` must be an integer >= 0, got "):
        kernel(role, op)(*case(op, "float64").arrays, l=length)


@each
@roles
def test_a_length_may_be_an_integer_of_numpy_and_changes_no_type(op, role):
    k = kernel(role, op)(*case(op, "float32").arrays, l=np.int64(3))
    assert (k.shape, k.dtype) == ((2, 3), np.float32)


@pytest.mark.parametrize("op", [*EXPONENTIAL, EMA_KERNEL], ids=str)
@roles
def test_what_must_be_real_is_told(op, role):
    arrays = case(op, "complex128").arrays
    name = "dt" if "dt" in op.inputs else "alpha"
    i = [*op.inputs].index(name)
    arrays[i] = arrays[i] + 1j
    with pytest.raises(TypeError, match=f"^{op}: `{name}`"):
        kernel(role, op)(*arrays, l=3)


@pytest.mark.parametrize("op", EXPONENTIAL, ids=str)
@roles
@each_type
def test_nan_in_one_mode_reaches_every_step_of_its_member(op, role, dtype):
    for i, dims in enumerate(op.input_dims):
        arrays = case(op, dtype).arrays
        arrays[i][(0, 1) if dims else (0,)] = np.nan
        assert kind_of(kernel(role, op)(*arrays, l=4)).tolist() == [[2] * 4, [0] * 4]


@each
@roles
def test_the_gradients_are_the_oracles_also_where_an_argument_is_real(op, role):
    vjp = getattr(role, f"{op}_vjp")
    names = [n for n, domain in op.inputs.items() if not domain.real]
    for real in [(), *((n,) for n in names)]:
        c = case(op, "complex128")
        knobs = {n: Knob(k.map, "each", k.real or n in real) for n, k in c.knobs.items()}
        assert adjoint_slip(op, vjp, Case(op, c.dtype, c.sizes, c.batch, knobs, 1)) <= ALLOWED


@each
@roles
def test_types_follow_the_arguments(op, role):
    free = [n for n, domain in op.inputs.items() if not domain.real]
    for types in product(("float32", "complex64", "complex128"), repeat=len(free)):
        given = dict(zip(free, types, strict=True))
        arrays = [
            np.full((2,) if dims else (), 0.5, given.get(name, "float32"))
            for name, dims in zip(op.inputs, op.input_dims, strict=True)
        ]
        common = np.result_type(*arrays)
        k = kernel(role, op)(*arrays, l=3)
        gradients = getattr(role, f"{op}_vjp")(k, *arrays, l=3)
        assert k.dtype == common
        assert [g.dtype.kind for g in gradients] == [a.dtype.kind for a in arrays]
        assert {np.finfo(g.dtype).dtype for g in gradients} == {np.finfo(common).dtype}


@each
def test_long_double_stays_long_double_in_the_references_and_the_mirrors_refuse_it(op):
    arrays = wide(case(op, "float64").arrays)
    k = kernel(diagonal, op)(*arrays, l=3)
    assert k.dtype == np.longdouble
    assert not np.array_equal(k, k.astype(float))
    assert all(g.dtype == np.longdouble for g in op.vjp()(k, *arrays, l=3))
    with pytest.raises(TypeError, match=f"^{op}: `.*` has dtype"):
        kernel(jit, op)(*arrays, l=3)
