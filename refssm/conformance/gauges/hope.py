"""Error rules of all-pass filters: of one, of a cascade, and of their derivatives by dt.

Operation by operation, n stages have bounds of (1 + 2|ρ|)^n, or bounds that grow by 1/dt a stage.
But the stages are rotations: a stage does not amplify its input, and a rounding in it reaches every
later signal or state through impulse responses of energy 1. So independent roundings of a stage
together are no larger than the largest of them. The roundings of ρ and c are the same at every
time; they are multiplied by exact derivatives. Importing this module registers the rules.
"""

import numpy as np

from refssm.conformance.gauges.linalg import two_norm
from refssm.conformance.gauges.rules import rule
from refssm.conformance.gauges.tracked import FUNCTIONS, Tracked, lifted, met, modulus
from refssm.hope.allpass import cascade, rotation, stage_by_stage
from refssm.hope.circle import all_pass, powers, slope
from refssm.hope.impulses import all_pass_responses

LIBRARY = 4  # roundings of a library function
RHO_ROUNDINGS, C_ROUNDINGS = 3, 4  # of ρ = (1 − dt)/(1 + dt), c = 2√dt/(1 + dt)


@rule(FUNCTIONS, all_pass_responses)
def _all_pass_responses(dt, count, l):
    """One rounding a stage for entries of at most 1; |∂s_j/∂dt| = j |s_{j−1} − s_{j+1}|/(2 dt)."""
    dt = lifted(dt)
    more = all_pass_responses(dt.value, count + 1, l)
    s, j = more[..., :-1, :], np.arange(count)[:, None]
    before = np.concatenate([0 * s[..., :1, :], s[..., :-1, :]], axis=-2)
    slopes = j * np.abs(before - more[..., 1:, :]) / (2 * dt.value[..., None, None])
    met(np.abs(s))
    carried = slopes[..., None] * dt.errors[..., None, None, :]
    return Tracked(s, j[..., None] + carried)


@rule(FUNCTIONS, all_pass)
def _all_pass(h, dt, l):
    """One rounding where p is not 1 or −1; |∂p/∂dt| = |sin θ'/dt|."""
    h, dt = lifted(h).value, lifted(dt)
    p = all_pass(h, dt.value, l)
    made = np.where(p.imag == 0, 0.0, 1.0)[..., None]
    return Tracked(p, made + np.abs(slope(h, dt.value, l))[..., None] * dt.errors[..., None, :])


@rule(FUNCTIONS, powers)
def _powers(p, n):
    """The rule of one power with a constant exponent, not of the reference's product of two."""
    return lifted(p)[..., None] ** np.arange(1, n + 1)


@rule(FUNCTIONS, slope)
def _slope(h, dt, l):
    """Charge 4 for the slope and 4/dt for sin θ' or for powers; |∂slope/∂dt| ≤ 2 |slope|/dt."""
    dt = lifted(dt)
    value, step = slope(lifted(h).value, dt.value, l), dt.value[..., None]
    met(np.abs(value))
    made = LIBRARY * (np.abs(value) + 1 / np.abs(step))
    carried = (2 * np.abs(value / step))[..., None] * dt.errors[..., None, :]
    return Tracked(value, made[..., None] + carried)


@rule(FUNCTIONS, cascade)
def _cascade(dt, u, x0):
    dt, u, x0 = lifted(dt), lifted(u), lifted(x0)
    s, x = cascade(dt.value, u.value, x0.value)
    met(np.abs(s))
    met(np.abs(x))
    slopes = _by_rotation(dt.value, s, x)
    made = _own_roundings(dt.value, s, x, slopes)
    by_dt = _by_dt(dt.value, slopes)
    s_errors, x_errors = [
        _along_curve(dt.errors, of_dt) + own[..., None]
        for of_dt, own in zip(by_dt, made, strict=True)
    ]
    driven = _driving(u, x0, s.shape)
    s_errors[..., 1:, :, :] += driven[..., None, :, :]
    s_errors[..., 0, :, :] = u.errors
    x_errors += driven[..., None, :, :]
    start = np.broadcast_to(x0.errors, (*x.shape[:-1], 2))[..., None, :]
    return Tracked(s, s_errors), Tracked(x, np.concatenate([start, x_errors], axis=-2))


