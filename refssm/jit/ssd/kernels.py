"""The compiled recurrence of state-space duality, and its adjoint: the state across SIMD lanes.

The adjoint stores the √l states between blocks of √l steps, and computes those of one block again:
O(p n √l) numbers per head [chen2016training].
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm.jit._compiling.gufunc import blocks, gufunc, joined
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import plain, times_plus, total
from refssm.jit._vectors.matrix import (
    lanes_at,
    lanes_of,
    matrix,
    neighbours,
    put_lanes,
    zeros,
)
from refssm.jit.ssd.backward import pieces_back
from refssm.jit.ssd.forward import products, scan_pieces
from refssm.jit.ssd.heads import grouped

MANY = 8  # from this many steps on matrix products are faster than single steps
KINDS = ("f8", "c16")  # several steps: single precision is computed in double and rounded once


@gufunc("(l,p),(l),(l,n),(l,n),(p,n),(l)->(l,p),(p,n)", flag=5, kinds=KINDS)
def _scan_steps(x, log_a, B, C, S0, resets, y, S_last):
    """S_t = e^{log_a_t} S_{t-1} + x_t B_tᵀ, x_t B_tᵀ at a reset;  y_t = S_t C_t;  last S."""
    heads, size = S0.shape
    S = np.empty((size, heads), x.dtype)  # transposed: sums over n in p lanes
    total, now = np.empty(heads, x.dtype), np.empty(heads, x.dtype)
    for n in range(size):
        for p in range(heads):
            S[n, p] = S0[p, n]
    for t in range(x.shape[0]):
        a = np.exp(log_a[t])
        if resets[t]:  # reset before the decay: NaN and infinity do not pass
            a = x.dtype.type(0)
            for n in range(size):
                for p in range(heads):
                    S[n, p] = 0
        for p in range(heads):
            total[p], now[p] = 0, x[t, p]
        for n in range(size):
            for p in range(heads):
                S[n, p] = a * S[n, p] + now[p] * B[t, n]
                total[p] += S[n, p] * C[t, n]
        for p in range(heads):
            y[t, p] = total[p]
    for n in range(size):
        for p in range(heads):
            S_last[p, n] = S[n, p]


@part
def _in_lanes(x, a, B, C, S0, y, S):
    """S = a S0 + x Bᵀ, y = S C, with whole vectors of states."""
    plain()
    lanes = lanes_of(S)
    for p in range(S.rows):
        total_of, now = zeros(S), x[0, p]
        for c in range(0, S.columns, lanes):
            state = times_plus(lanes_at(B, 0, c), now, a * lanes_at(S0, p, c))
            put_lanes(S, p, c, state)
            total_of = times_plus(state, lanes_at(C, 0, c), total_of)
        y[0, p] = total(total_of)


@gufunc("(l,p),(l),(l,n),(l,n),(p,n)->(l,p),(p,n)", kinds=("f4", "f8"))
def _one_step(x, log_a, B, C, S0, y, S):
    """The only step, without a reset; in the type of its arguments."""
    a, columns = np.exp(log_a[0]), S.shape[1]
    by_B, by_C, before, after = matrix(B), matrix(C), matrix(S0), matrix(S)
    beside = neighbours(by_B) and neighbours(by_C) and neighbours(before) and neighbours(after)
    if beside and columns % lanes_of(after) == 0:
        _in_lanes(x, a, by_B, by_C, before, y, after)
        return
    for p in range(S.shape[0]):
        total_of = x.dtype.type(0)
        for n in range(columns):
            S[p, n] = a * S0[p, n] + x[0, p] * B[0, n]
            total_of += S[p, n] * C[0, n]
        y[0, p] = total_of


@gufunc(
    "(l,p),(p,n),(l,p),(l),(l,n),(l,n),(p,n),(l)->(l,p),(l),(l,n),(l,n),(p,n)", flag=7, kinds=KINDS
)
def _block_back(dy, dS, x, log_a, B, C, S0, resets, dx, dlog_a, dB, dC, dS0):
    """Gradients of one block: G_t = dy_t C_tᴴ + a_{t+1}* G_{t+1}; at the end dS0."""
    (length, heads), size, zero = x.shape, B.shape[1], x.dtype.type(0)
    S, G = np.empty((length + 1, heads, size), x.dtype), np.empty((heads, size), x.dtype)
    B_t, C_t, G_p = (np.empty(size, x.dtype), np.empty(size, x.dtype), np.empty(size, x.dtype))
    by_a, by_B, by_C = (np.empty(size, x.dtype), np.empty(size, x.dtype), np.empty(size, x.dtype))
    for p in range(heads):
        for n in range(size):
            S[0, p, n], G[p, n] = S0[p, n], dS[p, n]
    for t in range(length):
        a = np.exp(log_a[t])
        for n in range(size):
            B_t[n] = B[t, n]
        for p in range(heads):
            x_p = x[t, p]
            for n in range(size):
                S[t + 1, p, n] = x_p * B_t[n]
            if not resets[t]:
                for n in range(size):
                    S[t + 1, p, n] += a * S[t, p, n]
    for t in range(length - 1, -1, -1):
        a, total = np.conj(np.exp(log_a[t])), zero
        for n in range(size):
            by_a[n], by_B[n], by_C[n] = 0, 0, 0
            B_t[n], C_t[n] = np.conj(B[t, n]), np.conj(C[t, n])
        for p in range(heads):  # several short loops, because those vectorize for complex types too
            x_p, dy_p, total = np.conj(x[t, p]), dy[t, p], zero
            for n in range(size):
                G_p[n] = G[p, n] + dy_p * C_t[n]
                by_B[n] += G_p[n] * x_p
            for n in range(size):
                by_C[n] += np.conj(S[t + 1, p, n]) * dy_p
            for n in range(size):
                G[p, n] = a * G_p[n]
                by_a[n] += np.conj(S[t, p, n]) * G[p, n]
            for n in range(size):
                total += G_p[n] * B_t[n]
            dx[t, p] = total
        total = zero
        for n in range(size):
            dB[t, n], dC[t, n] = by_B[n], by_C[n]
            total += by_a[n]
        dlog_a[t] = zero if resets[t] else total
        if resets[t]:
            for p in range(heads):
                for n in range(size):
                    G[p, n] = 0
    for p in range(heads):
        for n in range(size):
            dS0[p, n] = G[p, n]


def pulled_back(dy, dS, x, log_a, B, C, S0, resets):
    """Gradients from outputs and last state: (dx, dlog_a, dB, dC, dS0). They have all batch axes,
    except that dB and dC may be summed over some of the heads that share B and C."""
    arguments = dy, dS, x, log_a, B, C, S0
    kind = np.result_type(*arguments)
    if kind.kind == "f" and in_pieces(x, B):
        *gradients, finite = _back_in_pieces(
            *(a.astype(kind, copy=False) for a in arguments), resets
        )
        if finite:
            return gradients
    return _back_in_steps(*arguments, resets)


def _back_in_pieces(dy, dS, x, log_a, B, C, S0, resets):
    """The same, and whether all are finite."""
    shared = ((B, 2), (C, 2), (resets, 1))
    own, batch = grouped(((dy, 2), (dS, 2), (x, 2), (log_a, 1), (S0, 2)), shared)
    dy, dS, x, log_a, S0 = own
    *gradients, finite = pieces_back(dy, dS, x, log_a, B, C, products(B, C), S0, resets)
    dx, dlog_a, dB, dC, dS0 = gradients
    dx, dS0 = (c.reshape(*batch, *c.shape[-2:]) for c in (dx, dS0))
    return dx, dlog_a.reshape(*batch, dlog_a.shape[-1]), dB, dC, dS0, finite.all()


def in_pieces(x, B) -> bool:
    """True where matrix products are faster than single steps."""
    return x.shape[-2] >= MANY and x.shape[-1] > 0 and B.shape[-1] > 0


def _back_in_steps(dy, dS, x, log_a, B, C, S0, resets):
    """The gradients step by step."""
    kind = np.result_type(dy, dS, x, log_a, B, C, S0)

    def piece(w):
        return x[..., w, :], log_a[..., w], B[..., w, :], C[..., w, :]

    pieces = []
    for w, S in blocks(lambda w, S: _scan_steps(*piece(w), S, resets[..., w])[1], S0, x.shape[-2]):
        *parts, dS = _block_back(dy[..., w, :], dS, *piece(w), S, resets[..., w])
        dx, dlog_a, dB, dC = parts
        pieces.append((dx, dlog_a[..., None], dB, dC))
    dx, dlog_a, dB, dC = joined(pieces, -2)
    return tuple(c.astype(kind, copy=False) for c in (dx, dlog_a[..., 0], dB, dC, dS))


def scan(x, log_a, B, C, S0, resets):
    """All outputs, and the last state."""
    arguments = x, log_a, B, C, S0
    kind = np.result_type(*arguments)
    if kind.kind == "f" and in_pieces(x, B):
        y, S, finite = _scan_in_pieces(*(a.astype(kind, copy=False) for a in arguments), resets)
        if finite:
            return y, S
    if kind.kind == "f" and x.shape[-2] == 1 and not resets.any():
        return _one_step(*(a.astype(kind, copy=False) for a in arguments))
    return tuple(c.astype(kind, copy=False) for c in _scan_steps(*arguments, resets))


def _scan_in_pieces(x, log_a, B, C, S0, resets):
    """All outputs, the last state, and whether they are finite."""
    shared = ((B, 2), (C, 2), (resets, 1))
    (x, log_a, S0), batch = grouped(((x, 2), (log_a, 1), (S0, 2)), shared)
    y, S, finite = scan_pieces(x, log_a, B, C, products(B, C), S0, resets)
    return y.reshape(*batch, *y.shape[-2:]), S.reshape(*batch, *S.shape[-2:]), finite.all()


def at_rest(x, B) -> np.ndarray:
    """A state of zeros."""
    return np.zeros((x.shape[-1], B.shape[-1]), np.finfo(x.dtype).dtype)
