"""Planted bugs in diagonal discretizations and their gradients."""

import numpy as np

from refssm.conformance.planted.planting_old import Planting
from refssm.discretize import DISCRETIZE_DIAGONAL_BILINEAR, DISCRETIZE_DIAGONAL_ZOH


def exact(z):
    """e^z."""
    return np.exp(z)


def averaged(z):
    """φ₁(z)."""
    return np.where(z == 0, 1, np.expm1(z) / np.where(z == 0, 1, z))


def mapped(z):
    """(1 + ½z)/(1 − ½z)."""
    return (1 + z / 2) / (1 - z / 2)


def halfway(z):
    """1/(1 − ½z)."""
    return 1 / (1 - z / 2)


def cancelling(z):
    """(e^z − 1)/z, 1 at z = 0."""
    return np.where(z == 0, 1, (np.exp(z) - 1) / np.where(z == 0, 1, z))


def guarded(z):
    """(e^z − 1)/(z + 1e-8)."""
    return (np.exp(z) - 1) / (z + z.real.dtype.type(1e-8))


def thresholded(z):
    """1 + ½z within |z| < 1e-2."""
    return np.where(np.abs(z) < 1e-2, 1 + z / 2, averaged(z))


def levelled(z):
    """1 within |z| < 1e-3."""
    return np.where(np.abs(z) < 1e-3, 1, averaged(z))


ZOH_RULES = {
    "euler_input": ("Euler for ZOH: B̄ = dt B", exact, np.ones_like),
    "euler": ("Euler for ZOH", lambda z: 1 + z, np.ones_like),
    "bilinear": ("the bilinear map for ZOH", mapped, halfway),
    "backward": ("backward Euler for ZOH", *([lambda z: 1 / (1 - z)] * 2)),
    "trapezoid": ("½ (1 + Ā) dt B", exact, lambda z: (np.exp(z) + 1) / 2),
    "midpoint": ("e^{z/2} dt B", exact, lambda z: np.exp(z / 2)),
    "cancelling": ("e^z − 1 cancels for small z", exact, cancelling),
    "undefined_at_zero": ("0/0 at A = 0", exact, lambda z: np.expm1(z) / z),
    "zero_at_zero": ("B̄ = 0 at A = 0", exact, lambda z: np.where(z == 0, 0, averaged(z))),
    "guarded": ("1e-8 added to the denominator", exact, guarded),
    "thresholded": ("1 + ½z within |z| < 1e-2", exact, thresholded),
    "first_order": ("1 within |z| < 1e-3", exact, levelled),
    "denominator_kept": ("z φ₁(z) for φ₁(z)", exact, np.expm1),
    "product_of_factors": ("e^z by (1 + z/64)^64", lambda z: (1 + z / 64) ** 64, averaged),
}
BILINEAR_RULES = {
    "zoh": ("ZOH for the bilinear map", exact, averaged),
    "euler": ("Euler for the bilinear map", lambda z: 1 + z, np.ones_like),
    "backward": ("backward Euler", *([lambda z: 1 / (1 - z)] * 2)),
    "inverted": ("the map's sign: (1 − ½z)/(1 + ½z)", lambda z: mapped(-z), lambda z: halfway(-z)),
    "half_forgotten": ("z for ½z", lambda z: (1 + z) / (1 - z), lambda z: 1 / (1 - z)),
    "input_half": ("½dt B for dt B", mapped, lambda z: halfway(z) / 2),
    "input_unsolved": ("B̄ = dt B", mapped, np.ones_like),
    "input_twice": ("the resolvent applied to B twice", mapped, lambda z: halfway(z) ** 2),
    "neumann": (
        "the resolvent to second order",
        lambda z: (1 + z / 2 + z * z / 4) * (1 + z / 2),
        halfway,
    ),
    "clipped": ("|Ā| kept above 1e-3: dt·w = −2", lambda z: _outside(mapped(z), 1e-3), halfway),
}


def _outside(y, radius):
    size = np.abs(y)
    return np.where(size < radius, y.real.dtype.type(radius), y)


