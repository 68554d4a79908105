"""Honest DPLR kernels: dense recurrences, doubling, S4's own steps, elimination at every node.

Forms that divide by a factor near 0 for slow modes get only modes that decay (`_damped`).
"""

import numpy as np

from honest import Honest
from honest.dplr.vjp import (
    dense_at_nodes_vjp,
    recurrent_vjp,
    through_the_spectrum_vjp,
)
from refssm._numerics.roots import roots_of_unity
from refssm.dplr import DPLR_KERNEL, DPLR_KERNEL_ALIASED
from refssm.dplr.system import matrix

ENOUGH = 2**22  # products of l n² beyond which a dense solve at every node is declined


def solve(M, N):
    """LAPACK's solve; NaN where M has NaN, because LAPACK may raise for it."""
    unknown = np.isnan(M).any((-2, -1), keepdims=True)
    X = np.linalg.solve(np.where(unknown, np.eye(M.shape[-1], dtype=M.dtype), M), N)
    return np.where(unknown, np.nan, X)


def _dense(w, P, Q, B, dt):
    """Ā and B̄ by LAPACK."""
    A, h = matrix(w, P, Q), dt[..., None, None]
    I = np.eye(w.shape[-1], dtype=w.real.dtype)
    M = I - h * A / 2
    return solve(M, I + h * A / 2), solve(M, h * B[..., None])[..., 0]


def _type(*arguments):
    return np.result_type(*arguments)


def _kept(K, dtype):
    """K, or its real part if the arguments are real."""
    return (K if dtype.kind == "c" else K.real).astype(dtype)


def _responses(A_bar, x, C, l):
    """C x, C Ā x, …"""
    batch = np.broadcast_shapes(A_bar.shape[:-2], x.shape[:-1], C.shape[:-1])
    K = np.zeros((*batch, l), np.result_type(A_bar, x, C))
    for k in range(l):
        K[..., k] = (C * x).sum(-1)
        x = (A_bar @ x[..., None])[..., 0]
    return K


def recurrent(w, P, Q, B, C, dt, *, l):
    """C Ā^k B̄, by one product of a dense matrix and a vector per step."""
    return _responses(*_dense(w, P, Q, B, dt), C, l).astype(_type(w, P, Q, B, C, dt))


def doubled(w, P, Q, B, C, dt, *, l):
    """The states for k < 2m are those for k < m and Ā^m times them."""
    A_bar, x = _dense(w, P, Q, B, dt)
    X, power = x[..., None], A_bar
    while X.shape[-1] < l:
        X, power = np.concatenate([X, power @ X], axis=-1), power @ power
    K = (C[..., None] * X[..., :l]).sum(-2)
    return K.astype(_type(w, P, Q, B, C, dt))


def steps_of_low_rank(w, P, Q, B, C, dt, *, l):
    """S4's recurrent mode: (2/dt + A) x, then Woodbury's identity, O(n r) a step."""
    h, rank = 2 / dt[..., None], np.eye(P.shape[-1], dtype=P.real.dtype)
    D, Q_adjoint = 1 / (h - w), Q.conj().swapaxes(-1, -2)
    DP = D[..., None] * P
    kept = solve(rank + Q_adjoint @ DP, rank)

    def solved(y):
        y = D * y
        return y - (DP @ (kept @ (Q_adjoint @ y[..., None])))[..., 0]

    x = 2 * solved(B)
    batch = np.broadcast_shapes(x.shape[:-1], C.shape[:-1])
    K = np.zeros((*batch, l), _type(w, P, Q, B, C, dt))
    for k in range(l):
        K[..., k] = (C * x).sum(-1)
        x = solved((h + w) * x - (P @ (Q_adjoint @ x[..., None]))[..., 0])
    return K


def _damped(x):
    """The case with Re w ≤ −1, so that powers decay."""
    w = x["w"]
    return {**x, "w": (w + np.minimum(0, -1 - w.real)).astype(w.dtype)}


def fast(x):
    """As `_damped`, with dt ≥ 1, so that Ā^l is not near I."""
    return {**_damped(x), "dt": np.maximum(x["dt"], 1).astype(x["dt"].dtype)}


def gentle(x):
    """The case with −2 ≤ Re w ≤ −1, |Im w| ≤ 1 and dt = 1: I − Ā^l is far from singular."""
    w, dt = x["w"], x["dt"]
    clipped = np.clip(w.real, -2, -1)
    clipped = clipped + 1j * np.clip(w.imag, -1, 1) if np.iscomplexobj(w) else clipped
    return {**x, "w": clipped.astype(w.dtype), "dt": np.clip(dt, 1, 1).astype(dt.dtype)}


def by_lapack(x):
    """The case with dt max|P| max|Q| ≤ 8: LAPACK's Ā errs by about half of it times u.

    Slow modes err by as much in each step. By a power of two, as `scaled`.
    """
    largest = np.prod([np.nanmax(np.abs(x[name]), initial=0) for name in ("P", "Q", "dt")])
    return scaled(x, np.sqrt(largest / 8))


