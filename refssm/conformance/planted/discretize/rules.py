"""Planted bugs in the rules beside zero-order hold and the bilinear map, dense and diagonal."""

import numpy as np

from refssm._expm import expm
from refssm.conformance.planted.planting_old import Planting
from refssm.discretize import (
    DISCRETIZE_BACKWARD,
    DISCRETIZE_DIAGONAL_BACKWARD,
    DISCRETIZE_DIAGONAL_EULER,
    DISCRETIZE_DIAGONAL_FOH,
    DISCRETIZE_DIAGONAL_GBT,
    DISCRETIZE_DIAGONAL_IMPULSE,
    DISCRETIZE_DIAGONAL_MAMBA,
    DISCRETIZE_DIAGONAL_ZOH,
    DISCRETIZE_EULER,
    DISCRETIZE_FOH,
    DISCRETIZE_GBT,
    DISCRETIZE_IMPULSE,
    DISCRETIZE_MAMBA,
    DISCRETIZE_ZOH,
)
from refssm.discretize.blocks import for_every, identity, scaled

DENSE = (DISCRETIZE_FOH, DISCRETIZE_IMPULSE, DISCRETIZE_MAMBA)
SOLVED = (DISCRETIZE_GBT, DISCRETIZE_BACKWARD, DISCRETIZE_EULER)
DIAGONAL = (
    DISCRETIZE_DIAGONAL_FOH,
    DISCRETIZE_DIAGONAL_IMPULSE,
    DISCRETIZE_DIAGONAL_MAMBA,
    DISCRETIZE_DIAGONAL_GBT,
    DISCRETIZE_DIAGONAL_EULER,
    DISCRETIZE_DIAGONAL_BACKWARD,
)


def _plant_arguments(p: Planting, dense: bool) -> None:
    """Right formulas of wrong arguments."""
    right, wrong = p.right, p.forward
    turned = (lambda A: A.swapaxes(-1, -2)) if dense else (lambda w: np.roll(w, 1, -1))
    reaches_B = p.op not in (DISCRETIZE_IMPULSE, DISCRETIZE_DIAGONAL_IMPULSE)
    wrong("sign", "−A for A")(lambda A, B, dt, **s: right(-A, B, dt, **s))
    wrong("turned", "Aᵀ for A, or the next state's w")(
        lambda A, B, dt, **s: right(turned(A), B, dt, **s)
    )
    wrong("half_step", "dt/2 for dt")(lambda A, B, dt, **s: right(A, B, dt / 2, **s))
    wrong("step_squared", "dt² for dt")(lambda A, B, dt, **s: right(A, B, dt * dt, **s))
    wrong("step_forgotten", "dt = 1")(lambda A, B, dt, **s: right(A, B, 0 * dt + 1, **s))
    wrong("first_step", "the first step for all")(
        lambda A, B, dt, **s: right(A, B, np.broadcast_to(dt.ravel()[0], dt.shape), **s)
    )
    wrong("conjugate", "A* for A", dtype="complex64")(
        lambda A, B, dt, **s: right(A.conj(), B, dt, **s)
    )
    wrong("real_part", "Re A for A", dtype="complex64")(
        lambda A, B, dt, **s: right(A.real.astype(A.dtype), B, dt, **s)
    )
    wrong("input_conjugate", "B* for B", dtype="complex64")(
        lambda A, B, dt, **s: right(A, B.conj(), dt, **s)
    )
    wrong("rows_rolled", "the next state's row of B")(
        lambda A, B, dt, **s: right(A, np.roll(B, 1, axis=-2), dt, **s)
    )
    if not reaches_B:
        factor = (..., None, None) if dense else (..., None)
        wrong("input_scaled", "dt B for B")(
            lambda A, B, dt: (right(A, B, dt)[0], dt[factor] * right(A, B, dt)[1])
        )


