"""S4's kernels of conjugate pairs: real systems stored by halves, which low rank couples."""

import numpy as np
import pytest

import refssm
import refssm.jit.dplr as jit
from refssm import dplr, initial
from refssm.conformance.cases.case import Case, Knob
from refssm.conformance.gauges.gauge import gauges
from refssm.conformance.gauges.tracked import Tracked
from refssm.conformance.judging.certificate import adjoint_slip
from refssm.conformance.judging.grading import judge
from refssm.conformance.standard import C as ALLOWED
from refssm.dplr import (
    DPLR_KERNEL,
    DPLR_KERNEL_ALIASED,
    DPLR_KERNEL_ALIASED_REAL,
    DPLR_KERNEL_REAL,
)
from refssm.dplr.pairs import both_halves, dplr_aliased_real_spectrum, dplr_real_spectrum, of_stored

PAIRS = {DPLR_KERNEL_REAL: DPLR_KERNEL, DPLR_KERNEL_ALIASED_REAL: DPLR_KERNEL_ALIASED}
SPECTRA = {
    DPLR_KERNEL_REAL: dplr_real_spectrum,
    DPLR_KERNEL_ALIASED_REAL: dplr_aliased_real_spectrum,
}
PLAIN = {"w": "near", "Q": "near", "dt": "usual"}
each = pytest.mark.parametrize("op", PAIRS, ids=str)
roles = pytest.mark.parametrize("role", [dplr, jit], ids=["reference", "jit"])
each_type = pytest.mark.parametrize("dtype", ["complex64", "complex128"])


def system(n=4, r=2, dtype="complex128", seed=0, batch=()):
    """A damped system with any Q: w, P, Q, B, C and dt."""
    rng, kind = np.random.default_rng(seed), np.dtype(dtype)

    def normal(*shape):
        x = rng.standard_normal(shape)
        return x + 1j * rng.standard_normal(shape) if kind.kind == "c" else x

    w = -1 - rng.random(n) + (5j * rng.random(n) if kind.kind == "c" else 0)
    P, Q, B, C = normal(n, r) / 4, normal(*batch, n, r) / 4, normal(*batch, n), normal(n)
    w, P, Q, B, C = (x.astype(kind) for x in (w, P, Q, B, C))
    return w, P, Q, B, C, np.array(0.1, np.finfo(kind).dtype)


def in_real_parts(w, P, Q, B, C, dt, l):
    """The kernel of the real and imaginary parts of y = w x − 2 P Re(Qᴴ x), step by step."""
    A = np.block([[np.diag(w.real), -np.diag(w.imag)], [np.diag(w.imag), np.diag(w.real)]])
    A = A - 2 * np.concatenate([P.real, P.imag]) @ np.concatenate([Q.real, Q.imag]).T
    M, K = np.eye(len(A)) - dt * A / 2, []
    x = np.linalg.solve(M, dt * np.concatenate([B.real, B.imag]))
    for _ in range(l):
        K.append(2 * np.concatenate([C.real, -C.imag]) @ x)
        x = np.linalg.solve(M, x + dt * A @ x / 2)
    return np.array(K)


@each
@roles
@each_type
def test_it_is_the_kernel_of_both_modes_of_every_pair(op, role, dtype):
    arrays = system(dtype=dtype)
    whole = PAIRS[op].reference(*both_halves(*arrays[:-1]), arrays[-1], l=40)
    assert judge(op, lambda *_, **__: whole.real.copy(), *arrays, l=40).ok
    assert judge(op, getattr(role, op.name), *arrays, l=40).grade == "A"


@pytest.mark.parametrize("r", [0, 1, 2, 3])
def test_it_is_the_kernel_of_the_real_system_of_real_and_imaginary_parts(r):
    arrays = system(r=r)
    K = in_real_parts(*arrays, 33)
    assert judge(DPLR_KERNEL_REAL, lambda *_, **__: K, *arrays, l=33).grade == "A"
    folded = in_real_parts(*arrays, 33 * 40).reshape(40, 33).sum(0)  # e^(−0.1·1320) is below 2^-53
    assert judge(DPLR_KERNEL_ALIASED_REAL, lambda *_, **__: folded, *arrays, l=33).grade == "A"