def moderate(only):
    """As `only`, with |P| and |Q| ≤ 1: where P Qᴴ is far above w, a rounding moves slow modes."""

    def moderate_case(x):
        return scaled(only(x), max(float(np.nanmax(np.abs(x[n]), initial=0)) for n in "PQ"))

    return moderate_case


def scaled(x, size):
    """The case with P and Q divided by a power of two that is `size` or more, and at least 1.

    Another scale would be rounded, and a second call would scale again.
    """
    scale = 2.0 ** np.ceil(np.log2(max(1.0, float(size))))
    return {**x, **{name: (x[name] / scale).astype(x[name].dtype) for name in "PQ"}}


def _remembered(w, P, Q, B, C, dt, l):
    """C (I − Ā^l), with the power by squaring."""
    A_bar, _ = _dense(w, P, Q, B, dt)
    I = np.eye(w.shape[-1], dtype=w.real.dtype)
    return (C[..., None, :] @ (I - np.linalg.matrix_power(A_bar, l)))[..., 0, :]


def _plain(C, w, P, Q, B, dt, l):
    """2 C (D + (1 + z) P Qᴴ)⁻¹ B by its definition, with rounded roots of unity."""
    dtype = _type(w, P, Q, B, C, dt)
    z = roots_of_unity(l, np.finfo(dtype).dtype.type)[:, None]
    R = 1 / (2 * (1 - z) / dt[..., None, None] - (1 + z) * w[..., None, :])  # (…, l, n)
    Q_adjoint, CR = Q.conj().swapaxes(-1, -2), C[..., None, :] * R
    K00, K01 = (CR * B[..., None, :]).sum(-1), CR @ P
    K10 = (R * B[..., None, :]) @ Q_adjoint.swapaxes(-1, -2)
    K11 = Q_adjoint[..., None, :, :] @ (R[..., None] * P[..., None, :, :])
    I = np.eye(P.shape[-1], dtype=P.real.dtype)
    middle = solve(I + (1 + z[..., None]) * K11, K10[..., None])[..., 0]
    return _kept(np.fft.ifft(2 * (K00 - (1 + z[:, 0]) * (K01 * middle).sum(-1))), dtype)


def woodbury(w, P, Q, B, C, dt, *, l):
    """The form without poles at the nodes, as in a careful port of S4."""
    return _plain(_remembered(w, P, Q, B, C, dt, l), w, P, Q, B, dt, l)


def woodbury_aliased(w, P, Q, B, C, dt, *, l):
    """As `woodbury`, with C instead of C̃."""
    return _plain(C, w, P, Q, B, dt, l)


def _published(C, w, P, Q, B, dt, l):
    """The generating function at g = 2/dt (1 − z)/(1 + z), times 2/(1 + z); no odd l has z = −1."""
    if l % 2 == 0:
        raise NotImplementedError("z = -1 is a node")
    dtype, wide = _type(w, P, Q, B, C, dt), np.complex128
    C, w, P, Q, B = (x.astype(wide) for x in (C, w, P, Q, B))
    z = np.exp(-2j * np.pi * np.arange(l) / l)[:, None]
    R = 1 / (2 / dt[..., None, None] * (1 - z) / (1 + z) - w[..., None, :])
    CR, RB = C[..., None, :] * R, R * B[..., None, :]
    K11 = np.eye(P.shape[-1]) + np.einsum("...nr,...ln,...nq->...lrq", Q.conj(), R, P)
    middle = solve(K11, (RB @ Q.conj())[..., None])[..., 0]
    total = (CR * B[..., None, :]).sum(-1) - ((CR @ P) * middle).sum(-1)
    return _kept(np.fft.ifft(2 / (1 + z[:, 0]) * total), dtype)


def published(w, P, Q, B, C, dt, *, l):
    """The published form in double precision, for odd lengths."""
    dtype = _type(w, P, Q, B, C, dt)
    w, P, Q, B, C, dt = (x.astype(np.result_type(x, np.float64)) for x in (w, P, Q, B, C, dt))
    K = _published(_remembered(w, P, Q, B, C, dt, l), w, P, Q, B, dt, l)
    return _kept(K, dtype)


def published_aliased(w, P, Q, B, C, dt, *, l):
    """As `published`, with C instead of C̃."""
    return _kept(_published(C, w, P, Q, B, dt, l), _type(w, P, Q, B, C, dt))


def _eliminated(C, w, P, Q, B, dt, l):
    """LAPACK's elimination of the n × n system at every node."""
    if l * w.shape[-1] ** 2 > ENOUGH or not all(np.isfinite(x).all() for x in (w, P, Q, dt)):
        raise NotImplementedError("a dense solve at every node")
    dtype = _type(w, P, Q, B, C, dt)
    z = roots_of_unity(l, np.finfo(dtype).dtype.type)[:, None, None]
    I, A = np.eye(w.shape[-1], dtype=w.real.dtype), matrix(w, P, Q)[..., None, :, :]
    whole = 2 * (1 - z) / dt[..., None, None, None] * I - (1 + z) * A
    solved = np.linalg.solve(whole, np.broadcast_to(B[..., None, :, None], (*whole.shape[:-1], 1)))
    spectrum = 2 * (C[..., None, :] * solved[..., 0]).sum(-1)
    return _kept(np.fft.ifft(spectrum), dtype)


