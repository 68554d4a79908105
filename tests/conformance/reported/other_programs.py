"""Wrong and right programs of other operators, written after public bug reports."""

import numpy as np

from refssm.conformance.calling.finding import operator_named


def affine(left, right):
    """The map of the left part, then that of the right one."""
    return right[0] * left[0], right[0] * left[1] + right[1]


def both_ways(backwards):
    """A scan forward and one from the end; `backwards(held, new)` combines in the second."""

    def scan(a, b, order, combine):
        x, held = np.empty(b.shape, np.result_type(a, b)), None
        for k in order:
            new = (a, b[..., k, :])
            held = new if held is None else combine(held, new)
            x[..., k, :] = held[1]
        return x

    def diagonal_ssm_bidirectional(a, B, C, D, u):
        b, steps = u @ np.swapaxes(B, -1, -2), range(u.shape[-2])
        parts = [scan(a, b, steps, affine), scan(a, b, steps[::-1], backwards)]
        both = np.concatenate(parts, -1)
        return both @ np.swapaxes(C, -1, -2) + u @ np.swapaxes(D, -1, -2)

    return diagonal_ssm_bidirectional


def exchanged(held, new):
    """The operands in the order of a forward scan."""
    return affine(new, held)


def by_eigenvectors(A, B, dt):
    """Zero-order hold by diagonalization: V e^(dt w) V^-1 and V ((e^(dt w) - 1)/w) V^-1 B."""
    w, V = np.linalg.eig(A)
    grown = np.exp(dt[:, None] * w)
    with np.errstate(all="ignore"):
        held = (grown - 1) / w
    inverse = np.linalg.inv(V)
    A_bar = (V * grown[:, None, :]) @ inverse
    B_bar = (V * held[:, None, :]) @ (inverse @ B)
    if not np.iscomplexobj(A):
        A_bar = A_bar.real
        B_bar = B_bar if np.iscomplexobj(B) else B_bar.real
    return A_bar.astype(np.result_type(A, dt)), B_bar.astype(np.result_type(A, B, dt))


def exponential(G):
    """Halved, Taylor's series, squared, in the wider type."""
    wide = np.clongdouble if np.iscomplexobj(G) else np.longdouble
    norm = float(abs(G).sum(-2).max(initial=0))
    halvings = max(0, int(np.ceil(np.log2(max(norm, 1e-300)))) + 4) if np.isfinite(norm) else 0
    G = G.astype(wide) / wide(2) ** halvings
    E = T = np.eye(G.shape[-1], dtype=wide)
    for k in range(1, 22):
        T = T @ G / wide(k)
        E = E + T
    for _ in range(halvings):
        E = E @ E
    return E


def by_one_exponential(A, B, dt):
    """Zero-order hold by the exponential of dt [[A, B], [0, 0]]."""
    kind = np.result_type(A, B, dt)
    A_bar, B_bar = np.empty(A.shape, np.result_type(A, dt)), np.empty(B.shape, kind)
    n, m = B.shape[-2:]
    for d in range(len(A)):
        G = np.zeros((n + m, n + m), kind)
        G[:n] = dt[d] * np.hstack([A[d], B[d]])
        E = exponential(G)
        A_bar[d] = E[:n, :n] if np.iscomplexobj(A) else E[:n, :n].real
        B_bar[d] = E[:n, n:]
    return A_bar, B_bar


def sums_of(kind):
    """A scan whose running value is kept in a type, for arrays of any."""

    def linear_scan(a, b):
        x = np.empty(b.shape, b.dtype)
        held = np.zeros(b[..., :1, :].shape, kind or b.dtype)[..., 0, :]
        for k in range(b.shape[-2]):
            held = a[..., k, :].astype(held.dtype) * held + b[..., k, :].astype(held.dtype)
            x[..., k, :] = held
        return x

    return linear_scan


def _by_transforms(u, k, m):
    l = u.shape[-1]
    return np.fft.ifft(np.fft.fft(u, m) * np.fft.fft(k, m))[..., :l]


