"""A bank of h diagonal systems with poles w = −e^{log_rate} + i frequency, steps dt and B = 1.

`rule` says how they become discrete: it is the end of the names of two operators, the kernel of the
system and its discretization.
"""

import numpy as np

from refssm.layers import _bank as bank


def poles(p):
    """w and dt."""
    return -np.exp(p.log_rate) + 1j * p.frequency, np.exp(p.log_dt)


def kernel(ops, rule, p, l):
    """K_k = 2 Re Σ_n C_n Ā_n^k B̄_n."""
    w, dt = poles(p)
    return 2 * getattr(ops, f"diagonal_kernel_{rule}")(w, np.ones_like(w), p.C, dt, l=l).real


def forward(ops, rule, p, u):
    """The output for a signal (…, l, h) from rest."""
    K = kernel(ops, rule, p, u.shape[-2])
    return bank.mixed(ops, p, bank.filtered(ops, K, p.D, u))


def vjp(ops, rule, dy, p, u):
    """Gradients of the parameters, and of u."""
    l, (w, dt) = u.shape[-2], poles(p)
    dK, others, du = bank.vjp(ops, dy, kernel(ops, rule, p, l), p, u)
    dk, pulled = (2 * dK).astype(w.dtype), getattr(ops, f"diagonal_kernel_{rule}_vjp")
    dw, _, dC, ddt = pulled(dk, w, np.ones_like(w), p.C, dt, l=l)
    return type(p)(ddt * dt, dw.real * w.real, dw.imag, dC, *others), du


def stateful(ops, rule, p, u, state):
    """The output for a piece from a state, and the next state."""
    w, dt = poles(p)
    discretize = getattr(ops, f"discretize_diagonal_{rule}")
    a, B = discretize(w, np.ones_like(w)[..., None], dt[:, None] + 0 * w.real)
    ut = bank.turned(u)[..., None]
    y, x = ops.diagonal_ssm_real_stateful(a, B, p.C[:, None, :], p.D[:, None, None], ut, state[0])
    return bank.mixed(ops, p, bank.turned(y[..., 0])), (x,)