def dense_at_nodes(w, P, Q, B, C, dt, *, l):
    """2 C̃ (2 (1 − z)/dt − (1 + z) A)⁻¹ B by elimination."""
    return _eliminated(_remembered(w, P, Q, B, C, dt, l), w, P, Q, B, dt, l)


def dense_at_nodes_aliased(w, P, Q, B, C, dt, *, l):
    """As `dense_at_nodes`, with C instead of C̃."""
    return _eliminated(C, w, P, Q, B, dt, l)


def from_all_starts(w, P, Q, B, C, dt, *, l):
    """C Ā^k x with x = (I − Ā^l)⁻¹ B̄, the state of a system whose input repeats."""
    if not all(np.isfinite(x).all() for x in (w, P, Q, dt)):
        raise NotImplementedError("LAPACK may call a matrix with NaN singular")
    A_bar, x = _dense(w, P, Q, B, dt)
    I = np.eye(w.shape[-1], dtype=w.real.dtype)
    x = np.linalg.solve(I - np.linalg.matrix_power(A_bar, l), x[..., None])[..., 0]
    return _responses(A_bar, x, C, l).astype(_type(w, P, Q, B, C, dt))


def _hermitian(x):
    """The case with real w, Q = P and C = Bᴴ: unitary eigenvectors, and no term cancels another.

    With −2 ≤ w ≤ −1 and |P| ≤ 1: an eigenvalue errs by a rounding of ‖A‖, too much for a slow mode
    beside a fast one.
    """
    real, B = np.finfo(x["w"].dtype).dtype, x["B"]
    w, P = (np.where(np.isnan(x[n]), 0, x[n]) for n in ("w", "P"))
    size = np.abs(P)
    P = np.where(size > 1, P / np.maximum(size, 1) / 2, P).astype(x["P"].dtype)
    return {**x, "w": np.clip(np.real(w), -2, -1).astype(real), "P": P, "Q": P, "C": B.conj()}


def eigenvectors(w, P, Q, B, C, dt, *, l):
    """Σ_n (C V)_n λ̄_n^k (Vᴴ B̄)_n by a Hermitian eigenproblem."""
    dtype = _type(w, P, Q, B, C, dt)
    s, V = np.linalg.eigh(matrix(w, P, Q))
    h = dt[..., None] * s / 2
    v = (C[..., None, :] @ V)[..., 0, :] * (V.conj().swapaxes(-1, -2) @ B[..., None])[..., 0]
    v = v * dt[..., None] / (1 - h)
    size = np.log(np.abs((1 + h) / (1 - h)))[..., None] * np.arange(l, dtype=h.dtype)
    odd = np.where((np.abs(h) > 1)[..., None], (-1.0) ** np.arange(l), 1)
    powers = np.where(np.arange(l) == 0, 1, odd * np.exp(size))
    return (v[..., None] * powers).sum(-2).astype(dtype)


def in_double(reference):
    """The reference in double precision, rounded at the end."""

    def in_double(*arguments, l):
        wide = (x.astype(np.result_type(x, np.float64)) for x in arguments)
        return reference(*wide, l=l).astype(_type(*arguments))

    return in_double


WHOLE, ALIASED = DPLR_KERNEL, DPLR_KERNEL_ALIASED
DAMPED = (woodbury, published, dense_at_nodes)
PLAIN = (woodbury_aliased, published_aliased)

IMPLEMENTATIONS = [
    *(Honest(op.name, "in_double", in_double(op.reference)) for op in (WHOLE, ALIASED)),
    Honest(WHOLE.name, "recurrent", recurrent, recurrent_vjp, only=by_lapack),
    Honest(WHOLE.name, "doubled", doubled, only=by_lapack),
    Honest(WHOLE.name, "steps_of_low_rank", steps_of_low_rank),
    *(Honest(WHOLE.name, form.__name__, form, only=fast) for form in DAMPED),
    # LAPACK's elimination at the nodes: of wide modes it loses digits of ddt
    Honest(WHOLE.name, "through_the_spectrum", woodbury, through_the_spectrum_vjp, only=gentle),
    Honest(WHOLE.name, "eigenvectors", eigenvectors, only=_hermitian),
    *(Honest(ALIASED.name, form.__name__, form) for form in PLAIN),
    Honest(ALIASED.name, "from_all_starts", from_all_starts, only=moderate(gentle)),
    Honest(ALIASED.name, "dense_at_nodes", dense_at_nodes_aliased, dense_at_nodes_vjp, only=fast),
]
