"""WaveNet's gated convolutions of two taps, with the dilations 1, 2 and 4 [oord2016wavenet].

    a, c = x_k W_now + x_{k−d} W_past + b in unit i,   d = 2^i
    z = tanh(a) σ(c),   x ← x + z W_out,   from x = u
    out = Σ_i z W_out, what the three units add to u

An output reads 8 steps. The state has the last d rows that each unit read.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import layer_states, shifts, weights_of_rows
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts.mixing import flat, linear, linear_vjp

DILATIONS = 1, 2, 4


@dataclass(frozen=True)
class DilatedConvolution(Parameters):
    """Parameters of `dilated_convolution`: taps, biases and last maps of three units."""

    W_now: np.ndarray = parameter("3 h 2h", "uniform between ±1/√(2h)", domain=weights_of_rows)
    W_past: np.ndarray = parameter("3 h 2h", "uniform between ±1/√(2h)", domain=weights_of_rows)
    b: np.ndarray = parameter("3 2h", "uniform between ±1/√(2h)", domain=shifts)
    W_out: np.ndarray = parameter("3 h h", "uniform between ±1/√h", domain=weights_of_rows)


def init(rng, *, h) -> DilatedConvolution:
    """New parameters in double precision."""
    maps, biases = zip(*(initial.linear(rng, 2 * h, 2 * h) for _ in DILATIONS), strict=True)
    W_now, W_past = np.split(np.stack(maps), 2, axis=1)
    W_out = np.stack([initial.linear(rng, h, h)[0] for _ in DILATIONS])
    return DilatedConvolution(W_now.copy(), W_past.copy(), np.stack(biases), W_out)


def taps(p, i):
    """Both taps of a unit as one map of x_k and x_{k−d} side by side, and the bias."""
    return np.concatenate([p.W_now[i], p.W_past[i]], axis=0), p.b[i]


def gated(ops, both):
    """tanh of the first half times σ of the second."""
    value, gate = np.split(both, 2, axis=-1)
    return ops.gate(np.tanh(value), gate)


def _gated_vjp(ops, dz, both):
    value, gate = np.split(both, 2, axis=-1)
    t = np.tanh(value)
    dt, dgate = ops.gate_vjp(dz, t, gate)
    return np.concatenate([dt * ((1 - t) * (1 + t)), dgate], axis=-1)


def _unit(ops, p, i, x, before):
    """What unit i adds to x, what its gradient needs, and the last rows of x."""
    rows, l = np.concatenate([before, x], axis=-2), x.shape[-2]
    given = np.concatenate([x, rows[..., :l, :]], axis=-1)
    both = linear(given, *taps(p, i))
    z = gated(ops, both)
    added = (flat(z) @ p.W_out[i]).reshape(x.shape)
    return added, (given, both, z), rows[..., l:, :]


def _units(ops, p, u, state):
    """The output, what the gradient of each unit needs, and the next state."""
    x, out, kept, after = u, np.zeros_like(u), [], []
    for i, before in enumerate(state):
        added, needed, newest = _unit(ops, p, i, x, before)
        x, out = x + added, out + added
        kept.append(needed)
        after.append(newest)
    return out, kept, tuple(after)


def _earlier(g, d):
    """g_{k+d}, and 0 after the end: a later row's gradient at the time it was read from."""
    later = g[..., d:, :]
    shape = (*g.shape[:-2], g.shape[-2] - later.shape[-2], g.shape[-1])
    return np.concatenate([later, np.zeros_like(g, shape=shape)], axis=-2)


def run(ops, p, u):
    """The output, and the function from its cotangent to the gradients of `p` and of u."""
    rest = [np.zeros_like(u, shape=(*u.shape[:-2], d, u.shape[-1])) for d in DILATIONS]
    out, kept, _ = _units(ops, p, u, rest)

    def back(dout):
        dx, found = np.zeros_like(dout), []  # of what the units after this one read
        for i in range(len(DILATIONS) - 1, -1, -1):
            given, both, z = kept[i]
            dadded = dx + dout
            dz = (flat(dadded) @ p.W_out[i].T).reshape(z.shape)
            dgiven, dmap, db = linear_vjp(_gated_vjp(ops, dz, both), given, taps(p, i)[0])
            dnow, dpast = np.split(dgiven, 2, axis=-1)
            dx = dx + dnow + _earlier(dpast, DILATIONS[i])
            found.append((*np.split(dmap, 2, axis=0), db, flat(z).T @ flat(dadded)))
        gradients = (np.stack(g) for g in zip(*reversed(found), strict=True))
        return DilatedConvolution(*[*gradients]), dx

    return out, back


def stateful(ops, p, u, state):
    """The output for a piece from the last rows of each unit, and the next ones."""
    out, _, after = _units(ops, p, u, state)
    return out, after


DILATED_CONVOLUTION_LAYER = Layer(
    name="dilated_convolution", kind=DilatedConvolution, init=init, run=run, stateful=stateful,
    source="oord2016wavenet",
    states={f"s{d}": (f"{d} h", layer_states) for d in DILATIONS},
    tags=("WaveNet", "dilated causal convolution", "gated activation unit"),
)  # fmt: skip
