"""Gated state spaces: a diagonal system of few channels, and a gate of many [mehta2023gss].

    y = K * x + D x in each of m channels,   x = gelu(u W_u)
    K_k = Re Σ_n C_n ((e^w − 1)/w) e^{w k},   w = −e^{log_rate} + i e^{log_phase}
    out = (gelu(u W_gate) ∘ (y W_wide)) W_out

All channels have the same n modes, with a C of their own. The step is 1: modes have no partners,
and the kernel is that of DSS-exp.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import (
    complex_states,
    complex_weights,
    ring_phases,
    ring_rates,
    skips,
)
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts import bank
from refssm.layers._parts.bank import turned
from refssm.layers._parts.mixing import mapped, mapped_vjp, plus


@dataclass(frozen=True)
class GSS(Parameters):
    """Parameters of `gss`: `m` channels of the system, `e` of the gate, `n` modes."""

    W_u: np.ndarray = parameter("h m", "uniform between ±1/√h")
    W_gate: np.ndarray = parameter("h e", "uniform between ±1/√h")
    log_rate: np.ndarray = parameter("n", "normal", "system", domain=ring_rates)
    log_phase: np.ndarray = parameter("n", "normal", "system", domain=ring_phases)
    C: np.ndarray = parameter("m n", "complex normal, E|C|² = 1/n", domain=complex_weights)
    D: np.ndarray = parameter("m", "normal", domain=skips)
    W_wide: np.ndarray = parameter("m e", "uniform between ±1/√m")
    W_out: np.ndarray = parameter("e h", "uniform between ±1/√e")


@dataclass(frozen=True)
class GSSKernels(Parameters):
    """The same with the kernels (m, l) of the system."""

    W_u: np.ndarray
    W_gate: np.ndarray
    K: np.ndarray
    D: np.ndarray
    W_wide: np.ndarray
    W_out: np.ndarray


def init(rng, *, h, n=64, shrink=4, expand=4) -> GSS:
    """New parameters in double precision; m = h/shrink, rounded up, and e = expand · h."""
    m, e = -(-h // shrink), expand * h
    W_u, W_gate, W_wide, W_out = (
        initial.linear(rng, *shape)[0] for shape in ((h, m), (h, e), (m, e), (e, h))
    )
    log_rate, log_phase = rng.standard_normal((2, n))
    C = initial.complex_normal(rng, (m, n)) / np.sqrt(n)
    return GSS(W_u, W_gate, log_rate, log_phase, C, rng.standard_normal(m), W_wide, W_out)


def modes(p):
    """w."""
    return -np.exp(p.log_rate) + 1j * np.exp(p.log_phase)


def prepared(ops, p, l):
    """The kernels for l steps, and the function from their gradient to that of the parameters."""
    w, dt = modes(p), np.ones((), p.log_rate.dtype, like=p.log_rate)

    def back(dq):
        dw, dC, _ = ops.dss_exp_kernel_vjp(dq.K.astype(p.C.dtype), w, p.C, dt, l=l)
        system = dw.real * w.real, dw.imag * w.imag, dC, dq.D
        return GSS(dq.W_u, dq.W_gate, *system, dq.W_wide, dq.W_out)

    K = ops.dss_exp_kernel(w, p.C, dt, l=l).real
    return GSSKernels(p.W_u, p.W_gate, K, p.D, p.W_wide, p.W_out), back


def run(ops, p, u):
    """The output, and the function from its cotangent to the gradients of `p` and of u."""
    a, b = mapped(u, p.W_u), mapped(u, p.W_gate)
    x, gate = ops.gelu(a), ops.gelu(b)
    y = bank.filtered(ops, p.K, p.D, x)
    wide = mapped(y, p.W_wide)

    def back(dout):
        dgated, dW_out = mapped_vjp(dout, gate * wide, p.W_out)
        dy, dW_wide = mapped_vjp(dgated * gate, y, p.W_wide)
        dK, dD, dx = bank.filtered_vjp(ops, dy, p.K, p.D, x)
        du, dW_u = mapped_vjp(ops.gelu_vjp(dx, a), u, p.W_u)
        through, dW_gate = mapped_vjp(ops.gelu_vjp(dgated * wide, b), u, p.W_gate)
        return GSSKernels(dW_u, dW_gate, dK, dD, dW_wide, dW_out), plus(du, through)

    return mapped(gate * wide, p.W_out), back


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    w = modes(p)
    a, held = ops.discretize_diagonal_zoh(w, np.ones_like(w)[:, None], np.ones_like(p.log_rate))
    x = turned(ops.gelu(mapped(u, p.W_u)))[..., None]
    C, D = p.C[:, None, :] / 2, p.D[:, None, None]  # Re(C x) is 2 Re(½ C x)
    y, after = ops.diagonal_ssm_real_stateful(a, held, C, D, x, state[0])
    gate = ops.gelu(mapped(u, p.W_gate))
    return mapped(gate * mapped(turned(y[..., 0]), p.W_wide), p.W_out), (after,)


GSS_LAYER = Layer(
    name="gss", kind=GSS, init=init, prepared=prepared, run=run, stateful=stateful,
    source="mehta2023gss", states={"x": ("m n", complex_states)},
    traits=frozenset({"time-invariant", "transform"}),
    tags=("GSS", "gated state space layer", "gated DSS"),
)  # fmt: skip
