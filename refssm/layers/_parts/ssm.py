"""A diagonal system with real signals inside a layer: products of real matrices around one scan.

    x_k = a x_{k−1} + B u_k,   y_k = Re(C x_k) + D u_k

A product of complex and real matrices would be computed as one of complex ones, with twice to four
times the work. Here a complex row is a real one of twice the length, and nothing is copied.
"""

from dataclasses import dataclass

import numpy as np

from refssm._numerics.overridable import overridable
from refssm.layers._frame import Parameters
from refssm.layers._parts.mixing import flat, plus, summed


def _woven(A):
    """Real and imaginary parts of the rows, in turn: what real parts of complex rows multiply."""
    return np.stack([A.real, A.imag], 1).reshape(-1, A.shape[-1])


@overridable
def reals(x):
    """Complex rows as real ones: real and imaginary parts in turn."""
    return x.view(x.real.dtype)


@overridable
def complexes(x):
    """Back from `reals`."""
    return x.view(np.result_type(x.dtype, np.complex64))


def driven(B, u):
    """B u_k, complex."""
    return complexes(flat(u) @ _woven(B).T).reshape(*u.shape[:-1], len(B))


def read(C, x):
    """Re(C x_k)."""
    return (reals(flat(x)) @ _woven(C.conj().T)).reshape(*x.shape[:-1], len(C))


@dataclass(frozen=True)
class System(Parameters):
    """A system, and the linear map that follows it in its layer."""

    a: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    W: np.ndarray
    b: np.ndarray


def read_vjp(dy, x):
    """The gradient of C."""
    return complexes(flat(dy).T @ reals(flat(x))).conj()


def _read_states(ops, steps, b, C):
    """Re(C x_k) of x_k = a_k x_{k−1} + b_k, and the function from its cotangent to the gradients of
    a at every step, b and C."""
    x = ops.linear_scan(steps, b)

    def back(dy):
        da, db = ops.linear_scan_vjp(driven(C.conj().T, dy), steps, b)
        return da, db, read_vjp(dy, x)

    return read(C, x), back


def driven_vjp(db, B, u):
    """Gradients of B, and of u."""
    rows = reals(flat(db))
    dB = (rows.T @ flat(u)).reshape(len(B), 2, -1)
    return dB[:, 0] + 1j * dB[:, 1], (rows @ _woven(B)).reshape(u.shape)


def linearized(ops, q: System, u):
    """y, and the function from dy to the gradients of a, B, C, D and u."""
    b = driven(q.B, u)
    y, states_back = _read_states(ops, np.broadcast_to(q.a, b.shape[-2:]), b, q.C)
    y = plus(y, q.D * u)

    def back(dy):
        da, db, dC = states_back(dy)
        dB, du = driven_vjp(db, q.B, u)
        du = plus(du, q.D * dy)
        return da.sum(0), dB, dC, summed(dy * u), du

    return y, back


def linearized_bidirectional(ops, q: System, u):
    """The same with a second scan of the same system, from the end: z_k = a z_{k+1} + B u_k.

    C (h, 2n) reads [x_k; z_k]. Both sums begin at lag 0, so u_k counts twice.
    """
    n, b = len(q.a), driven(q.B, u)
    steps = np.broadcast_to(q.a, b.shape[-2:])
    y, past_back = _read_states(ops, steps, b, q.C[:, :n])
    future, future_back = _read_states(ops, steps, _reversed(b), q.C[:, n:])
    y = plus(y, _reversed(future))
    y = plus(y, q.D * u)

    def back(dy):
        da, db, dC = past_back(dy)
        da_later, db_later, dC_later = future_back(_reversed(dy))
        dB, du = driven_vjp(db + _reversed(db_later), q.B, u)
        du = plus(du, q.D * dy)
        dC = np.concatenate([dC, dC_later], axis=-1)
        return (da + da_later).sum(0), dB, dC, summed(dy * u), du

    return y, back


def _reversed(x):
    """Time reversed, in new memory: products of matrices and scans want rows one after another."""
    return x[..., ::-1, :].copy()