@each
def test_without_low_rank_it_is_twice_the_real_part_and_with_it_not(op):
    for r, same in ((0, True), (1, False)):
        arrays = system(r=r)
        half = 2 * PAIRS[op].reference(*arrays, l=16).real
        assert judge(op, lambda *_, half=half, **__: half, *arrays, l=16).ok == same


def test_without_low_rank_it_is_the_kernel_of_s4d():
    w, P, Q, B, C, dt = system(r=0)
    K = refssm.diagonal_kernel_bilinear_real(w, B, C, dt, l=24)
    assert judge(DPLR_KERNEL_REAL, lambda *_, **__: K, w, P, Q, B, C, dt, l=24).ok


@each
@roles
def test_the_result_is_real_in_the_precision_of_the_arguments(op, role):
    for dtype in ("float32", "float64", "complex64", "complex128"):
        arrays = system(dtype=dtype)
        for l in (0, 1, 5):
            K = getattr(role, op.name)(*arrays, l=l)
            assert (K.dtype, K.shape) == (arrays[-1].dtype, (l,))


@each
@roles
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("r", [0, 1, 2, 3])
def test_any_rank_at_any_length(op, role, dtype, r):
    for l in (1, 2, 3, 16, 31):
        arrays = system(r=r, dtype=dtype)
        assert judge(op, getattr(role, op.name), *arrays, l=l).grade == "A"


@each
@roles
def test_a_real_mode_counts_twice(op, role):
    arrays = system(n=2, r=0, dtype="float64")
    alone = PAIRS[op].reference(*arrays, l=8)
    assert judge(op, lambda *_, **__: 2 * alone, *arrays, l=8).ok
    assert not judge(op, lambda *_, **__: alone, *arrays, l=8).ok
    assert judge(op, getattr(role, op.name), *arrays, l=8).grade == "A"


@pytest.mark.parametrize("measure", ["legs", "legt", "lagt"])
@roles
def test_hippo_systems_by_one_mode_of_each_pair(measure, role):
    n, read = 16, np.random.default_rng(1).standard_normal(32)
    made = initial.dplr(measure, n=2 * n)
    order = np.argsort(-made["w"].imag, kind="stable")
    w, P, B, C, dt = made["w"], made["P"], made["B"], read @ made["V"], np.array(0.01)
    half = [x[order[:n]] for x in (w, P, P, B, C)]
    K = refssm.dplr_kernel(w, P, P, B, C, dt, l=128)
    assert np.abs(K.imag).max() < 1e-9 * np.abs(K).max()
    assert judge(DPLR_KERNEL_REAL, lambda *_, **__: K.real.copy(), *half, dt, l=128).ok
    assert judge(DPLR_KERNEL_REAL, role.dplr_kernel_real, *half, dt, l=128).grade == "A"


@pytest.mark.long
@each
@roles
@pytest.mark.parametrize("l", [1, 8, 9])
def test_the_gradients_are_the_oracles_also_where_an_argument_is_real(op, role, l):
    vjp = getattr(role, f"{op}_vjp")
    for real in ((), ("w",), ("P", "Q"), ("B",), ("C",)):
        knobs = {
            name: Knob(PLAIN.get(name, "normal"), "each", domain.real or name in real)
            for name, domain in op.inputs.items()
        }
        kind, sizes = np.dtype("complex128"), {"l": l, "n": 3, "r": 2}
        assert adjoint_slip(op, vjp, Case(op, kind, sizes, {"d": 2}, knobs, 1)) <= ALLOWED


