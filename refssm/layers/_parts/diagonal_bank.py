"""A bank of h diagonal systems with poles w = −e^{log_rate} + i frequency, steps dt and B = 1.

`rule` says how they become discrete: it is the end of the names of two operators, the kernel of the
system and its discretization.
"""

import numpy as np

from refssm.layers._parts import bank


def poles(p):
    """w and dt."""
    return -np.exp(p.log_rate) + 1j * p.frequency, np.exp(p.log_dt)


def prepared(ops, rule, p, l):
    """The kernels K_k = 2 Re Σ_n C_n Ā_n^k B̄_n for l steps, and the function from their gradient to
    that of the parameters."""
    (w, dt), name = poles(p), f"diagonal_kernel_{rule}"
    one = np.ones_like(w)

    def back(dq):
        dk = (2 * dq.K).astype(w.dtype)
        dw, _, dC, ddt = getattr(ops, f"{name}_vjp")(dk, w, one, p.C, dt, l=l)
        return type(p)(ddt * dt, dw.real * w.real, dw.imag, dC, dq.D, dq.W, dq.b)

    K = 2 * getattr(ops, name)(w, one, p.C, dt, l=l).real
    return bank.Filters(K, p.D, p.W, p.b), back


def stateful(ops, rule, p, u, state):
    """The output for a piece from a state, and the next state."""
    w, dt = poles(p)
    discretize = getattr(ops, f"discretize_diagonal_{rule}")
    a, B = discretize(w, np.ones_like(w)[..., None], dt[:, None] + 0 * w.real)
    ut = bank.turned(u)[..., None]
    y, x = ops.diagonal_ssm_real_stateful(a, B, p.C[:, None, :], p.D[:, None, None], ut, state[0])
    return bank.mixed(ops, p, bank.turned(y[..., 0])), (x,)
