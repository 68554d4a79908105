"""Bounds of DPLR kernels: programs satisfy them, derivatives match the VJPs, bugs exceed them."""

import numpy as np
import pytest
from honest.dplr import kernel as honest

import refssm
from refssm.conformance.gauges import dplr as tracked_kernels
from refssm.conformance.gauges.contracts import BOUNDS
from refssm.conformance.gauges.dplr import _from_inputs, _from_inputs_in_time, _System
from refssm.conformance.gauges.gauge import TrackedCall
from refssm.conformance.gauges.tracked import Tracked, tracing
from refssm.conformance.judging.grading import judge
from refssm.dplr import DPLR_KERNEL
from refssm.dplr.aliased import dplr_aliased_spectrum

U = 2.0**-24
SIZES = [(4, 0.1, 64), (16, 1e-3, 1024), (64, 1e-2, 256)]
FORMS = [honest.recurrent, honest.doubled, honest.steps_of_low_rank, honest.woodbury]


def legs(n, dt):
    """LegS with a random C, in complex64."""
    w, P, B, _ = refssm.nplr_legs(n=n)
    C = np.random.default_rng(n).standard_normal(n) + 0j
    return [*(x.astype(np.complex64) for x in (w, P, P, B, C)), np.array(dt, np.float32)]


def gauge_of(op, arrays, l):
    """The derived gauge; that of `dplr_kernel` stands behind a measured one."""
    (gauge,) = BOUNDS[op.contract].outputs(TrackedCall(op, arrays, {"l": l}, unit=U, floor=0.0))
    return gauge


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize(("n", "dt", "l"), SIZES)
def test_programs_in_single_precision_stay_within_the_bound_of_a_kernel(n, dt, l, form):
    arrays = legs(n, dt)
    gauge = gauge_of(DPLR_KERNEL, arrays, l)
    assert (np.abs(form(*arrays, l=l) - gauge.value) <= U * gauge.k0).all()


@pytest.mark.parametrize(("n", "dt", "l"), SIZES)
def test_programs_in_single_precision_stay_within_the_bounds_of_a_spectrum(n, dt, l):
    arrays = legs(n, dt)
    wide = [x.astype(np.result_type(x, np.float64)) for x in arrays]
    with tracing(unit=U, floor=0.0):
        spectrum = dplr_aliased_spectrum(*map(Tracked, wide), l=l)
    got = np.fft.fft(honest.woodbury_aliased(*arrays, l=l).astype(complex))
    transform = np.log2(2 * l) * np.linalg.norm(got)
    assert (np.abs(got - spectrum.value) <= U * (spectrum.errors[..., 0] + transform)).all()


@pytest.mark.parametrize(("n", "dt", "l"), SIZES)
def test_a_kernel_of_legs_that_is_off_by_a_hundredth_is_refused_in_single_precision(n, dt, l):
    arrays = legs(n, dt)
    K = refssm.dplr_kernel(*arrays, l=l)
    assert judge(DPLR_KERNEL, lambda *_, l: K, *arrays, l=l).grade == "A"
    off = (K * np.float32(1.01)).astype(K.dtype)
    assert not judge(DPLR_KERNEL, lambda *_, l: off, *arrays, l=l).ok


@pytest.mark.long
def test_a_bound_without_the_roundings_of_a_power_is_exceeded(monkeypatch):
    arrays, l = legs(64, 1e-3), 4096
    allowed = gauge_of(DPLR_KERNEL, arrays, l).k0.max()
    monkeypatch.setattr(tracked_kernels, "_through_time", lambda *_: 0.0)
    gauge = gauge_of(DPLR_KERNEL, arrays, l)
    assert gauge.k0.max() < allowed
    error = np.abs(honest.doubled(*arrays, l=l) - gauge.value)
    monkeypatch.setattr(tracked_kernels, "_at_nodes", lambda *_: 0.0)
    assert not (error <= U * gauge_of(DPLR_KERNEL, arrays, l).k0).all()