def _plant_results(p: Planting, dense: bool) -> None:
    """Wrong results of the right formula."""
    right, wrong = p.right, p.forward
    wrong("input_doubled", "2 B̄")(
        lambda A, B, dt, **s: (
            right(A, B, dt, **s)[0],
            *(2 * y for y in right(A, B, dt, **s)[1:]),
        )
    )
    wrong("last_state", "the last row not written")(
        lambda A, B, dt, **s: tuple(
            _without_last(y, 1 if not dense and i == 0 else 2)
            for i, y in enumerate(right(A, B, dt, **s))
        )
    )
    wrong("order", "Ā after B̄")(lambda A, B, dt, **s: right(A, B, dt, **s)[::-1])
    wrong("inputs_rolled", "the columns of B̄ rolled")(
        lambda A, B, dt, **s: (
            right(A, B, dt, **s)[0],
            *(np.roll(y, 1, -1) for y in right(A, B, dt, **s)[1:]),
        )
    )


def _without_last(y, rank):
    y = y.copy()
    y[(..., -1, *(slice(None),) * (rank - 1))] = 0
    return y


def _plant_gradients(p: Planting, dense: bool) -> None:
    vjp, changed = p.right_vjp, p.changed_gradient
    first = "A" if dense else "w"
    changed("step_missing", "no gradient of dt", dt=lambda g, dt: 0 * g)
    changed("conjugate", "dA* for dA", "complex64", **{first: lambda g, dt: g.conj()})
    factor = (..., None, None) if dense else (...,)
    changed("step_forgotten", "dA without dt", **{first: lambda g, dt: g / dt[factor]})
    changed("input_halved", "half of dB", B=lambda g, dt: g / 2)
    count = len(p.op.outputs)

    def through_A_only(*args, **s):
        zeros = [0 * d for d in args[1:count]]
        a, _, t = vjp(args[0], *zeros, *args[count:], **s)
        return a, vjp(*args, **s)[1], t

    if p.op not in (DISCRETIZE_IMPULSE, DISCRETIZE_DIAGONAL_IMPULSE):
        p.gradient("input_ignored", "nothing of dt through B̄")(through_A_only)

    @p.gradient("state_ignored", "nothing through Ā")
    def _(*args, **s):
        return vjp(0 * args[0], *args[1:], **s)

    @p.gradient("as_jax", "the conjugate convention", "complex64")
    def _(*args, **s):
        return tuple(g.conj() for g in vjp(*args, **s))


def _rules(op):
    """Other rules in place of this one, by name: functions of A, B and dt."""
    dense = op not in DIAGONAL
    zoh = DISCRETIZE_ZOH.reference if dense else DISCRETIZE_DIAGONAL_ZOH.reference
    return {
        "zoh": ("zero-order hold", lambda A, B, dt, **_: zoh(A, B, dt)),
        "elementwise" if dense else "product_of_factors": (
            ("the exponential of each entry", _elementwise)
            if dense
            else ("e^z by (1 + z/64)^64", _product_of_factors)
        ),
    }


def _elementwise(A, B, dt, **_):
    return for_every(np.exp(scaled(A, dt)), scaled(B, dt))


def _product_of_factors(w, B, dt, **_):
    return for_every((1 + dt * w / 64) ** 64, dt[..., None] * B, rank=1)


def _fixed_alpha(op, alpha):
    gbt = DISCRETIZE_DIAGONAL_GBT if op in DIAGONAL else DISCRETIZE_GBT
    return lambda A, B, dt, **_: gbt.reference(A, B, dt, alpha=alpha)


def _plant_alpha(p: Planting, own) -> None:
    """The same map with another weight: of 0, ½ and 1 those that are not its own."""
    for name, alpha in {"explicit": 0.0, "trapezoidal": 0.5, "implicit": 1.0}.items():
        if alpha != own:
            p.forward(name, f"α = {alpha}")(_fixed_alpha(p.op, alpha))