@each
@roles
def test_gradients_have_the_shapes_and_types_of_their_arguments(op, role):
    for dtype in ("float32", "complex64"):
        for arrays, l in ((system(dtype=dtype, batch=(3,)), 4), (system(n=0, dtype=dtype), 2)):
            K = getattr(refssm, op.name)(*arrays, l=l)
            for g, x in zip(getattr(role, f"{op}_vjp")(K, *arrays, l=l), arrays, strict=True):
                assert (g.shape, g.dtype) == (x.shape, x.dtype)


@each
def test_both_halves_of_the_gradient_are_conjugates(op):
    w, P, Q, B, C, dt = system()
    dk = np.cos(np.arange(9.0))
    whole = PAIRS[op].bare_vjp(dk, *both_halves(w, P, Q, B, C), dt, l=9)
    for g, both in zip(of_stored(*whole)[:-1], whole, strict=False):
        first = both[: len(both) // 2]
        assert np.abs(g - 2 * first).max() <= 1e-12 * np.abs(g).max()


@each
def test_a_complex_cotangent_of_the_real_result_is_refused(op):
    vjp = getattr(refssm, f"{op}_vjp")
    with pytest.raises(TypeError, match="`dk` is complex, but `k` is real"):
        vjp(np.ones(5) + 1j, *system(), l=5)


@pytest.mark.parametrize("w", [0.0, -2j, -1.0])
def test_a_mode_met_by_a_node_is_no_obstacle(w):
    half, zeros = np.array([w, -3 + 1j]), np.zeros((2, 1))
    arrays = half, zeros, zeros, np.ones(2), np.array([1.0, 2j]), np.array(1.0)
    for role in (dplr, jit):
        assert judge(DPLR_KERNEL_REAL, role.dplr_kernel_real, *arrays, l=8).grade == "A"


def test_a_node_exactly_at_a_pole_of_the_aliased_kernel_goes_to_the_reference():
    w, P = np.array([-2j, -3 + 1j]), np.array([[0.5 + 0.5j], [1.0]])  # Ā = −i for dt = 1
    arrays = w, P, P, np.ones(2) + 0j, np.array([1.0, 2j]), np.array(1.0)
    for l in (4, 8):
        wanted = dplr.dplr_kernel_aliased_real(*arrays, l=l)
        assert np.isfinite(wanted).all()
        assert np.array_equal(jit.dplr_kernel_aliased_real(*arrays, l=l), wanted)
        found = jit.dplr_kernel_aliased_real_vjp(wanted, *arrays, l=l)
        again = dplr.dplr_kernel_aliased_real_vjp(wanted, *arrays, l=l)
        assert all(np.array_equal(g, h) for g, h in zip(found, again, strict=True))


def test_one_integrator_of_both_halves_by_hand():
    # w = 0 without low rank: K_k = 2 Re(C B) dt at every step
    arrays = np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)), np.array([3 + 1j]), np.array([1j])
    K = np.full(5, -0.5)
    assert judge(DPLR_KERNEL_REAL, lambda *_, **__: K, *arrays, np.array(0.25), l=5).ok


@each
def test_the_spectrum_of_tracked_arrays_is_that_of_arrays(op):
    arrays = system()
    spectrum = SPECTRA[op]
    (gauge,) = gauges(spectrum, *arrays, unit=2.0**-53, l=7)
    assert np.array_equal(gauge.value, spectrum(*arrays, l=7))
    assert np.isfinite(gauge.k0).all()
    assert (gauge.k0 >= np.abs(gauge.value)).all()
    assert (gauge.k1 > gauge.k0).all()


def test_tracked_halves_keep_their_errors():
    arrays = [Tracked(x, np.stack([np.abs(x), 2 * np.abs(x)], -1)) for x in system()[:-1]]
    for whole, x in zip(both_halves(*arrays), arrays, strict=True):
        n = len(x)
        assert np.array_equal(whole.value, np.concatenate([x.value, x.value.conj()]))
        assert np.array_equal(whole.errors[:n], x.errors)
        assert np.array_equal(whole.errors[n:], x.errors)
