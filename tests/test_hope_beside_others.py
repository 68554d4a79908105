"""HOPE's operators compared with each other: kernel and stream, aliased kernel, identification."""

from typing import Any

import numpy as np
import pytest
from recurrences import random
from scipy.linalg import expm
from scipy.signal import cont2discrete, dlsim

import refssm
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import judge
from refssm.conformance.standard import C as ALLOWED
from refssm.hope import HOPE_KERNEL, HOPE_KERNEL_ALIASED, HOPE_STREAM

matrices: Any = cont2discrete  # SciPy does not say the type of its result
U = 2.0**-53
STEPS = [np.float64(dt) for dt in (0.05, 0.5, 1.0, 4.0)]
each_step = pytest.mark.parametrize("dt", STEPS)
each_type = pytest.mark.parametrize("dtype", ["float64", "complex128"])


def impulse(l, dtype=float):
    return (np.arange(l) == 0).astype(dtype)


@each_step
@each_type
def test_the_kernel_is_what_the_stream_answers_to_an_impulse(dt, dtype):
    (h,) = random(1, (5,), dtype=dtype)
    K, y = refssm.hope_kernel(h, dt, l=40), refssm.hope_stream(h, dt, impulse(40))
    verdict = judge(HOPE_KERNEL, lambda *_, **__: y, h, dt, l=40)
    assert verdict.ok, verdict.message
    verdict = judge(HOPE_STREAM, lambda *_: K, h, dt, impulse(40))
    assert verdict.ok, verdict.message


@each_step
@each_type
def test_the_stream_is_the_causal_convolution_with_the_kernel(dt, dtype):
    h, u = random(2, (5,), (40,), dtype=dtype)
    y = refssm.causal_convolution_direct(u, refssm.hope_kernel(h, dt, l=40))
    verdict = judge(HOPE_STREAM, lambda *_: y, h, dt, u)
    assert verdict.ok, verdict.message


@each_step
@pytest.mark.parametrize("l", [1, 7, 16])
def test_the_wrapped_kernel_is_the_sum_of_all_turns_of_the_kernel(dt, l):
    (h,) = random(3, (4,))
    turns = 1
    while refssm.hope_tail(h, dt, l=l * turns) > U**2:  # the rest is negligible
        turns *= 2
    K = refssm.hope_kernel(h, dt, l=l * turns).reshape(turns, l).sum(0)
    # turns cancel: the sum has the errors of all of them
    (kernel,) = expect(HOPE_KERNEL, (h, dt), {"l": l * turns})
    allowed = ALLOWED * U * kernel.k0.reshape(turns, l).sum(0)
    assert (np.abs(K - refssm.hope_kernel_aliased(h, dt, l=l)) <= allowed).all()
    short = judge(HOPE_KERNEL_ALIASED, refssm.hope_kernel, h, dt, l=l)
    assert short.ok == (dt == 1 and l > len(h))  # only taps end within one period


@each_step
def test_at_a_fixed_step_the_kernel_does_not_depend_on_the_length(dt):
    (h,) = random(4, (6,))
    long = refssm.hope_kernel(h, dt, l=100)
    for l in (1, 6, 40):
        assert np.array_equal(refssm.hope_kernel(h, dt, l=l), long[:l])


def driven(system, u):
    """SciPy's output of a discrete system."""
    return dlsim(system, u)[1].ravel()


