"""Selective scans and their adjoints: real ones in lanes, and the compiled recurrence of others.

The adjoint stores the √l states between blocks of √l steps, and computes those of one block again:
O(n √l) numbers [chen2016training]. One call handles all channels that share B and C and sums their
gradients of B and C, so no array of channels × l × n exists.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

from math import prod

import numpy as np

from refssm.activations import sigmoid, silu, softplus
from refssm.jit._compiling.gufunc import blocks, gufunc, joined
from refssm.jit.selective_scan import adjoint, forward
from refssm.selective_scan.mamba import steps

COMPLEX = ("c8", "c16")


def scan(u, dt, A, B, C, x0, resets):
    """The outputs, and the last state; real arrays have a kernel of their own."""
    arrays = u, dt, A, B, C, x0, resets
    return _complex_scan(*arrays) if _complex(arrays) else forward.scan(*arrays)


def gated_scan(u, dt, A, B, C, D, z, dt_bias, x0, resets):
    """The outputs of Mamba's scan, and the last state."""
    arrays = u, dt, A, B, C, D[..., None], z, dt_bias[..., None], x0, resets
    if not _complex(arrays):
        return forward.gated_scan(*arrays)
    s, x = _complex_scan(u, steps(dt, dt_bias), A, B, C, x0, resets)
    return (s + D[..., None] * u) * silu(z), x


def _complex(arrays) -> bool:
    """True if some of them are complex."""
    return any(map(np.iscomplexobj, arrays))


@gufunc("(l),(l),(n),(l,n),(l,n),(n),(l)->(l),(n)", flag=6, kinds=COMPLEX)
def _complex_scan(u, dt, A, B, C, x0, resets, y, x):
    """x_k = e^{dt_k A} x_{k-1} + dt_k u_k B_k, first term 0 at a reset; y_k = C_k · x_k."""
    for n in range(A.size):
        x[n] = x0[n]
    for k in range(u.size):
        drive, total = dt[k] * u[k], u.dtype.type(0)
        for n in range(A.size):
            if resets[k]:
                x[n] = drive * B[k, n]
            else:
                x[n] = np.exp(dt[k] * A[n]) * x[n] + drive * B[k, n]
            total += C[k, n] * x[n]
        y[k] = total


@gufunc(
    "(d,l),(d,n),(d,l),(d,l),(d,n),(l,n),(l,n),(d,n),(d,l)"
    "->(d,l),(d,l),(d,l),(d,n),(l,n),(l,n),(d,n)",
    flag=8,
    kinds=COMPLEX,
)
def _block_back(dy, dx, u, dt, A, B, C, x0, resets, y, du, ddt, dA, dB, dC, dx0):
    """y and all gradients of one block: g_k = C_k* dy_k + a_{k+1}* g_{k+1}; at the end dx0."""
    (length, size), zero = B.shape, u.dtype.type(0)
    inputs, outputs = np.empty((length, size), A.dtype), np.empty((length, size), A.dtype)
    by_B, by_C = np.empty((length, size), A.dtype), np.empty((length, size), A.dtype)
    a, kept = np.empty((length, size), A.dtype), np.empty((length, size), A.dtype)
    x, g = np.empty((length + 1, size), A.dtype), np.empty(size, A.dtype)
    by_A, by_u, by_dt = np.empty(size, A.dtype), np.empty(size, A.dtype), np.empty(size, A.dtype)
    for k in range(length):
        for n in range(size):
            inputs[k, n], outputs[k, n], by_B[k, n], by_C[k, n] = B[k, n], C[k, n], 0, 0
    for d in range(u.shape[0]):
        for n in range(size):
            x[0, n], g[n], by_A[n] = x0[d, n], dx[d, n], 0
        for k in range(length):
            step, drive, total = dt[d, k], dt[d, k] * u[d, k], zero
            for n in range(size):
                a[k, n] = np.exp(step * A[d, n])
                kept[k, n] = zero if resets[d, k] else a[k, n] * x[k, n]
                x[k + 1, n] = kept[k, n] + drive * inputs[k, n]
                total += outputs[k, n] * x[k + 1, n]
            y[d, k] = total
        for k in range(length - 1, -1, -1):
            step, u_k, dy_k = dt[d, k], u[d, k], dy[d, k]
            for n in range(size):
                g_n = np.conj(outputs[k, n]) * dy_k + g[n]
                e = zero if resets[d, k] else np.conj(kept[k, n]) * g_n  # 0·NaN is NaN
                by_u[n] = np.conj(step * inputs[k, n]) * g_n
                by_dt[n] = np.conj(u_k * inputs[k, n]) * g_n + np.conj(A[d, n]) * e
                by_A[n] += step * e
                by_B[k, n] += np.conj(step * u_k) * g_n
                by_C[k, n] += np.conj(x[k + 1, n]) * dy_k
                g[n] = np.conj(a[k, n]) * g_n
            u_sum, dt_sum = zero, zero
            for n in range(size):
                u_sum += by_u[n]
                dt_sum += by_dt[n]
                g[n] = zero if resets[d, k] else g[n]
            du[d, k], ddt[d, k] = u_sum, dt_sum
        for n in range(size):
            dA[d, n], dx0[d, n] = by_A[n], g[n]
    for k in range(length):
        for n in range(size):
            dB[k, n], dC[k, n] = by_B[k, n], by_C[k, n]


