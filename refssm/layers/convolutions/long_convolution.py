"""A convolution with a free kernel of t numbers in every channel: no system is behind it.

    y_i = Σ_{j<t} k_j u_{i−j} + D u_i
    out = GLU(GELU(y) W + b)

HOPE compares with it [yu2024hope]. A signal shorter than t meets the first numbers of the kernel
only; in a longer one inputs more than t − 1 steps ago do not count. The state is the last t inputs.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import layer_states, shifts, skips, weights_of_taps
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts import bank
from refssm.layers._parts.kernels import of_length, of_length_vjp, stepped


@dataclass(frozen=True)
class LongConvolution(Parameters):
    """Parameters of `long_convolution`: a kernel of `t` numbers for each channel."""

    k: np.ndarray = parameter("h t", "normal, divided by √t", "system", domain=weights_of_taps)
    D: np.ndarray = parameter("h", "normal", domain=skips)
    W: np.ndarray = parameter("h 2h", "uniform between ±1/√h")
    b: np.ndarray = parameter("2h", "uniform between ±1/√h", domain=shifts)


def init(rng, *, h, t=64) -> LongConvolution:
    """New parameters in double precision."""
    k, D = rng.standard_normal((h, t)) / np.sqrt(t), rng.standard_normal(h)
    return LongConvolution(k, D, *initial.linear(rng, h, 2 * h))


def prepared(ops, p, l):
    """The kernels for l steps, and the function from their gradient to that of the parameters."""

    def back(dq):
        return LongConvolution(of_length_vjp(dq.K, p.k), dq.D, dq.W, dq.b)

    return bank.Filters(of_length(p.k, l), p.D, p.W, p.b), back


def stateful(ops, p, u, state):
    """The output for a piece from the last inputs, and the next ones."""
    y, newest = stepped(ops, p.k, p.D, u, state[0])
    return bank.mixed(ops, p, y), (newest,)


LONG_CONVOLUTION_LAYER = Layer(
    name="long_convolution", kind=LongConvolution, init=init, prepared=prepared, run=bank.run,
    stateful=stateful, source="yu2024hope", states={"s": ("h t", layer_states)},
    traits=frozenset({"time-invariant", "transform"}),
    tags=("LongConv", "free convolution kernel", "long convolution block"),
)  # fmt: skip