class Identified:
    """The system that the Ho-Kalman method finds from a window of l samples, and its error.

    With U Σ Vᴴ of H + δ, ‖δ‖ ≤ d, and H = O R, L = Σ^{−½} Uᴴ O has L R V Σ^{−½} = I − F, ‖F‖ ≤
    d/σ_r. So the result is L A L⁻¹ (I − F) + e, ‖e‖ ≤ d/σ_r: similar to the true A with an error of
    (1 + ‖A‖) d/σ_r; B and C have errors of d/√σ_r plus ‖C‖ d/σ_r.
    """

    def __init__(self, h, dt, l):
        n, K = len(h), refssm.hope_kernel(h, dt, l=l + 1)
        exact = refssm.hope_kernel(h.astype(np.longdouble), np.longdouble(dt), l=l + 1)
        self.D, (self.A, self.B, self.C) = K[0], refssm.ho_kalman(K[1:], n)
        place = np.add.outer(np.arange(l // 2), np.arange(l - l // 2))
        sigma = np.linalg.svd(K[1:][place], compute_uv=False)
        # entries as measured; errors of the decomposition and two products: l u times the norm each
        d = l * float(np.abs(exact - K).max()) + 3 * l * U * np.sqrt((sigma**2).sum())
        self.off = d / sigma[n - 1]
        self.edges = d / np.sqrt(sigma[n - 1]) + np.linalg.norm(self.C) * self.off
        self.condition = np.linalg.cond(self.A + np.eye(n))
        # the bilinear map and its inverse: four solves of n roundings, and one product per step
        self.room = (1 + np.linalg.norm(self.A, 2)) * self.off + 8 * n * U * self.condition

    def continuous(self, dt):
        return refssm.inverse_bilinear(self.A, self.B, self.C, self.D, 2 * dt)


SAMPLED = [(np.array([1.0, -0.5, 0.75, 2.0]), dt) for dt in (0.25, 0.5, 1.0, 2.0)]
each_window = pytest.mark.parametrize(("h", "dt"), SAMPLED, ids=[f"dt={dt}" for _, dt in SAMPLED])


@each_window
def test_a_window_of_the_kernel_identifies_poles_at_minus_one(h, dt):
    n, found = len(h), Identified(h, dt, 24)
    A = found.continuous(dt)[0]
    N = A + np.eye(n)  # similar to a nilpotent matrix plus an error e
    inverse = np.linalg.norm(np.linalg.inv(found.A + np.eye(n)), 2)
    e = 2 / dt * inverse**2 * found.room
    # an eigenvalue r has 1 ≤ e ‖(r − N)⁻¹‖ ≤ e Σ_{k<n} ‖N^k‖/|r|^{k+1}; factor 2 for the found N
    sizes = [np.linalg.norm(np.linalg.matrix_power(N, k), 2) for k in range(n)]
    farthest = np.roots([1, *(-2 * e * s for s in sizes)]).real.max()
    assert farthest < 1  # all eigenvalues are stable
    assert np.abs(np.linalg.eigvals(A) + 1).max() <= farthest
    # the true system has exactly these eigenvalues
    assert np.array_equal(np.linalg.eigvals(refssm.hope_system(h)[0]), -np.ones(n))


@each_window
def test_what_a_window_identifies_goes_on_as_the_kernel_does_beyond_it(h, dt):
    n, l, found = len(h), 16, Identified(h, dt, 16)
    A, B, C, D = found.continuous(dt)
    discrete = matrices((A, B[:, None], C[None], [[D]]), 2 * dt, "bilinear")[:4]
    y = driven((*discrete, 1.0), impulse(4 * l))
    wanted = refssm.hope_kernel(h, dt, l=4 * l)
    p = [np.linalg.norm(np.linalg.matrix_power(found.A, k), 2) for k in range(4 * l)]
    b, c = np.linalg.norm(found.B), np.linalg.norm(found.C)
    # Â^k − A^k = Σ_i Â^i E A^{k−1−i}; factor 2 for powers of the found A
    moved = [sum(p[i] * p[k - 1 - i] for i in range(k)) * found.room for k in range(4 * l)]
    room = 2 * np.array(
        [c * b * m + (c + b) * found.edges * q for m, q in zip(moved, p, strict=True)]
    )
    edges = np.append(np.abs(wanted).max() * 8 * n * U * found.condition, room[:-1])
    # errors of the kernel: five roundings per step and stage, which all-passes do not amplify
    kernel = 5 * n * 4 * l * U * np.abs(h).sum()
    assert (np.abs(y - wanted) <= edges + kernel).all()
    # the output is not zero, except for taps
    assert dt == 1 or (np.abs(wanted) > edges + kernel)[l : l + 4].all()


@each_window
def test_its_impulse_response_in_continuous_time_is_that_of_the_system_sampled(h, dt):
    n, found = len(h), Identified(h, dt, 24)
    A, B, C, _ = found.continuous(dt)
    wanted_A, wanted_B, wanted_C, _ = refssm.hope_system(h)
    N = A + np.eye(n)
    inverse = np.linalg.norm(np.linalg.inv(found.A + np.eye(n)), 2)
    e, scale = 2 / dt * inverse**2 * found.room, np.sqrt(2 / dt) * inverse
    ends = scale * (found.edges + inverse * found.room * max(map(np.linalg.norm, (B, C))))
    b, c = np.linalg.norm(B), np.linalg.norm(C)
    for t in (0.5, 5.0, 24 * 2 * dt, 40 * 2 * dt):
        y, wanted = C @ expm(t * A) @ B, wanted_C @ expm(t * wanted_A) @ wanted_B
        # ‖e^{tA}‖ ≤ e^{−t} Σ_{k<n} ‖tN‖^k; the difference is an integral over [0, t] of two of
        # these
        size = np.exp(-t) * sum((t * np.linalg.norm(N, 2)) ** k for k in range(n))
        moved = np.exp(-t) * t * e * (size * np.exp(t)) ** 2
        assert abs(y - wanted) <= 2 * (c * b * moved + (b + c) * ends * size)
