"""Planted bugs in diagonal discretizations and their VJPs."""

import numpy as np

from refssm.conformance.planted.discretize import every_rule as every
from refssm.conformance.planted.discretize.every_rule import with_step
from refssm.conformance.planted.epsilon import Epsilon
from refssm.conformance.planted.planting import instead
from refssm.discretize import DISCRETIZE_DIAGONAL_BILINEAR, DISCRETIZE_DIAGONAL_ZOH

ZOH = every.planted(DISCRETIZE_DIAGONAL_ZOH, state="w")
BILINEAR = every.planted(DISCRETIZE_DIAGONAL_BILINEAR, state="w")


def _rule(A_bar=None, held=None):
    """Another Ā, another B̄ = dt·held·B, or both, as functions of z = dt w; the other is right."""

    def program(right, w, B, dt):
        z, (right_A, right_B) = dt * w, right(w, B, dt)
        return A_bar(z) if A_bar else right_A, (dt * held(z))[..., None] * B if held else right_B

    return program


def averaged(z):
    """φ₁(z)."""
    return np.where(z == 0, 1, np.expm1(z) / np.where(z == 0, 1, z))


def _mapped(z):
    """(1 + ½z)/(1 − ½z)."""
    return (1 + z / 2) / (1 - z / 2)


def _implicit(z):
    return 1 / (1 - z)


ZOH.plant(
    ("euler_input", "Euler for ZOH: B̄ = dt B", _rule(held=np.ones_like)),
    ("euler", "Euler for ZOH", _rule(lambda z: 1 + z, np.ones_like)),
    ("bilinear", "the bilinear map for ZOH", instead(DISCRETIZE_DIAGONAL_BILINEAR.reference)),
    ("backward", "backward Euler for ZOH", _rule(_implicit, _implicit)),
    ("trapezoid", "½ (1 + Ā) dt B", _rule(held=lambda z: (np.exp(z) + 1) / 2)),
    ("midpoint", "e^{z/2} dt B", _rule(held=lambda z: np.exp(z / 2))),
    ("cancelling", "e^z − 1 cancels for small z",  # (e^z − 1)/z, 1 at z = 0
     _rule(held=lambda z: np.where(z == 0, 1, (np.exp(z) - 1) / np.where(z == 0, 1, z)))),
    ("undefined_at_zero", "0/0 at A = 0", _rule(held=lambda z: np.expm1(z) / z)),
    ("zero_at_zero", "B̄ = 0 at A = 0", _rule(held=lambda z: np.where(z == 0, 0, averaged(z)))),
    ("guarded", "1e-8 added to the denominator",
     Epsilon(1e-8, lambda e:
             _rule(held=lambda z: (np.exp(z) - 1) / (z + z.real.dtype.type(e))))),
    ("thresholded", "1 + ½z within |z| < 1e-2",
     _rule(held=lambda z: np.where(np.abs(z) < 1e-2, 1 + z / 2, averaged(z)))),
    ("first_order", "1 within |z| < 1e-3",
     _rule(held=lambda z: np.where(np.abs(z) < 1e-3, 1, averaged(z)))),
    ("denominator_kept", "z φ₁(z) for φ₁(z)", _rule(held=np.expm1)),
    ("product_of_factors", "e^z by (1 + z/64)^64", _rule(lambda z: (1 + z / 64) ** 64)),
)  # fmt: skip
BILINEAR.plant(
    ("zoh", "ZOH for the bilinear map", instead(DISCRETIZE_DIAGONAL_ZOH.reference)),
    ("euler", "Euler for the bilinear map", _rule(lambda z: 1 + z, np.ones_like)),
    ("backward", "backward Euler", _rule(_implicit, _implicit)),
    ("inverted", "the map's sign: (1 − ½z)/(1 + ½z)",
     _rule(lambda z: _mapped(-z), lambda z: _implicit(-z / 2))),
    ("half_forgotten", "z for ½z", _rule(lambda z: _mapped(2 * z), _implicit)),
    ("input_half", "½dt B for dt B", every.of_inputs(lambda y: y / 2)),
    ("input_unsolved", "B̄ = dt B", _rule(held=np.ones_like)),
    ("input_twice", "the resolvent applied to B twice",
     _rule(held=lambda z: _implicit(z / 2) ** 2)),
    ("neumann", "the resolvent to second order",
     _rule(lambda z: (1 + z / 2 + z * z / 4) * (1 + z / 2))),
    ("clipped", "|Ā| kept above 1e-3: dt·w = −2",
     _rule(lambda z: np.where(np.abs(_mapped(z)) < 1e-3, z.dtype.type(1e-3), _mapped(z)))),
)  # fmt: skip
BILINEAR.plant(
    ("resolvent_conjugated", "1 − ½z* for 1 − ½z",
     _rule(lambda z: (1 + z / 2) / (1 - z.conj() / 2), lambda z: _implicit(z.conj() / 2))),
    by="value[complex64]",
)  # fmt: skip
BILINEAR.plant(
    ("resolvent_sign", "1 + ½z for 1 − ½z in the backward pass", every.resolvent_sign),
    by="gradient",
)  # fmt: skip


