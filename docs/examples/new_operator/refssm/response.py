"""Impulse responses of diagonal systems at given times.

    y_l = Σ_n v_n e^(w_n t_l)

`w` are the poles, `v` the residues C_n B_n, `t` the times since the impulse.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.domains import poles, residues, times


def impulse_response(v, w, t):
    """y_l = Σ_n v_n e^(w_n t_l).

    Signature ``(n),(n),(l)->(l)``: `v` the residues, `w` the poles, `t` the times; leading axes
    broadcast. Any of float32, float64, longdouble and their complex types; the result has
    ``np.result_type(v, w, t)``. Units: `t` that of 1/`w`, `y` that of `v`.

    Raises ValueError where sizes disagree, TypeError for other types. Source: [gu2022s4].
    """
    return (v[..., None, :] * np.exp(w[..., None, :] * t[..., :, None])).sum(-1)


def impulse_response_vjp(dy, v, w, t):
    """E_ln = e^(w_n t_l);  ∂y/∂v_n = E_ln,  ∂y/∂w_n = v_n t_l E_ln,  ∂y/∂t_l = Σ_n v_n w_n E_ln.

    Returns `(dv, dw, dt)`, shaped like `v`, `w` and `t`.
    """
    E = np.exp(w[..., None, :] * t[..., :, None])  # (…, l, n)
    vE = v[..., None, :] * E
    dv = (dy[..., :, None] * E.conj()).sum(-2)
    dw = (dy[..., :, None] * (t[..., :, None] * vE).conj()).sum(-2)
    dt = dy * (w[..., None, :] * vE).sum(-1).conj()
    return unbroadcast(dv, v), unbroadcast(dw, w), unbroadcast(dt, t)


IMPULSE_RESPONSE = Operator(
    reference=impulse_response,
    signature="(n),(n),(l)->(l)",
    inputs={"v": residues, "w": poles, "t": times},
    outputs=("y",),
    batch="d, d, ",
    traits=frozenset({"linear:v"}),
    citation="gu2022s4",
    lacks=frozenset({"gpu"}),
    tags=("impulse response at given times",),
)
impulse_response = IMPULSE_RESPONSE.checked(impulse_response)
impulse_response_vjp = IMPULSE_RESPONSE.checked_vjp(impulse_response_vjp)