def _plant_arguments(p: Planting) -> None:
    right, wrong = p.right, p.forward
    wrong("sign", "−w for w")(lambda w, B, dt: right(-w, B, dt))
    wrong("half_step", "dt/2 for dt")(lambda w, B, dt: right(w, B, dt / 2))
    wrong("step_squared", "dt² for dt")(lambda w, B, dt: right(w, B, dt * dt))
    wrong("step_forgotten", "dt = 1")(lambda w, B, dt: right(w, B, 0 * dt + 1))
    wrong("first_step", "the first state's step for all")(
        lambda w, B, dt: right(w, B, np.broadcast_to(dt[..., :1], dt.shape))
    )
    wrong("conjugate", "w* for w", dtype="complex64")(lambda w, B, dt: right(w.conj(), B, dt))
    wrong("input_conjugate", "B* for B", dtype="complex64")(lambda w, B, dt: right(w, B.conj(), dt))
    wrong("real_part", "Re w for w", dtype="complex64")(
        lambda w, B, dt: right(w.real.astype(w.dtype), B, dt)
    )
    wrong("clipped_modes", "Re w clipped at −1e-4")(
        lambda w, B, dt: right(w + (np.minimum(w.real, -1e-4) - w.real).astype(w.real.dtype), B, dt)
    )
    wrong("rolled", "the next state's row of B")(
        lambda w, B, dt: right(w, np.roll(B, 1, axis=-2), dt)
    )
    wrong("input_unscaled", "B̄/dt for B̄")(
        lambda w, B, dt: (right(w, B, dt)[0], right(w, B, dt)[1] / dt[..., None])
    )
    wrong("input_doubled", "2 B̄")(lambda w, B, dt: (right(w, B, dt)[0], 2 * right(w, B, dt)[1]))
    wrong("swapped", "B̄ before Ā")(lambda w, B, dt: right(w, B, dt)[::-1])


def _plant_rules(p: Planting, rules) -> None:
    for name, (what, A_bar, held) in rules.items():
        p.forward(name, what)(
            lambda w, B, dt, A_bar=A_bar, held=held: (
                A_bar(dt * w),
                (dt * held(dt * w))[..., None] * B,
            )
        )


def _plant_gradients(p: Planting) -> None:
    vjp = p.right_vjp

    changed = p.changed_gradient
    changed("step_forgotten", "dw without the factor dt", w=lambda g, dt: g / dt)
    changed("input_step_forgotten", "dB without dt", B=lambda g, dt: g / dt[..., None])
    changed("step_scaled", "ddt times dt", dt=lambda g, dt: g * dt)
    changed("step_missing", "no gradient of dt", dt=lambda g, dt: 0 * g)
    changed("conjugate", "dw* for dw", "complex64", w=lambda g, dt: g.conj())

    @p.gradient("input_ignored", "dw and ddt without what passes through B̄")
    def _(dA_bar, dB_bar, w, B, dt):
        a, _, t = vjp(dA_bar, 0 * dB_bar, w, B, dt)
        return a, vjp(dA_bar, dB_bar, w, B, dt)[1], t

    @p.gradient("state_ignored", "dw and ddt without what passes through Ā")
    def _(dA_bar, dB_bar, w, B, dt):
        return vjp(0 * dA_bar, dB_bar, w, B, dt)

    @p.gradient("first_input", "only the first input's share of dw")
    def _(dA_bar, dB_bar, w, B, dt):
        a, _, t = vjp(dA_bar, dB_bar * (np.arange(B.shape[-1]) == 0), w, B, dt)
        return a, vjp(dA_bar, dB_bar, w, B, dt)[1], t

    @p.gradient("not_conjugated", "w for w* in the backward pass", "complex64")
    def _(dA_bar, dB_bar, w, B, dt):
        return vjp(dA_bar, dB_bar, w.conj(), B, dt)

    @p.gradient("as_jax", "the conjugate convention", "complex64")
    def _(dA_bar, dB_bar, w, B, dt):
        a, b, t = vjp(dA_bar, dB_bar, w, B, dt)
        return a.conj(), b.conj(), t


ZOH = Planting(DISCRETIZE_DIAGONAL_ZOH, "float32")
BILINEAR = Planting(DISCRETIZE_DIAGONAL_BILINEAR, "float32")
for _p, _rules in ((ZOH, ZOH_RULES), (BILINEAR, BILINEAR_RULES)):
    _p.usual()
    _plant_arguments(_p)
    _plant_rules(_p, _rules)
    _plant_gradients(_p)


@ZOH.gradient("cancelling", "φ₁' by (e^z − φ₁)/z, which cancels for small z")
def _cancelling(dA_bar, dB_bar, w, B, dt):
    z = dt * w
    near = np.where(z == 0, 1, z)
    slope = np.where(z == 0, 0.5, (np.exp(z) - averaged(z)) / near).astype(z.dtype)
    through_B = (B.conj() * dB_bar).sum(-1)
    dw = (dt * np.exp(z)).conj() * dA_bar + (dt * dt * slope).conj() * through_B
    _, dB, ddt = ZOH.right_vjp(dA_bar, dB_bar, w, B, dt)
    right = ZOH.right_vjp(dA_bar, dB_bar, w, B, dt)[0]
    return (dw.sum(0) if dw.ndim > right.ndim else dw).astype(right.dtype), dB, ddt


DEVIATIONS = [*ZOH.bugs, *BILINEAR.bugs]
