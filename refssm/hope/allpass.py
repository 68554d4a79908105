"""A cascade of first-order all-passes, each a rotation of its state and its input.

    A(z) = (z⁻¹ − ρ)/(1 − ρ z⁻¹),    ρ = (1 − dt)/(1 + dt),    c = √(1 − ρ²) = 2√dt/(1 + dt)

    [ x_k  ]   [ ρ   c ] [ x_{k−1} ]
    [ s'_k ] = [ c  −ρ ] [ s_k     ]

with s the input of a stage, s' its output and x its state.

Rotations keep lengths: the energy of the input is in the states or in the output. From rest, the
state of stage j is the input's coefficient of the discrete Laguerre function L_j = c/(1 − ρ z⁻¹)
A^j, and those are orthonormal [heuberger2003hambo].
"""

import numpy as np

from refssm._numerics.overridable import overridable


def rotation(dt):
    """ρ and c."""
    return (1 - dt) / (1 + dt), 2 * np.sqrt(dt) / (1 + dt)


@overridable
def cascade(dt, u, x0):
    """Signals s_0 = u, …, s_n between the stages, and their states, starting with x0.

    Shapes (…), (…, l), (…, n) -> (…, n + 1, l), (…, n, l + 1). Array types with
    `__array_function__` (the judge's) bring their own rule here: an error bound. Bounds of each
    single operation would grow like (1 + 2|ρ|)^n.
    """
    n, l = x0.shape[-1], u.shape[-1]
    batch = np.broadcast_shapes(dt.shape, u.shape[:-1], x0.shape[:-1])
    rho, c = (np.broadcast_to(a[..., None], (*batch, 1)) for a in rotation(dt))
    turn = np.stack([rho, -rho])
    # all stages at once, each one step behind the stage before it: wave m has x_{j, m−j−1} and
    # s_{j, m−j} for every stage j
    waves = np.zeros((n + l + 1, 2, *batch, n + 1), np.result_type(dt, u, x0))
    states, signals = waves[:, 0], waves[:, 1]
    np.moveaxis(signals[:l, ..., 0], 0, -1)[:] = u
    j = np.arange(n)
    states[j, ..., j] = np.moveaxis(np.broadcast_to(x0, (*batch, n)), -1, 0)
    for m in range(n + l - 1):
        busy, later = slice(max(0, m - l + 1), min(n, m + 1)), waves[m + 1]
        before = waves[m, ..., busy]
        later[0, ..., busy], later[1, ..., 1:][..., busy] = turn * before + c * before[::-1]
    return stage_by_stage(signals, l), stage_by_stage(states[..., :n], l + 1)


def stage_by_stage(waves, l):
    """(…, stage, time) from (wave, …, stage): stage j has the l waves from the j-th on."""
    windows = np.lib.stride_tricks.sliding_window_view(waves, l, axis=0)
    return np.ascontiguousarray(np.diagonal(windows, axis1=0, axis2=-2).swapaxes(-1, -2))


def turning(x):
    """(T x)_j = j x_{j−1} − (j + 1) x_{j+1}, 2dt times the derivative of states from rest by dt.

    For the Laguerre functions ∂L_j/∂dt = (j L_{j−1} − (j + 1) L_{j+1})/(2dt).
    """
    j = np.arange(x.shape[-1], dtype=np.finfo(x.dtype).dtype)
    nothing = np.zeros_like(x[..., :1])
    lower = np.concatenate([nothing, x[..., :-1]], axis=-1)
    upper = np.concatenate([x[..., 1:], nothing], axis=-1)
    return j * lower - (j + 1) * upper