def system(seed):
    """Three modes of rank 1, in double precision, and directions for their inputs."""
    draw = np.random.default_rng(seed)
    parts = draw.standard_normal((2, 3, 5))
    w, P, Q, B, C = np.moveaxis(parts[0] + 1j * parts[1], -1, 0)
    w = -np.abs(w.real) + 1j * w.imag
    return _System(w, P[:, None], Q[:, None], B, C, np.array(0.3))


def only(argument):
    """Errors of 1 for each entry of one argument, and 0 for the others."""
    some = system(0)
    return _System(
        *(np.ones(x.shape) * (name == argument) for name, x in zip(some._fields, some, strict=True))
    )


@pytest.mark.parametrize("argument", ["B", "C", "dt"])
@pytest.mark.parametrize("seed", range(3))
def test_what_an_error_of_an_input_does_to_a_kernel_is_its_derivative(seed, argument):
    some, l = system(seed), 7
    x, g = powers_of(some, l)
    reached = _from_inputs_in_time(some, only(argument), x, g)
    for k in range(l):
        gradients = refssm.dplr_kernel_vjp(np.eye(l)[k] + 0j, *some, l=l)
        derivative = gradients[some._fields.index(argument)]
        if argument == "dt":  # real: the VJP has only the real part
            other = refssm.dplr_kernel_vjp(np.eye(l)[k] * 1j, *some, l=l)[5]
            derivative = np.hypot(derivative, other)
        size = np.abs(derivative).sum()
        assert abs(reached[k] - size) <= 100 * 2.0**-53 * max(size, np.abs(reached).max())


@pytest.mark.parametrize("argument", ["w", "P", "Q"])
@pytest.mark.parametrize("seed", range(3))
def test_what_an_error_of_the_matrix_does_to_a_kernel_is_no_less_than_its_derivative(
    seed, argument
):
    some, l = system(seed), 7
    reached = _from_inputs_in_time(some, only(argument), *powers_of(some, l))
    for k in range(l):
        gradients = refssm.dplr_kernel_vjp(np.eye(l)[k] + 0j, *some, l=l)
        direction = gradients[some._fields.index(argument)]
        assert 0 < np.linalg.norm(direction) <= np.sqrt(3) * reached[k]
    assert 0 < reached.max() < 1e3 * np.linalg.norm(direction)


def powers_of(some, l):
    w, P, Q, B, _, dt = some
    E, B_bar = tracked_kernels.bilinear(w, P, Q, B, dt)
    A_bar = np.eye(3) - E
    return tracked_kernels._powers(A_bar, B_bar, l), tracked_kernels._powers(A_bar.T, some.C, l)


@pytest.mark.parametrize("argument", _System._fields)
@pytest.mark.parametrize("seed", range(3))
def test_what_an_error_of_an_input_does_to_a_spectrum_is_its_derivative(seed, argument):
    some, l = system(seed), 6
    at = tracked_kernels._solved(some, some.C, l)
    reached = _from_inputs(only(argument), some.dt, at)
    for j in range(l):
        derivative = np.zeros(())
        for unit in (1, 1j):  # dK with a transform of one at node j; both parts for a real dt
            dK = unit * np.exp(2j * np.pi * j * np.arange(l) / l)  # Re⟨dK, K⟩ belongs to node j
            gradients = refssm.dplr_kernel_aliased_vjp(dK, *some, l=l)
            derivative = np.hypot(derivative, np.abs(gradients[some._fields.index(argument)]))
        turns = 1 if argument == "dt" else np.sqrt(2)
        size = np.sum(derivative) / turns
        assert abs(reached[j] - size) <= 200 * 2.0**-53 * max(size, 1)


def test_a_result_at_a_pole_of_the_diagonal_part_is_bounded():
    w, P, B, _ = refssm.nplr_fourier(n=6)
    C = np.ones(6) + 0j
    arrays = [x.astype(np.complex64) for x in (w, P, P, B, C)] + [np.array(0.25, np.float32)]
    gauge = gauge_of(DPLR_KERNEL, arrays, 8)
    assert (gauge.k0 < 100 * np.abs(gauge.value).max()).all()
