"""S5: one diagonal system with h inputs and h outputs, and a step for each state [smith2023s5].

    x_k = e^{dt w} x_{k−1} + dt φ₁(dt w) B u_k,   y_k = 2 Re(C x_k) + D u_k
    out = g σ(g W + b),   g = GELU(y)

It has one mode of each conjugate pair, so n modes are 2n states.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import complex_states, complex_weights, layer_modes, log_steps, shifts, skips
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts import ssm
from refssm.layers._parts.mixing import linear, linear_vjp, plus


@dataclass(frozen=True)
class S5(Parameters):
    """Parameters of `s5`."""

    w: np.ndarray = parameter(
        "n", "eigenvalues of HiPPO-N in blocks, Im w > 0", "system", domain=layer_modes
    )
    log_dt: np.ndarray = parameter(
        "n", "log of a step from 1e-3 to 1e-1, uniform", "system", domain=log_steps
    )
    B: np.ndarray = parameter(
        "n h", "Vᴴ B₀, B₀ normal, variance 1/h", "system", domain=complex_weights
    )
    C: np.ndarray = parameter("h n", "C₀ V, C₀ normal, variance 1/(2n)", domain=complex_weights)
    D: np.ndarray = parameter("h", "normal", domain=skips)
    W: np.ndarray = parameter("h h", "uniform between ±1/√h")
    b: np.ndarray = parameter("h", "uniform between ±1/√h", domain=shifts)


def init(
    rng, *, h, n=32, blocks=1, poles="hippo-n", steps="vector", dt_min=initial.DT_MIN,
    dt_max=initial.DT_MAX,
) -> S5:  # fmt: skip
    """New parameters in double precision. `poles` is hippo-n, antisymmetric, random, or a system of
    S4D: lin, inv, quad, real or legs; `steps` is vector, or scalar: one step for all states."""
    system = initial.modes(rng, poles, n=n, blocks=blocks)
    return started(rng, system, h, steps=steps, dt_min=dt_min, dt_max=dt_max)


def started(rng, system, h, **steps) -> S5:
    """Parameters with the poles of `initial.modes`."""
    n = len(system[0])
    given = initial.s5(rng, n=n, m=h, p=h, system=system)
    log_dt, D = initial.log_steps(rng, n, **steps), rng.standard_normal(h)
    return S5(given["w"], log_dt, given["B"], given["C"], D, *initial.linear(rng, h, h))


def _discrete(ops, p):
    """e^{dt w}, and dt φ₁(dt w) as a column."""
    return ops.discretize_diagonal_zoh(p.w, np.ones_like(p.w)[:, None], np.exp(p.log_dt))


def _discrete_vjp(ops, da, df, p):
    """The gradients of w and log_dt."""
    dt = np.exp(p.log_dt)
    dw, _, ddt = ops.discretize_diagonal_zoh_vjp(da, df, p.w, np.ones_like(p.w)[:, None], dt)
    return dw, ddt * dt


def prepared(ops, p, l):
    """The discrete system, and the function from its gradient to that of the parameters."""
    a, f = _discrete(ops, p)

    def back(dq):
        df = (p.B.conj() * dq.B).sum(-1, keepdims=True)
        dw, dlog_dt = _discrete_vjp(ops, dq.a, df, p)
        return type(p)(dw, dlog_dt, f.conj() * dq.B, 2 * dq.C, dq.D, dq.W, dq.b)

    return ssm.System(a, f * p.B, 2 * p.C, p.D, p.W, p.b), back


def gated(ops, q, y):
    """g σ(g W + b) with g = GELU(y), and the function from its cotangent to those of y, W, b."""
    g = ops.gelu(y)
    gate = linear(g, q.W, q.b)

    def back(dout):
        dg, dgate = ops.gate_vjp(dout, g, gate)
        through, dW, db = linear_vjp(dgate, g, q.W)
        return ops.gelu_vjp(plus(dg, through), y), dW, db

    return ops.gate(g, gate), back


def run(ops, q, u):
    """The output, and the function from its cotangent to the gradients of `q` and of u."""
    return around(ssm.linearized, ops, q, u)


def around(system, ops, q, u):
    """The same around any `system` of `_parts.ssm`."""
    y, system_back = system(ops, q, u)
    out, gate_back = gated(ops, q, y)

    def back(dout):
        dy, dW, db = gate_back(dout)
        da, dB, dC, dD, du = system_back(dy)
        return ssm.System(da, dB, dC, dD, dW, db), du

    return out, back


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    a, f = _discrete(ops, p)
    system = a, f * p.B, p.C, np.diag(p.D)
    y, x = ops.diagonal_ssm_real_stateful(*system, u, state[0])
    return gated(ops, p, y)[0], (x,)


S5_LAYER = Layer(
    name="s5", kind=S5, init=init, prepared=prepared, run=run, stateful=stateful,
    source="smith2023s5", states={"x": ("n", complex_states)},
    traits=frozenset({"time-invariant"}),
    tags=("S5 layer", "S5SSM", "S5 block"),
)  # fmt: skip
