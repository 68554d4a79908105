"""S5 over past and future: the same system scanned from the start and from the end [smith2023s5].

    x_k = e^{dt w} x_{k−1} + dt φ₁(dt w) B u_k,   z_k = e^{dt w} z_{k+1} + dt φ₁(dt w) B u_k
    y_k = 2 Re(C [x_k; z_k]) + D u_k,   out = g σ(g W + b),   g = GELU(y)

Both sums begin at lag 0, so u_k counts twice. The layer reads the future: it has no states.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import complex_weights
from refssm.layers import s5
from refssm.layers._frame import Layer, parameter
from refssm.layers._parts import ssm


@dataclass(frozen=True)
class S5Bidirectional(s5.S5):
    """Parameters of `s5_bidirectional`: those of `s5`, with an output matrix for each direction."""

    C: np.ndarray = parameter(
        "h 2n", "of each direction C₀ V, C₀ normal, variance 1/(2n)", domain=complex_weights
    )


def init(
    rng, *, h, n=32, blocks=1, poles="hippo-n", steps="vector", dt_min=initial.DT_MIN,
    dt_max=initial.DT_MAX,
) -> S5Bidirectional:  # fmt: skip
    """New parameters in double precision; the options are those of `s5`."""
    system = initial.modes(rng, poles, n=n, blocks=blocks)
    p = s5.started(rng, system, h, steps=steps, dt_min=dt_min, dt_max=dt_max).arrays()
    later = initial.s5(rng, n=n, m=h, p=h, system=system)["C"]
    return S5Bidirectional(**p | {"C": np.concatenate([p["C"], later], axis=-1)})


def run(ops, q, u):
    """The output, and the function from its cotangent to the gradients of `q` and of u."""
    return s5.around(ssm.linearized_bidirectional, ops, q, u)


S5_BIDIRECTIONAL_LAYER = Layer(
    name="s5_bidirectional", kind=S5Bidirectional, init=init, prepared=s5.prepared, run=run,
    source="smith2023s5",
    tags=("S5 layer bidirectional", "S5 block bidirectional"),
)  # fmt: skip
