"""Planted bugs in dense discretizations and their gradients."""

import numpy as np

from refssm._expm import expm
from refssm.conformance.planted.discretize.every_rule import (
    FIRST_STEP,
    INPUTS_ROLLED,
    STATE_IGNORED,
    input_ignored,
    matrices,
    planted,
    with_step,
    without_last,
)
from refssm.conformance.planted.planting import instead, of_result
from refssm.discretize import DISCRETIZE_BILINEAR, DISCRETIZE_ZOH
from refssm.discretize.blocks import identity, scaled

ZOH, BILINEAR = planted(DISCRETIZE_ZOH), planted(DISCRETIZE_BILINEAR)


def resolvent(A, dt, share=1.0):
    """(I − share dt A)⁻¹."""
    return np.linalg.inv(identity(A) - A.dtype.type(share) * scaled(A, dt))


def explicit(A, dt, share=1.0):
    """I + share dt A."""
    return identity(A) + A.dtype.type(share) * scaled(A, dt)


def unit(A, dt):
    """I."""
    return explicit(A, 0 * dt)


def taylor(A, dt, degree):
    """The exponential's polynomial, not scaled."""
    E = term = unit(A, dt)
    for k in range(1, degree + 1):
        term = term @ scaled(A, dt) / A.real.dtype.type(k)
        E = E + term
    return E


def exact(A, dt):
    """e^{dt A}."""
    return expm(scaled(A, dt))


def textbook(A, dt, added=0.0):
    """A⁻¹ (e^{dt A} − I)/dt: no inverse where A is singular, but of A with something added."""
    above = A + identity(A) * A.real.dtype.type(added)
    return np.linalg.solve(above, exact(A, dt) - identity(A)) / matrices(dt)


def inverted(A, dt):
    """(I + ½dt A)⁻¹."""
    return np.linalg.pinv(explicit(A, dt, 0.5))


def second_order(A, dt):
    """I + ½dt A + (½dt A)²."""
    half = scaled(A, dt) / 2
    return explicit(A, dt, 0.5) + half @ half


def _state(A_bar):
    """Another Ā, and the right B̄."""
    return lambda right, A, B, dt: (A_bar(A, dt), right(A, B, dt)[1])


def _input(held):
    """The right Ā, and B̄ = dt times another matrix times B."""
    return lambda right, A, B, dt: (right(A, B, dt)[0], scaled(held(A, dt) @ B, dt))


def _rule(A_bar, held):
    """Both of them others."""
    return lambda right, A, B, dt: (A_bar(A, dt), scaled(held(A, dt) @ B, dt))


ZOH.plant(
    ("euler_input", "Euler for ZOH: B̄ = dt B", _input(unit)),
    ("euler", "Euler for ZOH", _rule(explicit, unit)),
    ("bilinear", "the bilinear map for ZOH", instead(DISCRETIZE_BILINEAR.reference)),
    ("backward", "backward Euler for ZOH", _rule(resolvent, resolvent)),
    ("trapezoid", "½ (I + Ā) dt B", _input(lambda A, dt: (exact(A, dt) + identity(A)) / 2)),
    ("midpoint", "e^{½dt A} dt B", _input(lambda A, dt: exact(A, dt / 2))),
    ("textbook", "A⁻¹ (Ā − I) B: A = 0 has no inverse", _input(textbook)),
    ("regularized", "A⁻¹ (Ā − I) B with A + 1e-6 I",
     _input(lambda A, dt: textbook(A, dt, added=1e-6))),
    ("elementwise", "the exponential of each entry", _state(lambda A, dt: np.exp(scaled(A, dt)))),
    ("cubic", "a Taylor polynomial of degree 3", _state(lambda A, dt: taylor(A, dt, 3))),
    ("unscaled", "a Taylor polynomial without scaling", _state(lambda A, dt: taylor(A, dt, 12))),
    ("first_order_hold", "φ₁ to first order", _input(lambda A, dt: explicit(A, dt, 0.5))),
    ("inverse_time", "e^{−dt A}", _state(lambda A, dt: exact(-A, dt))),
)  # fmt: skip
BILINEAR.plant(
    ("zoh", "ZOH for the bilinear map", instead(DISCRETIZE_ZOH.reference)),
    ("euler", "Euler for the bilinear map", _rule(explicit, unit)),
    ("backward", "backward Euler", _rule(resolvent, resolvent)),
    ("inverted", "the map's sign: (I − ½dt A)/(I + ½dt A)",
     _rule(lambda A, dt: inverted(A, dt) @ explicit(A, dt, -0.5), inverted)),
    ("half_forgotten", "dt A for ½dt A",
     _rule(lambda A, dt: resolvent(A, dt) @ explicit(A, dt), resolvent)),
    ("input_half", "½dt B for dt B", _input(lambda A, dt: resolvent(A, dt, 0.5) / 2)),
    ("input_unsolved", "B̄ = dt B", _input(unit)),
    ("input_of_backward", "B̄ of backward Euler", _input(resolvent)),
    ("input_twice", "the resolvent applied to B twice",
     _input(lambda A, dt: resolvent(A, dt, 0.5) @ resolvent(A, dt, 0.5))),
    ("neumann", "the resolvent to second order",
     _state(lambda A, dt: second_order(A, dt) @ explicit(A, dt, 0.5))),
    ("tustin_root", "√dt B for dt B",
     with_step(lambda dt, A_bar, B_bar: (A_bar, B_bar / np.sqrt(matrices(dt))))),
)  # fmt: skip


