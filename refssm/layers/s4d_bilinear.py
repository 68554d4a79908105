"""S4D under the bilinear map: h diagonal systems, each with one input and one output [gu2022s4d].

    w = −e^{log_rate} + i frequency,   dt = e^{log_dt}
    K_k = 2 Re Σ_n C_n dt/(1 − ½dt w_n) ((1 + ½dt w_n)/(1 − ½dt w_n))^k
    y = GLU(GELU(K * u + D u) W + b)

Parameters and initial values are those of `s4d`; stepping runs the same system as a recurrence.
"""

from dataclasses import dataclass

from refssm import initial
from refssm.layers import s4d
from refssm.layers._frame import Layer
from refssm.layers._parts import bank


@dataclass(frozen=True)
class S4DBilinear(s4d.S4D):
    """Parameters of `s4d_bilinear`: those of `s4d`."""


def init(
    rng, *, h, n=32, poles="lin", steps="vector", dt_min=initial.DT_MIN, dt_max=initial.DT_MAX
) -> S4DBilinear:
    """New parameters in double precision; the options are those of `s4d`."""
    p = s4d.init(rng, h=h, n=n, poles=poles, steps=steps, dt_min=dt_min, dt_max=dt_max)
    return S4DBilinear(**p.arrays())


def prepared(ops, p, l):
    """The kernels for l steps, and the function from their gradient to that of the parameters."""
    return bank.prepared(ops, "bilinear", p, l)


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    return bank.stateful(ops, "bilinear", p, u, state)


S4D_BILINEAR_LAYER = Layer(
    name="s4d_bilinear", kind=S4DBilinear, init=init, prepared=prepared, run=bank.run,
    stateful=stateful, source="gu2022s4d",
    states=s4d.S4D_LAYER.states, traits=s4d.S4D_LAYER.traits,
    tags=("S4D layer bilinear",),
)  # fmt: skip
