"""Planted bugs in the rules other than zero-order hold and the bilinear map."""

import numpy as np

from refssm import discretize as d
from refssm._numerics.expm import expm
from refssm.conformance.planted.discretize import every_rule as every
from refssm.conformance.planted.discretize.diagonal import averaged
from refssm.conformance.planted.discretize.elimination import unpivoted
from refssm.conformance.planted.discretize.every_rule import with_step, without_last
from refssm.conformance.planted.planting import of_result
from refssm.discretize.blocks import for_every, identity, scaled

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
    return A_bar, end, (dt * averaged(dt * w))[..., None] * B - end