for _p in (ZOH, BILINEAR):
    _p.plant(
        ("first_step", "the first state's step for all",
         {"dt": lambda dt: np.broadcast_to(dt[..., :1], dt.shape)}),
        ("clipped_modes", "Re w clipped at −1e-4",
         {"w": lambda w: w - np.maximum(w.real + 1e-4, 0)}),
        ("rolled", "the next state's row of B", {"B": lambda B: np.roll(B, 1, axis=-2)}),
        ("input_unscaled", "B̄/dt for B̄",
         with_step(lambda dt, A_bar, B_bar: (A_bar, B_bar / dt[..., None]))),
        ("swapped", "B̄ before Ā", every.SWAPPED),
    )  # fmt: skip
    _p.plant(
        ("step_forgotten", "dw without the factor dt",
         with_step(lambda dt, dw, dB, ddt: (dw / dt, dB, ddt))),
        ("input_step_forgotten", "dB without dt",
         with_step(lambda dt, dw, dB, ddt: (dw, dB / dt[..., None], ddt))),
        ("step_scaled", "ddt times dt", with_step(lambda dt, dw, dB, ddt: (dw, dB, ddt * dt))),
        ("input_ignored", "dw and ddt without what passes through B̄", every.INPUT_IGNORED),
        ("state_ignored", "dw and ddt without what passes through Ā", every.STATE_IGNORED),
        ("first_input", "only the first input's share of dw",
         every.through_input(lambda d: d * (np.arange(d.shape[-1]) == 0))),
        by="gradient",
    )  # fmt: skip
    _p.plant(
        ("not_conjugated", "w for w* in the backward pass", lambda right, dA_bar, dB_bar, w, B, dt:
         right(dA_bar, dB_bar, w.conj(), B, dt)),
        ("gain_not_conjugated", "w for w* in dB", every.gain_not_conjugated),
        by="gradient[complex64]",
    )  # fmt: skip


@ZOH.bug("cancelling", "φ₁' by (e^z − φ₁)/z, which cancels for small z", by="gradient")
def _(right, dA_bar, dB_bar, w, B, dt):
    z = dt * w
    near = np.where(z == 0, 1, z)
    slope = np.where(z == 0, 0.5, (np.exp(z) - averaged(z)) / near).astype(z.dtype)
    through_B = (B.conj() * dB_bar).sum(-1)
    wrong = (dt * np.exp(z)).conj() * dA_bar + (dt * dt * slope).conj() * through_B
    dw, dB, ddt = right(dA_bar, dB_bar, w, B, dt)
    return (wrong.sum(0) if wrong.ndim > dw.ndim else wrong).astype(dw.dtype), dB, ddt
