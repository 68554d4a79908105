"""A diagonal system with real signals inside a layer: products of real matrices around one scan.

    x_k = a x_{k−1} + B u_k,   y_k = Re(C x_k)

A product of complex and real matrices would be computed as one of complex ones, with twice to four
times the work.
"""

import numpy as np


def flat(x):
    """All leading axes as one: one product of matrices is faster than many small ones."""
    return x.reshape(-1, x.shape[-1])


def driven(B, u):
    """B u_k, complex."""
    both = flat(u) @ np.concatenate([B.real, B.imag]).T
    return (both[:, : len(B)] + 1j * both[:, len(B) :]).reshape(*u.shape[:-1], len(B))


def _parts(x):
    """Real and imaginary parts side by side."""
    return np.concatenate([flat(x.real), flat(x.imag)], axis=-1)


def read(C, x):
    """Re(C x_k)."""
    y = _parts(x) @ np.concatenate([C.real, -C.imag], axis=-1).T
    return y.reshape(*x.shape[:-1], len(C))


def linearized(ops, a, B, C, u):
    """y, and the function from dy to the gradients of a, B, C and u."""
    b = driven(B, u)
    steps = np.broadcast_to(a, b.shape[-2:])
    x = ops.linear_scan(steps, b)

    def back(dy):
        da, db = ops.linear_scan_vjp(driven(C.conj().T, dy), steps, b)
        n, of_C, of_B = len(a), flat(dy).T @ _parts(x), _parts(db).T @ flat(u)
        du = (_parts(db) @ np.concatenate([B.real, B.imag])).reshape(u.shape)
        return da.sum(0), of_B[:n] + 1j * of_B[n:], of_C[:, :n] - 1j * of_C[:, n:], du

    return read(C, x), back
