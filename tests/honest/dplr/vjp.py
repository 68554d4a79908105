"""Honest gradients of DPLR kernels: through dense states, and through the spectrum."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.roots import roots_of_unity
from refssm.dplr.system import matrix


def _adjoint(A):
    return A.conj().swapaxes(-1, -2)


def _bilinear(w, P, Q, B, dt):
    """M = I − ½dt A, Ā and B̄ by LAPACK."""
    A, h = matrix(w, P, Q), dt[..., None, None]
    I = np.eye(w.shape[-1], dtype=w.real.dtype)
    M = I - h * A / 2
    return M, np.linalg.solve(M, I + h * A / 2), np.linalg.solve(M, h * B[..., None])


def _back(M, A_bar, B_bar, dA_bar, dB_bar):
    """The gradients of dt A and dt B, from those of Ā and B̄."""
    S, T = (np.linalg.solve(_adjoint(M), x) for x in (dA_bar, dB_bar))
    I = np.eye(M.shape[-1], dtype=M.real.dtype)
    return (S @ _adjoint(I + A_bar) + T @ _adjoint(B_bar)) / 2, T[..., 0]


def _of_arguments(dF, T, dC, w, P, Q, B, C, dt):
    """The gradients of the arguments, from those of dt A, dt B and C."""
    h = dt[..., None]
    dA = h[..., None] * dF
    ddt = (matrix(w, P, Q).conj() * dF).sum((-1, -2)) + (B.conj() * T).sum(-1)
    dw = np.diagonal(dA, axis1=-2, axis2=-1)
    gradients = (dw, -dA @ Q, -_adjoint(dA) @ P, h * T, dC, ddt)
    return unbroadcast_each(gradients, (w, P, Q, B, C, dt))


def recurrent_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Dense recurrences, step by step forwards and backwards."""
    M, A_bar, B_bar = _bilinear(w, P, Q, B, dt)
    x, states = B_bar, []
    for _ in range(l):
        states.append(x)
        x = A_bar @ x
    g, dA_bar, dC = 0 * B_bar, 0 * A_bar, 0
    for k in range(l - 1, -1, -1):
        dC = dC + dk[..., k, None] * states[k][..., 0].conj()
        dA_bar = dA_bar + g @ _adjoint(states[k])
        g = _adjoint(A_bar) @ g + C.conj()[..., None] * dk[..., k, None, None]
    dF, T = _back(M, A_bar, B_bar, dA_bar, g)
    return _of_arguments(dF, T, dC, w, P, Q, B, C, dt)


def _solved_at_nodes(w, P, Q, B, C, dt, l):
    """1 + z, 1 − z, S⁻¹ B and S⁻ᵀ C, S = 2 (1 − z)/dt − (1 + z) A, by LAPACK."""
    z = roots_of_unity(l, np.finfo(np.result_type(w, P, Q, B, C, dt)).dtype.type)
    I, A = np.eye(w.shape[-1], dtype=w.real.dtype), matrix(w, P, Q)[..., None, :, :]
    z = z[:, None, None]
    S = 2 * (1 - z) / dt[..., None, None, None] * I - (1 + z) * A
    X = np.linalg.solve(S, np.broadcast_to(B[..., None, :, None], (*S.shape[:-1], 1)))
    Y = np.linalg.solve(
        S.swapaxes(-1, -2), np.broadcast_to(C[..., None, :, None], (*S.shape[:-1], 1))
    )
    return 1 + z[..., 0], 1 - z[..., 0], X[..., 0], Y[..., 0]


def _spectral(dk, w, P, Q, B, C, dt, l):
    """Gradients of A, B, C and dt of ifft(2 C S⁻¹ B)."""
    above, below, X, Y = _solved_at_nodes(w, P, Q, B, C, dt, l)
    ds = 2 * np.fft.fft(dk)[..., None] / l
    dC, dB = (ds * X.conj()).sum(-2), (ds * Y.conj()).sum(-2)
    dA = (ds * (above * Y).conj()).swapaxes(-1, -2) @ X.conj()
    inner = (ds[..., 0] * (below[..., 0] * (X * Y).sum(-1)).conj()).sum(-1)
    return dA, dB, dC, 2 * inner / dt**2


def dense_at_nodes_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Through the n × n systems at the nodes, with rounded nodes."""
    dA, dB, dC, ddt = _spectral(dk, w, P, Q, B, C, dt, l)
    dw = np.diagonal(dA, axis1=-2, axis2=-1)
    gradients = (dw, -dA @ Q, -_adjoint(dA) @ P, dB, dC, ddt)
    return unbroadcast_each(gradients, (w, P, Q, B, C, dt))


def through_the_spectrum_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Through the systems at the nodes to C̃ = C (I − Ā^l), then through the matrix power."""
    M, A_bar, B_bar = _bilinear(w, P, Q, B, dt)
    I = np.eye(w.shape[-1], dtype=w.real.dtype)
    forgotten = I - np.linalg.matrix_power(A_bar, l)
    C_tilde = (C[..., None, :] @ forgotten)[..., 0, :]
    dA, dB, dC_tilde, ddt = _spectral(dk, w, P, Q, B, C_tilde, dt, l)
    dC = (dC_tilde[..., None, :] @ _adjoint(forgotten))[..., 0, :]
    left, right = [C.conj()[..., :, None]], [dC_tilde[..., None, :]]
    for _ in range(l - 1):
        left.append(_adjoint(A_bar) @ left[-1])
        right.append(right[-1] @ _adjoint(A_bar))
    dA_bar = -sum(x @ y for x, y in zip(left, reversed(right), strict=True))
    dF, _ = _back(M, A_bar, B_bar, dA_bar, 0 * B_bar)
    dA = dA + dt[..., None, None] * dF
    ddt = ddt + (matrix(w, P, Q).conj() * dF).sum((-1, -2))
    dw = np.diagonal(dA, axis1=-2, axis2=-1)
    gradients = (dw, -dA @ Q, -_adjoint(dA) @ P, dB, dC, ddt)
    return unbroadcast_each(gradients, (w, P, Q, B, C, dt))
