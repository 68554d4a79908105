"""Numba mirrors of refssm.response: poles innermost, one sum in registers."""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc makes its outputs itself, which pyright cannot see)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.response import IMPULSE_RESPONSE


@gufunc("(n),(n),(l)->(l)")
def _response(v, w, t, y):
    for l in range(t.size):
        y[l] = 0
        for n in range(v.size):
            y[l] += v[n] * np.exp(w[n] * t[l])


@gufunc("(l),(n),(n),(l)->(n),(n),(l)", kinds=("c8", "c16"))
def _response_back(dy, v, w, t, dv, dw, dt):
    dv[:], dw[:], dt[:] = 0, 0, 0
    for l in range(t.size):
        for n in range(v.size):
            E = np.exp(w[n] * t[l])
            dv[n] += dy[l] * np.conj(E)
            dw[n] += dy[l] * np.conj(t[l] * (v[n] * E))
            dt[l] += dy[l] * np.conj(w[n] * (v[n] * E))


@mirror(IMPULSE_RESPONSE)
def impulse_response(v, w, t):
    return _response(v, w, t)


@mirror(IMPULSE_RESPONSE)
def impulse_response_vjp(dy, v, w, t):
    """Real arguments are computed as complex."""
    dv, dw, dt = _response_back(dy, v, w, t)
    return unbroadcast(dv, v), unbroadcast(dw, w), unbroadcast(dt, t)
