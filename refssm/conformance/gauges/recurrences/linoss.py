"""The error rule of oscillators: of x_k = M x_{k-1} + F_k with a matrix of two rows for each.

Operation by operation, k steps have bounds with |M|^k, which grows by up to 1.21^k for implicit
steps and more for the others, where no power of M does. But a rounding of step j reaches step k
through M^{k−j} alone, so that the error of x_k is at most

    e_k = Σ_{j≤k} |M^{k−j}| ρ_j,

with ρ_j the roundings of step j, what the errors of M do to x_{j-1}, and the error of F_j. Lags are
taken together, eight intervals for each doubling, with the largest of |M^d| in each. Importing this
module registers the rule.
"""

import numpy as np

from refssm.conformance.gauges.rules import rule
from refssm.conformance.gauges.tracked import FUNCTIONS, Tracked, lifted, met, modulus
from refssm.linoss import swung

STEP_ROUNDINGS = 3  # two products and two sums for each of the two numbers, of the larger moduli
INTERVALS = 8  # for each doubling of the lag


@rule(FUNCTIONS, swung)
def _swung(M, F, x0, resets):
    M, F, x0 = lifted(M), lifted(F), lifted(x0)
    x = swung(M.value, F.value, x0.value, resets)
    met(np.abs(x))
    batch, core = x.shape[:-3], x.shape[-2:]
    start = np.broadcast_to(x0.value, (*batch, *core))
    before = np.abs(np.concatenate([start[..., None, :, :], x], axis=-3)[..., :-1, :, :])
    before = np.where(resets[..., None, None], 0, before)
    over_time = np.abs(M.value)[..., None, :, :]
    made = STEP_ROUNDINGS * (_applied(over_time, before) + modulus(x))
    errors_of_M = np.moveaxis(M.errors, -1, 0)[..., None, :, :]
    of_M = np.moveaxis(np.stack([_applied(e, before) for e in errors_of_M]), 0, -1)
    entering = np.broadcast_to(made[..., None] + of_M + F.errors, (*x.shape, 2))
    first = np.broadcast_to(x0.errors, (*batch, *core, 2))[..., None, :, :, :]
    rho = np.concatenate([first, entering], axis=-4)
    number = np.cumsum(np.concatenate([np.zeros_like(resets[..., :1]), resets], axis=-1), axis=-1)
    return Tracked(x, _through_powers(M.value, rho, number)[..., 1:, :, :, :])


def _applied(M, x):
    """M x for each oscillator, as in `refssm.linoss`."""
    z, y = x[..., 0, :], x[..., 1, :]
    first = M[..., 0, :] * z + M[..., 1, :] * y
    return np.stack([first, M[..., 2, :] * z + M[..., 3, :] * y], axis=-2)


def _through_powers(M, rho, number):
    """Σ_d |M^d| ρ_{k−d} within a sequence; `number` says to which one each step belongs."""
    l, total, lag, width = rho.shape[-4], np.zeros_like(rho), 0, 1
    sums, power = rho, _identity(M)
    while lag < l:
        wanted = max(1, 2 ** (lag.bit_length() - 1) // INTERVALS)
        if wanted > width:
            sums = sums + _earlier(sums, number, width)
            width = wanted
        largest = np.abs(power)
        for _ in range(width):
            largest = np.maximum(largest, np.abs(power))
            power = _next(M, power)
        total = total + _weighed(largest, _earlier(sums, number, lag))
        lag += width
    return total


def _identity(M):
    one = np.ones_like(M[..., 0, :])
    return np.stack([one, 0 * one, 0 * one, one], axis=-2)


def _next(M, power):
    """M times a power of M."""
    first = M[..., 0, :] * power[..., 0, :] + M[..., 1, :] * power[..., 2, :]
    second = M[..., 0, :] * power[..., 1, :] + M[..., 1, :] * power[..., 3, :]
    third = M[..., 2, :] * power[..., 0, :] + M[..., 3, :] * power[..., 2, :]
    fourth = M[..., 2, :] * power[..., 1, :] + M[..., 3, :] * power[..., 3, :]
    return np.stack([first, second, third, fourth], axis=-2)


def _earlier(sums, number, lag):
    """The same `lag` steps earlier, 0 where that was another sequence."""
    if not lag:
        return sums
    moved = np.concatenate([np.zeros_like(sums[..., :lag, :, :, :]), sums], axis=-4)
    same = np.zeros(number.shape, bool)
    same[..., lag:] = number[..., lag:] == number[..., :-lag]
    return np.where(same[..., None, None, None], moved[..., : sums.shape[-4], :, :, :], 0)


def _weighed(largest, sums):
    """|M^d| times sums of errors, K0 and K1."""
    both = np.moveaxis(sums, -1, 0)
    return np.moveaxis(np.stack([_applied(largest[..., None, :, :], e) for e in both]), 0, -1)
