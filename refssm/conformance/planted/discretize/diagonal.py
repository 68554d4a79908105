"""Planted bugs in diagonal discretizations, and in rules other than hold and bilinear."""

import numpy as np

from refssm import discretize as d
from refssm._numerics.expm import expm
from refssm.conformance.planted.discretize import every_rule as every
from refssm.conformance.planted.discretize.dense import unpivoted
from refssm.conformance.planted.discretize.every_rule import with_step, without_last
from refssm.conformance.planted.planting import SINGLE_GRADIENT, Epsilon, instead, of_result
from refssm.discretize import DISCRETIZE_DIAGONAL_BILINEAR, DISCRETIZE_DIAGONAL_ZOH
from refssm.discretize.blocks import for_every, identity, scaled
from refssm.discretize.phi import phi1

ZOH = every.planted(DISCRETIZE_DIAGONAL_ZOH, state="w")
BILINEAR = every.planted(DISCRETIZE_DIAGONAL_BILINEAR, state="w")


def _rule(A_bar=None, held=None):
    """Another Ā, another B̄ = dt·held·B, or both, as functions of z = dt w; the other is right."""

    def program(right, w, B, dt):
        z, (right_A, right_B) = dt * w, right(w, B, dt)
        return A_bar(z) if A_bar else right_A, (dt * held(z))[..., None] * B if held else right_B

    return program


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
    ("zero_at_zero", "B̄ = 0 at A = 0", _rule(held=lambda z: np.where(z == 0, 0, phi1(z)))),
    ("guarded", "1e-8 added to the denominator",
     Epsilon(1e-8, lambda e:
             _rule(held=lambda z: (np.exp(z) - 1) / (z + z.real.dtype.type(e))))),
    ("thresholded", "1 + ½z within |z| < 1e-2",
     _rule(held=lambda z: np.where(np.abs(z) < 1e-2, 1 + z / 2, phi1(z)))),
    ("first_order", "1 within |z| < 1e-3",
     _rule(held=lambda z: np.where(np.abs(z) < 1e-3, 1, phi1(z)))),
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
    ("clipped", "|Ā| kept above 0.1: dt·w = −2",
     _rule(lambda z: np.where(np.abs(_mapped(z)) < 0.1, z.dtype.type(0.1), _mapped(z)))),
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
    slope = np.where(z == 0, 0.5, (np.exp(z) - phi1(z)) / near).astype(z.dtype)
    through_B = (B.conj() * dB_bar).sum(-1)
    wrong = (dt * np.exp(z)).conj() * dA_bar + (dt * dt * slope).conj() * through_B
    dw, dB, ddt = right(dA_bar, dB_bar, w, B, dt)
    return (wrong.sum(0) if wrong.ndim > dw.ndim else wrong).astype(dw.dtype), dB, ddt


DENSE = (d.DISCRETIZE_FOH, d.DISCRETIZE_IMPULSE, d.DISCRETIZE_MAMBA,
         d.DISCRETIZE_GBT, d.DISCRETIZE_BACKWARD, d.DISCRETIZE_EULER)  # fmt: skip
DIAGONAL = (d.DISCRETIZE_DIAGONAL_FOH, d.DISCRETIZE_DIAGONAL_IMPULSE, d.DISCRETIZE_DIAGONAL_MAMBA,
            d.DISCRETIZE_DIAGONAL_GBT, d.DISCRETIZE_DIAGONAL_EULER,
            d.DISCRETIZE_DIAGONAL_BACKWARD)  # fmt: skip
GBT = (d.DISCRETIZE_GBT, d.DISCRETIZE_DIAGONAL_GBT)


def _other_weights(op, gbt):
    """The generalized bilinear transform with each α of 0, ½, 1 that is not the rule's own."""

    def weighted(alpha):
        return lambda right, *args, **_: (right if op is gbt else gbt.reference)(*args, alpha=alpha)

    own = {"euler": 0.0, "backward": 1.0}.get(op.name.rpartition("_")[2])
    names = {"explicit": 0.0, "trapezoidal": 0.5, "implicit": 1.0}
    return [(n, f"α = {a}", weighted(a)) for n, a in names.items() if a != own]


DENSE_RULES = [
    ("zoh", "zero-order hold", lambda right, *args, **_: d.DISCRETIZE_ZOH.reference(*args)),
    ("elementwise", "the exponential of each entry", lambda right, A, B, dt, **_:
     for_every(np.exp(scaled(A, dt)), scaled(B, dt))),
]  # fmt: skip
DIAGONAL_RULES = [
    ("zoh", "zero-order hold",
     lambda right, *args, **_: d.DISCRETIZE_DIAGONAL_ZOH.reference(*args)),
    ("product_of_factors", "e^z by (1 + z/64)^64", lambda right, w, B, dt, **_:
     for_every((1 + dt * w / 64) ** 64, dt[..., None] * B, rank=1)),
]  # fmt: skip


