"""Make any operator from one function, whole(x, log_a, B, C, S0, resets, chunk) -> y, S."""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.ssd import (
    SSD_CHUNKED,
    SSD_CHUNKED_PACKED,
    SSD_CHUNKED_STATEFUL,
    SSD_QUADRATIC,
    SSD_RECURRENT,
    SSD_RECURRENT_PACKED,
    SSD_RECURRENT_STATEFUL,
)

RECURRENT = (SSD_RECURRENT, SSD_RECURRENT_STATEFUL, SSD_RECURRENT_PACKED)
CHUNKED = (SSD_CHUNKED, SSD_CHUNKED_STATEFUL, SSD_CHUNKED_PACKED)
SEQUENCES = (*RECURRENT, SSD_QUADRATIC, *CHUNKED)
DEFAULT_CHUNK = 64


def form(op: Operator, whole):
    """`whole` with the arguments and results of `op`; without a state or resets these are zero."""

    def forward(x, log_a, B, C, *more, chunk=DEFAULT_CHUNK):
        S0, resets = _completed(op, x, log_a, B, C, more)
        kind = np.result_type(x, log_a, B, C, S0)
        y, S = whole(x, log_a, B, C, S0, resets, chunk)
        y = y.astype(kind, copy=False)
        return (y, S.astype(kind, copy=False)) if _stateful(op) else y

    return forward


def gradient_form(op: Operator, whole):
    """whole(dy, dS, x, log_a, B, C, S0, resets, chunk) -> dx, dlog_a, dB, dC, dS0 as `op`'s VJP."""

    def vjp(dy, *more, chunk=DEFAULT_CHUNK):
        dS = more[:1] if _stateful(op) else ()
        x, log_a, B, C, *more = more[len(dS) :]
        S0, resets = _completed(op, x, log_a, B, C, more)
        dS = dS[0] if dS else np.zeros_like(S0)
        gradients = whole(dy, dS, x, log_a, B, C, S0, resets, chunk)
        kept = (x, log_a, B, C, S0) if _stateful(op) else (x, log_a, B, C)
        told = unbroadcast_each(gradients[: len(kept)], kept)
        return (*told, None) if _packed(op) else told

    return vjp


def _completed(op, x, log_a, B, C, more):
    """The first state and the resets, zero if `op` has none, broadcast over batch axes."""
    leading = (log_a.shape[:-1], *(a.shape[:-2] for a in (x, B, C)))
    rest = np.zeros((*np.broadcast_shapes(*leading), x.shape[-1], B.shape[-1]), x.dtype)
    S0 = more[0] if _stateful(op) else rest
    resets = more[0] if _packed(op) else np.zeros(x.shape[-2], bool)
    return S0, resets


def _stateful(op):
    return op.form == "stateful"


def _packed(op):
    return "resets" in op.inputs
