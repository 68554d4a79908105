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

from refssm._overridable import overridable


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
    rho, c = rotation(dt[..., None])
    n, l = x0.shape[-1], u.shape[-1]
    batch = np.broadcast_shapes(dt.shape, u.shape[:-1], x0.shape[:-1])
    s = np.zeros((*batch, n + 1, l), np.result_type(dt, u, x0))
    x = np.zeros((*batch, n, l + 1), s.dtype)
    s[..., 0, :], x[..., 0] = u, x0
    for m in range(n + l - 1):  # all stages at once; each is one step behind the stage before it
        j = np.arange(max(0, m - l + 1), min(n, m + 1))
        k = m - j
        before, into = x[..., j, k], s[..., j, k]
        x[..., j, k + 1] = rho * before + c * into
        s[..., j + 1, k] = c * before - rho * into
    return s, x


def turning(x):
    """(T x)_j = j x_{j−1} − (j + 1) x_{j+1}, 2dt times the derivative of states from rest by dt.

    For the Laguerre functions ∂L_j/∂dt = (j L_{j−1} − (j + 1) L_{j+1})/(2dt).
    """
    j = np.arange(x.shape[-1], dtype=np.finfo(x.dtype).dtype)
    nothing = np.zeros_like(x[..., :1])
    lower = np.concatenate([nothing, x[..., :-1]], axis=-1)
    upper = np.concatenate([x[..., 1:], nothing], axis=-1)
    return j * lower - (j + 1) * upper
