"""Wrong and right programs of selective scans, written after public bug reports."""

import numpy as np
from reporting import rounded_to_8_bits

from refssm.conformance.calling.finding import operator_named

SCAN = operator_named("selective_scan_stateful").reference


def looped(u, dt, A, B, C, x0, flush=lambda a: a):
    """A loop over time from a first state."""
    h = np.array(x0, np.result_type(u, dt, A, B, x0))
    y = np.zeros(u.shape, np.result_type(h, C))
    for k in range(u.shape[-1]):
        d = dt[..., k, None]
        h = flush(flush(np.exp(d * A)) * h + flush(d * u[..., k, None] * B[..., k, :]))
        y[..., k] = flush((h * C[..., k, :]).sum(-1))
    return y, h


def padded_rows(u, dt, A, B, C, x0):
    """A loop to which padding is a step of 0."""
    return looped(u, dt, A, B, C, x0)


def from_rest(u, dt, A, B, C):
    """A loop over time from a state of zeros."""
    h = np.zeros((*u.shape[:-1], A.shape[-1]), np.result_type(u, dt, A, B))
    return looped(u, dt, A, B, C, h)[0]


def in_chunks(states_of, size):
    """A scan in chunks; `states_of(exponents, inputs, h)` gives the states of one."""

    def selective_scan(u, dt, A, B, C):
        a = dt[..., None] * A[..., None, :]
        b = (dt * u)[..., None] * B
        y = np.empty(u.shape, np.result_type(a, b, C))
        h = np.zeros((*u.shape[:-1], A.shape[-1]), y.dtype)
        with np.errstate(all="ignore"):
            for k in range(0, u.shape[-1], size):
                w = slice(k, k + size)
                states = states_of(a[..., w, :], b[..., w, :], h)
                y[..., w] = (states * C[..., w, :]).sum(-1)
                h = states[..., -1, :]
        return y

    return selective_scan


def divided_by_decays(a, b, h):
    """Inputs divided by cumulated decays, which underflow."""
    decay = np.exp(np.cumsum(a, -2))
    return decay * (np.cumsum(b / decay, -2) + h[..., None, :])


def by_differences(a, b, h):
    """The same sums with weights e^(S_i - S_j), which cannot overflow."""
    states = np.zeros(np.broadcast_shapes(a.shape, b.shape), np.result_type(a, b, h))
    for i in range(a.shape[-2]):
        sums = np.cumsum(a[..., i::-1, :], -2)  # the nearest step first
        states[..., i, :] = b[..., i, :] + np.exp(sums[..., -1, :]) * h
        for j in range(i):
            states[..., i, :] += np.exp(sums[..., i - j - 1, :]) * b[..., j, :]
    return states


def rates_of_8_bits(u, dt, A_log, B, C):
    """The function takes log(-A), and computes -exp of it in bfloat16."""
    return from_rest(u, dt, -rounded_to_8_bits(np.exp(A_log)), B, C)


def rates_in_single(u, dt, A_log, B, C):
    """The function takes log(-A)."""
    return from_rest(u, dt, -np.exp(A_log), B, C)


def constant_B_from_rest(case):
    """Cases in which B is the same in all steps, and the first state is zero."""
    case = dict(case)
    if case["B"].shape[-2]:
        case["B"] = np.broadcast_to(case["B"][..., :1, :], case["B"].shape).copy()
    return {**case, "x0": np.zeros_like(case["x0"])}


def with_B_at_the_output(last):
    """B is applied with C; the last state is `last(h, B)`."""

    def selective_scan_stateful(u, dt, A, B, C, x0):
        h = np.zeros((*u.shape[:-1], A.shape[-1]), np.result_type(u, dt, A, B, x0))
        y = np.zeros(u.shape, np.result_type(h, C))
        for k in range(u.shape[-1]):
            d = dt[..., k, None]
            h = np.exp(d * A) * h + d * u[..., k, None]
            y[..., k] = (h * (B[..., k, :] * C[..., k, :])).sum(-1)
        return y, last(h, B) if u.shape[-1] else h

    return selective_scan_stateful


def times_B(h, B):
    """The state with the factor that was left out."""
    return h * B[..., -1, :]


def padded(case):
    """Cases whose last third is padding: a step of 0."""
    dt = case["dt"].copy()
    dt[..., dt.shape[-1] - dt.shape[-1] // 3 :] = 0
    return {**case, "dt": dt}


def at_rest(case):
    """Cases whose first state is zero."""
    return {**case, "x0": np.zeros_like(case["x0"])}


def always_from_rest(u, dt, A, B, C, x0):
    """A kernel without a first state."""
    return looped(u, dt, A, B, C, np.zeros_like(x0))


def zeros_where_empty(u, dt, A, B, C, x0):
    """Right, but an empty piece returns a state of zeros."""
    y, x = SCAN(u, dt, A, B, C, x0)
    return (y, x) if u.shape[-1] else (y, 0 * x)


def flushing(u, dt, A, B, C, x0):
    """Numbers below the smallest normal one become 0, as on a card."""
    return looped(u, dt, A, B, C, x0, flush=_flushed)


def _flushed(a):
    if a.dtype.kind != "f":
        return a
    return np.where(np.abs(a) < np.finfo(a.dtype).tiny, a.dtype.type(0), a)