def _planting(op, dense):
    """The bugs that fit any of these rules."""
    p = every.planted(op)
    first, rank = ("A", 2) if dense else ("w", 1)
    turned = (lambda A: A.swapaxes(-1, -2)) if dense else (lambda w: np.roll(w, 1, -1))
    p.plant(
        *every.MOST_RULES,
        ("turned", "Aᵀ for A, or the next state's w", {first: turned}),
        ("rows_rolled", "the next state's row of B", {"B": lambda B: np.roll(B, 1, axis=-2)}),
        ("last_state", "the last row not written", of_result(
            lambda A_bar, *B_bars: (without_last(A_bar, rank), *map(without_last, B_bars)))),
        ("order", "Ā after B̄", every.SWAPPED),
    )  # fmt: skip
    p.plant(
        ("step_forgotten", "dA without dt",
         with_step(lambda dt, dA, dB, ddt: (dA / (dt[..., None, None] if dense else dt), dB, ddt))),
        ("input_halved", "half of dB", {"B": lambda g: g / 2}),
        ("state_ignored", "nothing through Ā", every.STATE_IGNORED),
        by="gradient",
    )  # fmt: skip
    if op.name.endswith("impulse"):  # B̄ is B
        factor = (..., None, None) if dense else (..., None)
        times_dt = with_step(lambda dt, A_bar, B_bar: (A_bar, dt[factor] * B_bar))
        p.plant(("input_scaled", "dt B for B", times_dt))
    else:
        p.plant(("input_ignored", "nothing of dt through B̄", every.INPUT_IGNORED), by="gradient")
    if len(op.outputs) == 2:
        p.plant(*(DENSE_RULES if dense else DIAGONAL_RULES), *_other_weights(op, GBT[not dense]))
    return p


PLANTED = {op: _planting(op, op in DENSE) for op in (*DENSE, *DIAGONAL)}

for _op in GBT:
    PLANTED[_op].plant(
        ("weights_exchanged", "1 − α for α",
         lambda right, *args, alpha: right(*args, alpha=1 - alpha)),
        ("input_unsolved", "B̄ = dt B", lambda right, *args, alpha:
         (right(*args, alpha=alpha)[0], right(*args, alpha=0.0)[1])),
    )  # fmt: skip

for _op, _alpha in ((d.DISCRETIZE_GBT, None), (d.DISCRETIZE_BACKWARD, 1.0)):
    _row = "unpivoted", "elimination without exchanges of rows", unpivoted(_alpha)
    PLANTED[_op].plant(_row, by="value[float64]")
    PLANTED[_op].plant(SINGLE_GRADIENT, by="gradient[float64]")

FOH, DIAGONAL_FOH = PLANTED[d.DISCRETIZE_FOH], PLANTED[d.DISCRETIZE_DIAGONAL_FOH]
for _p in (FOH, DIAGONAL_FOH):
    _p.plant(
        ("ends_exchanged", "B̄₀ and B̄₁ exchanged",
         of_result(lambda A_bar, B0, B1: (A_bar, B1, B0))),
        ("held", "all of the held input in B̄₀",
         of_result(lambda A_bar, B0, B1: (A_bar, B0 + B1, 0 * B1))),
        ("trapezoid", "half of the held input at each end",
         of_result(lambda A_bar, B0, B1: (A_bar, (B0 + B1) / 2, (B0 + B1) / 2))),
    )  # fmt: skip


FOH.plant(every.DIGITS_OF_ONE)


@FOH.bug("textbook", "A⁻² (e^{dt A} − I − dt A)/dt: no inverse where A is singular")
def _(right, A, B, dt):
    F = scaled(A, dt)
    E, I = expm(F), identity(A)
    end = np.linalg.solve(F @ F, E - I - F)
    both = np.linalg.solve(F, E - I)
    return for_every(E, scaled(end @ B, dt), scaled((both - end) @ B, dt))


@DIAGONAL_FOH.bug("cancelling", "(e^z − 1 − z)/z², which cancels for small z")
def _(right, w, B, dt):
    z = dt * w
    safe = np.where(z == 0, 1, z)
    end = np.where(z == 0, 0.5, (np.exp(safe) - 1 - safe) / safe**2)
    start = np.where(z == 0, 0.5, (np.exp(safe) - 1) / safe - end)
    shares = (dt * end).astype(z.dtype), (dt * start).astype(z.dtype)
    return for_every(np.exp(z), *(share[..., None] * B for share in shares), rank=1)


@DIAGONAL_FOH.bug(
    "difference", "φ₁ − φ₂ for φ₁', which cancels for large |z|", by="value[complex64]"
)
def _(right, w, B, dt):
    A_bar, end, _ = right(w, B, dt)
    return A_bar, end, (dt * phi1(dt * w))[..., None] * B - end
