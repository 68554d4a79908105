"""S5 for signals sampled at irregular times: the gaps between them multiply the step [smith2023s5].

    x_k = e^{g_k dt w} x_{k−1} + g_k dt φ₁(g_k dt w) B u_k,   y_k = 2 Re(C x_k) + D u_k
    out = g σ(g W + b),   g = GELU(y)

`gaps` (…, l) has the g_k ≥ 0: the time from sample k − 1 to sample k, in units of the usual one. It
broadcasts over batches. With gaps of 1 it is `s5`, whose parameters it has; a gap of 0 leaves the
state as it is.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm._numerics.broadcasting import unbroadcast
from refssm.domains import complex_states, sample_gaps
from refssm.layers import s5
from refssm.layers._frame import Layer
from refssm.layers._parts import ssm
from refssm.layers._parts.mixing import summed
from refssm.layers.s5 import gated


@dataclass(frozen=True)
class S5Irregular(s5.S5):
    """Parameters of `s5_irregular`: those of `s5`."""


def init(
    rng, *, h, n=32, blocks=1, poles="hippo-n", steps="vector", dt_min=initial.DT_MIN,
    dt_max=initial.DT_MAX,
) -> S5Irregular:  # fmt: skip
    """New parameters in double precision; the options are those of `s5`."""
    system = initial.modes(rng, poles, n=n, blocks=blocks)
    p = s5.started(rng, system, h, steps=steps, dt_min=dt_min, dt_max=dt_max)
    return S5Irregular(**p.arrays())


def _steps(p, gaps):
    """g_k dt: (…, l, n)."""
    return gaps[..., None] * np.exp(p.log_dt)


def _discrete(ops, p, gaps):
    """e^{g dt w}, and g dt φ₁(g dt w), at every time."""
    a, f = ops.discretize_diagonal_zoh(p.w, np.ones_like(p.w)[:, None], _steps(p, gaps))
    return a, f[..., 0]


def _discrete_vjp(ops, da, df, p, gaps):
    """The gradients of w, log_dt and the gaps."""
    ones, steps = np.ones_like(p.w)[:, None], _steps(p, gaps)
    dw, _, dsteps = ops.discretize_diagonal_zoh_vjp(da, df[..., None], p.w, ones, steps)
    return dw, summed(dsteps * steps), (dsteps * np.exp(p.log_dt)).sum(-1)


def run(ops, p, u, gaps):
    """The output for a signal (…, l, h) with these gaps, and the function from its cotangent to the
    gradients of p, u and the gaps."""
    a, f = _discrete(ops, p, gaps)
    alike = u  # of the caller's shape; below, u has the batch of the gaps too
    u = np.broadcast_to(u, (*np.broadcast_shapes(u.shape[:-2], gaps.shape[:-1]), *u.shape[-2:]))
    given = ssm.driven(p.B, u)
    b, C = f * given, 2 * p.C
    x = ops.linear_scan(a, b)
    out, gate_back = gated(ops, p, ssm.read(C, x) + p.D * u)

    def back(dout):
        dy, dW, db = gate_back(dout)
        da, dinput = ops.linear_scan_vjp(ssm.driven(C.conj().T, dy), a, b)
        df = unbroadcast(dinput * given.conj(), f)
        dw, dlog_dt, dgaps = _discrete_vjp(ops, da, df, p, gaps)
        dB, du = ssm.driven_vjp(dinput * f.conj(), p.B, u)
        dC = 2 * ssm.read_vjp(dy, x)
        return (
            type(p)(dw, dlog_dt, dB, dC, summed(dy * u), dW, db),
            unbroadcast(du + p.D * dy, alike),
            dgaps,
        )

    return out, back


def stateful(ops, p, u, gaps, state):
    """The output for a piece from a state, and the next state. A step is a piece of length 1."""
    a, f = _discrete(ops, p, gaps)
    x = ops.linear_scan_from(a, f * ssm.driven(p.B, u), state[0])
    last = x[..., -1, :] if u.shape[-2] else state[0]
    return gated(ops, p, ssm.read(2 * p.C, x) + p.D * u)[0], (last,)


S5_IRREGULAR_LAYER = Layer(
    name="s5_irregular", kind=S5Irregular, init=init, run=run, stateful=stateful,
    source="smith2023s5", beside={"gaps": ("l", sample_gaps)}, states={"x": ("n", complex_states)},
    tags=("S5 layer with gaps", "S5SSM with step_scale", "S5 block for irregular samples"),
)  # fmt: skip
forward, vjp, rest = S5_IRREGULAR_LAYER.forward, S5_IRREGULAR_LAYER.vjp, S5_IRREGULAR_LAYER.rest
