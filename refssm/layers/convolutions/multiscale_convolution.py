"""SGConv: a long kernel of few numbers, stretched more and weighted less from scale to scale
[li2023sgconv].

    K = [w_0, a S_1 w_1, a² S_2 w_2, a³ S_4 w_3],   a = e^{−e^{log_rate}}
    y = K * u + D u,   out = GLU(GELU(y) W + b)

Each w_i has n numbers; S_f stretches them to f n by linear interpolation. So a kernel of 8n steps
has 4n numbers, and its resolution falls with the distance as its weight does. `near` is w_0, `far`
has the other three. The state is the last 8n inputs.
"""

from dataclasses import dataclass, replace

import numpy as np

from refssm import initial
from refssm.domains import layer_states, log_rates, shifts, skips, weights_of_taps
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts import bank
from refssm.layers._parts.kernels import of_length, of_length_vjp, stepped

FACTORS = 1, 2, 4  # by how much w_1, w_2 and w_3 are stretched


@dataclass(frozen=True)
class MultiscaleConvolution(Parameters):
    """Parameters of `multiscale_convolution`: four scales of `n` numbers for each channel."""

    near: np.ndarray = parameter("h n", "normal; K of length 1", "system", domain=weights_of_taps)
    far: np.ndarray = parameter("h 3n", "normal; K of length 1", "system", domain=weights_of_taps)
    log_rate: np.ndarray = parameter("h", "log log 2: a = 1/2", "system", domain=log_rates)
    D: np.ndarray = parameter("h", "normal", domain=skips)
    W: np.ndarray = parameter("h 2h", "uniform between ±1/√h")
    b: np.ndarray = parameter("2h", "uniform between ±1/√h", domain=shifts)


def init(rng, *, h, n=16) -> MultiscaleConvolution:
    """New parameters in double precision; each kernel starts with Σ K² = 1."""
    near, far = rng.standard_normal((h, n)), rng.standard_normal((h, 3 * n))
    log_rate, D = np.full(h, np.log(np.log(2))), rng.standard_normal(h)
    p = MultiscaleConvolution(near, far, log_rate, D, *initial.linear(rng, h, 2 * h))
    length = np.sqrt((kernel(p) ** 2).sum(-1, keepdims=True))
    return replace(p, near=near / length, far=far / length)


def stretching(n, factor):
    """S (n, factor · n): the number j of the stretched row is read at (j + ½)/factor − ½, between
    two numbers of the row; before the first and after the last one it is constant."""
    place = np.clip((np.arange(factor * n) + 0.5) / factor - 0.5, 0, n - 1)
    return np.maximum(0, 1 - np.abs(place - np.arange(n)[:, None]))


def _scales(p):
    """w_1, w_2, w_3, their matrices, and a, a², a³ as columns."""
    n = p.near.shape[-1]
    parts = [p.far[..., i * n : (i + 1) * n] for i in range(3)]
    matrices = [np.asarray(stretching(n, f), p.far.dtype, like=p.far) for f in FACTORS]
    rate = np.exp(p.log_rate)[:, None]
    return list(zip(parts, matrices, (np.exp(-i * rate) for i in (1, 2, 3)), strict=True)), rate


def kernel(p):
    """K (h, 8n)."""
    scales, _ = _scales(p)
    return np.concatenate([p.near, *(a * (w @ S) for w, S, a in scales)], axis=-1)


def kernel_vjp(dK, p):
    """Gradients of near, far and log_rate: da^i/d log_rate = −i e^{log_rate} a^i."""
    scales, rate = _scales(p)
    n, dfar, drate, begin = p.near.shape[-1], [], np.zeros_like(p.log_rate), p.near.shape[-1]
    for i, (w, S, a) in enumerate(scales, start=1):
        dscale = dK[..., begin : begin + S.shape[-1]]
        dfar.append(a * (dscale @ S.T))
        drate = drate - (i * rate * a * (w @ S) * dscale).sum(-1)
        begin += S.shape[-1]
    return dK[..., :n], np.concatenate(dfar, axis=-1), drate


def prepared(ops, p, l):
    """The kernels for l steps, and the function from their gradient to that of the parameters."""
    K = kernel(p)

    def back(dq):
        return MultiscaleConvolution(*kernel_vjp(of_length_vjp(dq.K, K), p), dq.D, dq.W, dq.b)

    return bank.Filters(of_length(K, l), p.D, p.W, p.b), back


def stateful(ops, p, u, state):
    """The output for a piece from the last inputs, and the next ones."""
    y, newest = stepped(ops, kernel(p), p.D, u, state[0])
    return bank.mixed(ops, p, y), (newest,)


MULTISCALE_CONVOLUTION_LAYER = Layer(
    name="multiscale_convolution", kind=MultiscaleConvolution, init=init, prepared=prepared,
    run=bank.run, stateful=stateful, source="li2023sgconv", states={"s": ("h 8n", layer_states)},
    traits=frozenset({"time-invariant", "transform"}),
    tags=("SGConv", "GConv", "structured global convolution"),
)  # fmt: skip