def at_rest(A) -> np.ndarray:
    """A state of zeros."""
    return np.zeros(A.shape[-1], np.finfo(A.dtype).dtype)


def pulled_back(dy, dx, u, dt, A, B, C, x0, resets):
    """The gradients from y and the last state: (du, ddt, dA, dB, dC, dx0).

    All have all batch axes, except that dB and dC may have length 1 where B and C both have.
    """
    arrays = dy, dx, u, dt, A, B, C, x0, resets
    return _complex_back(*arrays)[1:] if _complex(arrays) else adjoint.scan_back(*arrays)


def gated_back(dy, dx, u, dt, A, B, C, D, z, dt_bias, x0, resets):
    """The gradients for all arguments of Mamba's scan and x0, likewise."""
    arrays = dy, dx, u, dt, A, B, C, D[..., None], z, dt_bias[..., None], x0, resets
    if not _complex(arrays):
        gradients = adjoint.gated_back(*arrays)
        du, ddt, dA, dB, dC, dD, dz, ddt_bias, dx0 = gradients
        return du, ddt, dA, dB, dC, dD[..., 0], dz, ddt_bias[..., 0], dx0
    v, open_ = dt + dt_bias[..., None], sigmoid(z)
    ds = dy * (z * open_)
    y, du, dstep, dA, dB, dC, dx0 = _complex_back(ds, dx, u, softplus(v), A, B, C, x0, resets)
    s = y + D[..., None] * u
    dz = s.conj() * dy * (open_ * (1 + z * sigmoid(-z)))
    ddt, dD = dstep * sigmoid(v), (u.conj() * ds).sum(-1)
    return du + D[..., None].conj() * ds, ddt, dA, dB, dC, dD, dz, ddt.sum(-1), dx0


def _complex_back(dy, dx, u, dt, A, B, C, x0, resets):
    """y, and the gradients from y and the last state: (y, du, ddt, dA, dB, dC, dx0).

    All have all batch axes, except that dB and dC have length 1 where B and C both have.
    """
    channels = (dy, dx, u, dt, A, x0, resets)
    batch = np.broadcast_shapes(*(c.shape[:-1] for c in channels), B.shape[:-2], C.shape[:-2])
    B, C = (c.reshape(*(1,) * (len(batch) + 2 - c.ndim), *c.shape) for c in (B, C))
    shared = tuple(i for i in range(len(batch)) if B.shape[i] == C.shape[i] == 1)
    dy, dx, u, dt, A, x0, resets = (_gathered(c, batch, shared) for c in channels)
    B, C = B.squeeze(shared), C.squeeze(shared)

    def piece(w):
        return u[..., w], dt[..., w], A, B[..., w, :], C[..., w, :]

    def run(w, x):
        u, dt, A, B, C = piece(w)
        return _complex_scan(u, dt, A, B[..., None, :, :], C[..., None, :, :], x, resets[..., w])[1]

    by_channel, by_time, dA, dx0 = [], [], 0, dx
    for w, x in blocks(run, x0, u.shape[-1]):
        *parts, dA_w, dB, dC, dx0 = _block_back(dy[..., w], dx0, *piece(w), x, resets[..., w])
        by_channel.append(parts)
        by_time.append((dB, dC))
        dA = dA + dA_w
    y, du, ddt, dA, dx0 = (_scattered(c, batch, shared) for c in (*joined(by_channel, -1), dA, dx0))
    dB, dC = (np.expand_dims(c, shared) for c in joined(by_time, -2))
    return y, du, ddt, dA, dB, dC, dx0


def _gathered(c, batch, shared):
    """(…, d, core): the shared batch axes merged into one."""
    c = np.broadcast_to(c, (*batch, c.shape[-1]))
    own = len(batch) - len(shared)
    c = np.moveaxis(c, shared, range(own, len(batch)))
    return c.reshape(*c.shape[:own], prod(c.shape[own:-1]), c.shape[-1])


def _scattered(c, batch, shared):
    """The inverse of `_gathered`: all batch axes in their places."""
    own = len(batch) - len(shared)
    c = c.reshape(*c.shape[:own], *(batch[i] for i in shared), c.shape[-1])
    return np.moveaxis(c, range(own, len(batch)), shared)