def _like(y, *args):
    kind = np.result_type(*args)
    return (y if kind.kind == "c" else y.real).astype(kind)


def with_transforms(short):
    """A causal convolution by transforms of 2l − `short`, and its gradient by others."""

    def causal_convolution(u, k):
        l = u.shape[-1]
        return _like(_by_transforms(u, k, max(2 * l - short, 1)), u, k) if l else u * k

    return causal_convolution


def gradient_with_transforms(short):
    """The gradient of a causal convolution by transforms of 2l − `short`."""

    def causal_convolution_vjp(dy, u, k):
        l = u.shape[-1]
        m = max(2 * l - short, 1)
        du = _by_transforms(dy[..., ::-1], k.conj(), m)[..., ::-1] if l else dy * k
        dk = _by_transforms(dy[..., ::-1], u.conj(), m)[..., ::-1] if l else dy * u
        while dk.ndim > k.ndim:
            dk = dk.sum(0)
        return _like(du, dy, k), _like(dk, dy, u)

    return causal_convolution_vjp


def only_in_one_piece(dx, a, b):
    """A right gradient that refuses arguments that are not in one piece of memory."""
    if not all(x.flags.c_contiguous for x in (dx, a, b)):
        raise RuntimeError("arguments must be contiguous")
    return operator_named("linear_scan").bare_vjp(dx, a, b)


def infinity_becomes_nan(w, B, C, dt, *, l):
    """A kernel with NaN in place of infinity."""
    k = operator_named("diagonal_kernel_bilinear_real").reference(w, B, C, dt, l=l)
    k[np.isinf(k)] = np.nan
    return k


def on_a_damped_circle(w, P, Q, B, C, dt, *, l):
    """S4's algorithm at nodes of a radius below 1, by a transform of 32 l nodes."""
    kind = np.result_type(w, P, Q, B, C, dt)
    k = np.zeros((len(w), l), kind)
    m = 32 * l
    if not l:
        return k
    r = np.exp(-36 / m)  # aliasing is below 1e-15, and noise grows by e^(36/32)
    z = np.exp(2j * np.pi * np.arange(m) / m) / r
    for d in range(len(w)):
        args = (w[d], P[d], Q[d], B[d], C[d], dt[d])
        if not all(np.isfinite(v).all() for v in args):
            k[d] = np.nan
            continue
        y = np.fft.ifft(_transfer(z, *args))[:l] * r ** -np.arange(l)
        k[d] = y if kind.kind == "c" else y.real
    return k


def _transfer(z, w, P, Q, B, C, dt):
    """The transfer function of a diagonal matrix and a low rank, by Woodbury's formula."""
    R = 1 / ((2 / np.float64(dt) * (z - 1) / (z + 1))[:, None] - w)
    CB, CP = (R * (C * B)).sum(-1), (R[:, :, None] * (C[:, None] * P)).sum(1)
    if P.shape[-1]:
        QB = (R[:, :, None] * (np.conj(Q) * B[:, None])).sum(1)
        QP = np.einsum("zn,nr,ns->zrs", R, np.conj(Q), P)
        solved = np.linalg.solve(np.eye(P.shape[-1]) + QP, QB[..., None])
        CB = CB - (CP[:, None, :] @ solved)[:, 0, 0]
    return 2 / (1 + 1 / z) * CB


def by_eigenvalues(w, B, C):
    """Hankel singular values as roots of the eigenvalues of P Q, which lose the small ones."""
    w, B, C = np.broadcast_arrays(w, B, C)
    K = -(w[..., :, None] + np.conj(w[..., None, :]))
    P = B[..., :, None] * np.conj(B[..., None, :]) / K
    Q = np.conj(C[..., :, None]) * C[..., None, :] / np.conj(K)
    values = np.sqrt(np.abs(np.linalg.eigvals(np.nan_to_num(P @ Q))))
    return (-np.sort(-values, -1)).astype(np.finfo(np.result_type(w, B, C)).dtype)
