"""A diagonal system with real signals inside a layer: products of real matrices around one scan.

    x_k = a x_{k−1} + B u_k,   y_k = Re(C x_k) + D u_k

A product of complex and real matrices would be computed as one of complex ones, with twice to four
times the work. Here a complex row is a real one of twice the length, and nothing is copied.
"""

from dataclasses import dataclass

import numpy as np

from refssm._overridable import overridable
from refssm.layers._layer import Parameters
from refssm.layers.mixing import flat, summed


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


def linearized(ops, q: System, u):
    """y, and the function from dy to the gradients of a, B, C, D and u."""
    a, B, C, D = q.a, q.B, q.C, q.D
    b = driven(B, u)
    steps = np.broadcast_to(a, b.shape[-2:])
    x = ops.linear_scan(steps, b)
    y = read(C, x)
    y += D * u

    def back(dy):
        da, db = ops.linear_scan_vjp(driven(C.conj().T, dy), steps, b)
        rows = reals(flat(db))
        dB = (rows.T @ flat(u)).reshape(len(a), 2, -1)
        dC = complexes(flat(dy).T @ reals(flat(x))).conj()
        du = (rows @ _woven(B)).reshape(u.shape)
        du += D * dy
        return da.sum(0), dB[:, 0] + 1j * dB[:, 1], dC, summed(dy * u), du

    return y, back
