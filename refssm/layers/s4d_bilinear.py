"""S4D under the bilinear map: h diagonal systems, each with one input and one output [gu2022s4d].

    w = −e^{log_rate} + i frequency,   dt = e^{log_dt}
    K_k = 2 Re Σ_n C_n dt/(1 − ½dt w_n) ((1 + ½dt w_n)/(1 − ½dt w_n))^k
    y = GLU(GELU(K * u + D u) W + b)

Parameters and initial values are those of `s4d`; stepping runs the same system as a recurrence.
"""

from refssm.layers import _diagonal_bank as diagonal
from refssm.layers._layer import Layer
from refssm.layers.s4d import S4D, S4D_LAYER, init, rest


def forward(ops, p, u):
    """The output for a signal (…, l, h) from rest."""
    return diagonal.forward(ops, "bilinear", p, u)


def vjp(ops, dy, p, u):
    """Gradients of the parameters, and of u."""
    return diagonal.vjp(ops, "bilinear", dy, p, u)


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    return diagonal.stateful(ops, "bilinear", p, u, state)


S4D_BILINEAR_LAYER = Layer(
    name="s4d_bilinear", kind=S4D, init=init, forward=forward, vjp=vjp, rest=rest,
    stateful=stateful, sizes=S4D_LAYER.sizes, source="gu2022s4d", states=S4D_LAYER.states,
    traits=S4D_LAYER.traits,
)  # fmt: skip