def transposed(A):
    """Aᵀ."""
    return A.swapaxes(-1, -2).copy()


def _clipped(A):
    return A - identity(A) * np.maximum(A.real + 1e-2, 0)


def _first_64(y):
    return y * (np.arange(y.shape[-2]) < 64)[:, None]


ARGUMENTS = [
    FIRST_STEP,
    ("transposed", "Aᵀ for A", {"A": transposed}),
    ("diagonal_only", "the diagonal of A", {"A": lambda A: A * identity(A)}),
    ("clipped", "the diagonal of A clipped at −1e-2", {"A": _clipped}),
    ("upper_zeroed", "A taken as lower triangular", {"A": np.tril}),
]
RESULTS = [
    INPUTS_ROLLED,
    ("result_transposed", "Āᵀ for Ā", of_result(lambda A_bar, B_bar: (transposed(A_bar), B_bar))),
    ("input_unscaled", "B̄/dt for B̄",
     with_step(lambda dt, A_bar, B_bar: (A_bar, B_bar / matrices(dt)))),
    ("identity_missing", "Ā − I", of_result(lambda A_bar, B_bar: (A_bar - identity(A_bar), B_bar))),
    ("swapped", "B̄ before Ā", of_result(lambda A_bar, B_bar: (B_bar, A_bar))),
    ("input_held_back", "B̄ = Ā times what it should be",
     of_result(lambda A_bar, B_bar: (A_bar, A_bar @ B_bar))),
    ("last_state", "the last row not written",
     of_result(lambda A_bar, B_bar: (without_last(A_bar), B_bar))),
    ("beyond_64", "rows beyond 64 not written", 
     of_result(lambda A_bar, B_bar: (A_bar, _first_64(B_bar)))),
]  # fmt: skip
GRADIENTS = [
    ("transposed", "dAᵀ for dA", {"A": transposed}),
    ("step_forgotten", "dA without the factor dt",
     with_step(lambda dt, dA, dB, ddt: (dA / matrices(dt), dB, ddt))),
    ("input_step_forgotten", "dB without the factor dt",
     with_step(lambda dt, dA, dB, ddt: (dA, dB / matrices(dt), ddt))),
    ("step_scaled", "ddt times dt", with_step(lambda dt, dA, dB, ddt: (dA, dB, ddt * dt))),
    ("input_ignored", "dA and ddt without what passes through B̄", input_ignored),
    ("state_ignored", "dA and ddt without what passes through Ā", STATE_IGNORED),
    ("not_adjoint", "A for Aᴴ in the backward pass", lambda right, dA_bar, dB_bar, A, B, dt:
     right(dA_bar, dB_bar, transposed(A).conj(), B, dt)),
]  # fmt: skip
for _p in (ZOH, BILINEAR):
    _p.plant(*ARGUMENTS, *RESULTS)
    _p.plant(*GRADIENTS, by="gradient")