def _driving(u: Tracked, x0: Tracked, shape):
    """‖errors‖₂ of the inputs so far and of the first states, as the cascade is an isometry."""
    both = []
    for gauge in (0, 1):
        size = two_norm(x0.errors[..., gauge]), _norm_so_far(u.errors[..., gauge])
        both.append(np.broadcast_to(np.hypot(*size), (*shape[:-2], shape[-1])))
    return np.stack(both, axis=-1)


def _norm_so_far(x):
    """√Σ_{i≤k} x_i², scaled so that squares neither underflow nor overflow."""
    largest = x.max(-1, keepdims=True, initial=0)
    unit = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    return unit * np.sqrt(np.cumsum((x / unit) ** 2, axis=-1))


def _own_roundings(dt, s, x, by_rotation):
    """Errors of signals and states from three roundings per row of a rotation, and from ρ and c."""
    rho, c = (np.abs(r)[..., None, None] for r in rotation(dt))
    before, into = np.abs(x[..., :-1]), np.abs(s[..., :-1, :])
    signals = modulus(c * before) + modulus(rho * into) + modulus(s[..., 1:, :])
    states = modulus(rho * before) + modulus(c * into) + modulus(x[..., 1:])
    made = np.cumsum(np.hypot(_largest_so_far(signals), _largest_so_far(states)), axis=-2)
    made = np.concatenate([np.zeros_like(s[..., :1, :], dtype=made.dtype), made], axis=-2), made
    constant = (
        RHO_ROUNDINGS * rho * (_largest_so_far(r) + _largest_so_far(r - rotation_slope(dt) * q))
        + C_ROUNDINGS * c * _largest_so_far(q)
        for r, q in by_rotation
    )
    return [m + k for m, k in zip(made, constant, strict=True)]


def rotation_slope(dt):
    """ρ/c, where dc/dρ = −ρ/c because c² = 1 − ρ²."""
    rho, c = rotation(dt)
    return (rho / c)[..., None, None]


def _by_rotation(dt, s, x):
    """(∂s/∂ρ, ∂s/∂c) with c, ρ constant, and the same of x: both in one pass over the cascade."""
    before, into = x[..., :-1], s[..., :-1, :]
    states = np.stack(np.broadcast_arrays(before, into))
    return [
        (t[0], t[1]) for t in _tangent(dt, states, np.stack(np.broadcast_arrays(-into, before)))
    ]


def _by_dt(dt, by_rotation):
    """∂s/∂dt and ∂x/∂dt: ρ' = −2/(1 + dt)², c' = ρ/(√dt (1 + dt))."""
    rho_slope = (-2 / (1 + dt) ** 2)[..., None, None]
    c_slope = ((1 - dt) / (np.sqrt(dt) * (1 + dt) ** 2))[..., None, None]
    return [rho_slope * r + c_slope * q for r, q in by_rotation]


def _tangent(dt, into_states, into_signals):
    """The cascade from zero states, with extra inputs to every state and signal at every time."""
    *batch, n, l = into_states.shape
    rho, c = (np.broadcast_to(a[..., None], (*batch, 1)) for a in rotation(np.asarray(dt)))
    # as in `cascade`, wave m has stage j at the time m − j
    added = np.zeros((n + l, 2, *batch, n), into_states.dtype)
    for j in range(n):
        for of, into in enumerate((into_states, into_signals)):
            added[j : j + l, of, ..., j] = np.moveaxis(into[..., j, :], -1, 0)
    waves, turn = np.zeros((n + l + 1, 2, *batch, n + 1), added.dtype), np.stack([rho, -rho])
    for m in range(n + l - 1):
        busy, later = slice(max(0, m - l + 1), min(n, m + 1)), waves[m + 1]
        before = waves[m, ..., busy]
        turned = turn * before + c * before[::-1] + added[m, ..., busy]
        later[0, ..., busy], later[1, ..., 1:][..., busy] = turned
    states = stage_by_stage(waves[:, 0, ..., :n], l + 1)
    return stage_by_stage(waves[:, 1], l), states[..., 1:]


def _along_curve(dt_errors, tangent):
    """The error of dt times the largest slope up to each time; 0 where dt is exact."""
    error = dt_errors[..., None, None, :]
    return np.where(error == 0, 0.0, error * _largest_so_far(tangent)[..., None])


def _largest_so_far(x):
    """max_{i≤k} |x_i| along time."""
    return np.maximum.accumulate(np.abs(x), axis=-1) if x.shape[-1] else np.abs(x)
