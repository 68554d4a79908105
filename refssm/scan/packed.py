"""Sequences packed one after another: the scan resets its state where a new one begins.

    x_k = b_k if r_k,  else a_k x_{k-1} + b_k

A decay of zero would do the same for finite numbers. Here the state is selected, not multiplied, so
no NaN or infinity of one sequence reaches the next [blelloch1990prefix, lu2023structured].
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.domains import decays, resets, signals


def linear_scan_packed(a, b, resets):
    """x_k = a_k x_{k-1} + b_k along time, x_k = b_k where a sequence begins.

    Signature ``(l,n),(l,n),(l)->(l,n)``: as `linear_scan`, with `resets` true (or an integer that
    is not 0) at the first step of each packed sequence; the very first step needs none. The value
    of `a` at a reset has no effect. Units, types and errors are those of `linear_scan`; TypeError
    if `resets` is neither. Source: [blelloch1990prefix, §1.5], in S5's scan [lu2023structured].

    >>> import refssm
    >>> a, b = [[0.5], [0.5], [0.5]], [[1.0], [1.0], [1.0]]
    >>> refssm.linear_scan_packed(a, b, [False, False, True]).ravel()
    array([1. , 1.5, 1. ])
    """
    batch = np.broadcast_shapes(resets.shape[:-1], a.shape[:-2], b.shape[:-2])
    a, b = (np.broadcast_to(c, (*batch, *c.shape[-2:])) for c in (a, b))
    x = np.empty_like(b, dtype=np.result_type(a, b))
    x[..., :1, :] = b[..., :1, :]
    for k in range(1, x.shape[-2]):
        before = a[..., k, :] * x[..., k - 1, :]
        x[..., k, :] = np.where(resets[..., k, None], 0, before) + b[..., k, :]
    return x


def linear_scan_packed_vjp(dx, a, b, resets):
    """g_k = dx_k + a_{k+1}* g_{k+1}, g_k = dx_k at an end;  db_k = g_k,  da_k = x_{k-1}* g_k.

    `da_k` is 0 where a sequence begins. Returns `(da, db, None)`.
    """
    x = LINEAR_SCAN_PACKED.reference(a, b, resets)
    decay = np.broadcast_to(a, x.shape)
    g, da = dx.astype(np.result_type(dx, a, b)), np.zeros_like(x, dtype=np.result_type(dx, a, b))
    for k in range(x.shape[-2] - 1, 0, -1):
        first = resets[..., k, None]
        da[..., k, :] = np.where(first, 0, x[..., k - 1, :].conj() * g[..., k, :])
        g[..., k - 1, :] = (
            np.where(first, 0, decay[..., k, :].conj() * g[..., k, :]) + dx[..., k - 1, :]
        )
    return unbroadcast(da, a), unbroadcast(g, b), None


LINEAR_SCAN_PACKED = Operator(
    reference=linear_scan_packed,
    signature="(l,n),(l,n),(l)->(l,n)",
    inputs={"a": decays, "b": signals, "resets": resets},
    outputs=("x",),
    batch="b, b, b",
    traits=frozenset({"causal", "linear:b"}),
    citation="blelloch1990prefix, §1.5",
    tags=("rnn_scan reset", "binary_operator_reset", "linear scan varlen cu_seqlens"),
)
linear_scan_packed = LINEAR_SCAN_PACKED.checked(linear_scan_packed)
linear_scan_packed_vjp = LINEAR_SCAN_PACKED.checked_vjp(linear_scan_packed_vjp)