GBT = (DISCRETIZE_GBT, DISCRETIZE_DIAGONAL_GBT)
WEIGHT = {
    DISCRETIZE_EULER: 0.0,
    DISCRETIZE_DIAGONAL_EULER: 0.0,
    DISCRETIZE_BACKWARD: 1.0,
    DISCRETIZE_DIAGONAL_BACKWARD: 1.0,
}
PLANTED = {op: Planting(op, "float32") for op in (*DENSE, *SOLVED, *DIAGONAL)}
for _op, _p in PLANTED.items():
    _p.usual()
    _plant_arguments(_p, _op not in DIAGONAL)
    _plant_results(_p, _op not in DIAGONAL)
    _plant_gradients(_p, _op not in DIAGONAL)
    if len(_op.outputs) == 2:
        for _name, (_what, _rule) in _rules(_op).items():
            _p.forward(_name, _what)(_rule)
        _plant_alpha(_p, WEIGHT.get(_op))

for _op in GBT:
    PLANTED[_op].forward("weights_exchanged", "1 − α for α")(
        lambda A, B, dt, *, alpha, _op=_op: _op.reference(A, B, dt, alpha=1 - alpha)
    )
    PLANTED[_op].forward("input_unsolved", "B̄ = dt B")(
        lambda A, B, dt, *, alpha, _op=_op: (
            _op.reference(A, B, dt, alpha=alpha)[0],
            _fixed_alpha(_op, 0.0)(A, B, dt)[1],
        )
    )

FOH, DIAGONAL_FOH = PLANTED[DISCRETIZE_FOH], PLANTED[DISCRETIZE_DIAGONAL_FOH]
for _p in (FOH, DIAGONAL_FOH):
    _p.forward("ends_exchanged", "B̄₀ and B̄₁ exchanged")(
        lambda A, B, dt, _p=_p: tuple(_p.right(A, B, dt)[i] for i in (0, 2, 1))
    )
    _p.forward("held", "all of the held input in B̄₀")(
        lambda A, B, dt, _p=_p: (
            _p.right(A, B, dt)[0],
            _p.right(A, B, dt)[1] + _p.right(A, B, dt)[2],
            0 * _p.right(A, B, dt)[2],
        )
    )
    _p.forward("trapezoid", "half of the held input at each end")(
        lambda A, B, dt, _p=_p: (
            _p.right(A, B, dt)[0],
            *[(_p.right(A, B, dt)[1] + _p.right(A, B, dt)[2]) / 2] * 2,
        )
    )


@FOH.forward("textbook", "A⁻² (e^{dt A} − I − dt A)/dt: no inverse where A is singular")
def _textbook(A, B, dt):
    F = scaled(A, dt)
    E, I = expm(F), identity(A)
    end = np.linalg.solve(F @ F, E - I - F)
    both = np.linalg.solve(F, E - I)
    return for_every(E, scaled(end @ B, dt), scaled((both - end) @ B, dt))


@DIAGONAL_FOH.forward("cancelling", "(e^z − 1 − z)/z², which cancels for small z")
def _cancelling(w, B, dt):
    z = dt * w
    safe = np.where(z == 0, 1, z)
    end = np.where(z == 0, 0.5, (np.exp(safe) - 1 - safe) / safe**2)
    start = np.where(z == 0, 0.5, (np.exp(safe) - 1) / safe - end)
    shares = (dt * end).astype(z.dtype), (dt * start).astype(z.dtype)
    return for_every(np.exp(z), *(share[..., None] * B for share in shares), rank=1)


@DIAGONAL_FOH.forward("difference", "φ₁ − φ₂ for φ₁', which cancels for large |z|")
def _difference(w, B, dt):
    z = dt * w
    A_bar, end, _ = DIAGONAL_FOH.right(w, B, dt)
    both = np.where(z == 0, 1, np.expm1(z) / np.where(z == 0, 1, z))
    return A_bar, end, (dt * both)[..., None] * B - end


DEVIATIONS = [bug for planted in PLANTED.values() for bug in planted.bugs]
