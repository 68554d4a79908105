"""Planted bugs between the operators of a layer: activations, gates, discretizations, directions.

Each is the layer's own forward function with another part: another operator, or another function of
single numbers after the system. Layers that read the past and the future have a direction lost,
exchanged, or late.
"""

from functools import partial
from types import SimpleNamespace

import numpy as np

from refssm.activations import gelu, gelu_tanh, glu, sigmoid, silu
from refssm.conformance.planted.layers.parameters import planting
from refssm.conformance.planted.planting import instead
from refssm.layers import (
    Layer,
    hope,
    hope_bidirectional,
    lru,
    mamba,
    rnn,
    s4,
    s4d,
    s4d_bilinear,
    s5,
    s5_bidirectional,
    s5_irregular,
)
from refssm.layers._namespaces import bare
from refssm.layers._parts import bank, ssm
from refssm.layers._parts.mixing import linear
from refssm.layers.convolutions.long_convolution import LONG_CONVOLUTION_LAYER
from refssm.layers.convolutions.multiscale_convolution import MULTISCALE_CONVOLUTION_LAYER


def split(layer: Layer, given):
    """The signals that a layer reads, and its parameters, from the arguments of its operator."""
    count = 1 + len(layer.beside)
    return given[:count], layer.kind(*given[count:])


def with_operators(layer: Layer, **others):
    """The layer's forward function with other operators, each of which gets the right one first."""

    def program(*given):
        read, p = split(layer, given)
        right = vars(bare())
        wrong = {name: partial(f, right[name]) for name, f in others.items()}
        ops = SimpleNamespace(**right | wrong)
        return layer.forward(ops, p, *read)

    return instead(program)


def after_system(layer: Layer, system, mix):
    """`mix(p, y, u)` of the output y of the system."""

    def program(*given):
        read, p = split(layer, given)
        return mix(p, system(bare(), p, *read), read[0])

    return instead(program)


def _of_kernel(layer: Layer):
    def system(ops, p, u):
        return bank.filtered(ops, layer.prepared(ops, p, u.shape[-2])[0].K, p.D, u)

    return layer, system


def _of_both_kernels(layer: Layer):
    def system(ops, p, u):
        q = layer.prepared(ops, p, u.shape[-2])[0]
        return bank.filtered_both_ways(ops, q.K, q.back, p.D, u)

    return layer, system


SYSTEMS = [
    _of_kernel(s4.S4_LAYER),
    _of_kernel(s4d.S4D_LAYER),
    _of_kernel(s4d_bilinear.S4D_BILINEAR_LAYER),
    _of_kernel(hope.HOPE_LAYER),
    _of_kernel(LONG_CONVOLUTION_LAYER),
    _of_kernel(MULTISCALE_CONVOLUTION_LAYER),
    _of_both_kernels(hope_bidirectional.HOPE_BIDIRECTIONAL_LAYER),
    (lru.LRU_LAYER, lambda ops, p, u: ssm.linearized(ops, lru.prepared(ops, p, 0)[0], u)[0]),
]


def _halves(p, y):
    return np.split(linear(gelu(y), p.W, p.b), 2, axis=-1)


def _first_gated(p, y, u):
    first, second = _halves(p, y)
    return sigmoid(first) * second


def _product_of_halves(p, y, u):
    first, second = _halves(p, y)
    return first * second


MIXES = [
    ("gelu_tanh", "GELU by tanh", lambda p, y, u: glu(linear(gelu_tanh(y), p.W, p.b))),
    ("gelu_none", "GELU is forgotten", lambda p, y, u: glu(linear(y, p.W, p.b))),
    ("silu", "SiLU for GELU", lambda p, y, u: glu(linear(silu(y), p.W, p.b))),
    ("gate_linear", "the gate without its logistic function", _product_of_halves),
    ("gate_first", "the gate on the other half", _first_gated),
    ("residual", "the residual connection inside the layer",
     lambda p, y, u: bank.mixed(bare(), p, y) + u),
]  # fmt: skip


def gate_of(activation, outside):
    """activation(y) σ(…), with the gate from `outside(p, y)`."""
    return lambda p, y, u: activation(y) * sigmoid(outside(p, y))


TANH_FORM = gate_of(gelu_tanh, lambda p, y: linear(gelu_tanh(y), p.W, p.b))


def around(system):
    """The output y of S5 around a `system` of `_parts.ssm`."""

    def found(ops, p, u):
        return system(ops, s5.prepared(ops, p, 0)[0], u)[0]

    return found


def of_s5(layer: Layer, found):
    """Bugs of S5 whose system gives the output y = found(ops, p, …)."""

    def mixed(mix):
        return after_system(layer, found, mix)

    def on(**others):
        return with_operators(layer, **others)

    bugs = planting(f"{layer}_layer")
    bugs.plant(
        ("gelu_tanh", "GELU by tanh", mixed(TANH_FORM)),
        ("gate_input", "the gate before GELU",
         mixed(gate_of(gelu, lambda p, y: linear(y, p.W, p.b)))),
        ("gate_none", "the gate is forgotten", mixed(lambda p, y, u: gelu(y))),
        ("bilinear", "the bilinear map for zero-order hold",
         on(discretize_diagonal_zoh=lambda right, *a: bare().discretize_diagonal_bilinear(*a))),
        ("unscaled", "B without its step",
         on(discretize_diagonal_zoh=lambda right, w, B, dt: (right(w, B, dt)[0], B))),
        ("half", "the factor 2 of conjugate pairs is forgotten",
         on(linear_scan=lambda right, a, b: right(a, b / 2))),
    )  # fmt: skip
    return bugs


S5 = of_s5(s5.S5_LAYER, around(ssm.linearized))


def irregular(ops, p, u, gaps, held=None):
    """The output y of S5 with gaps; those of the inputs are `held`, if they are others."""
    a, _ = s5_irregular._discrete(ops, p, gaps)
    _, f = s5_irregular._discrete(ops, p, gaps if held is None else held)
    return ssm.read(2 * p.C, ops.linear_scan(a, f * ssm.driven(p.B, u))) + p.D * u


def of_gaps(decay, held):
    """S5 with other gaps for the decays, and others for the inputs."""

    def system(ops, p, u, gaps):
        return irregular(ops, p, u, decay(gaps), held(gaps))

    gate = gate_of(gelu, lambda p, y: linear(gelu(y), p.W, p.b))
    return after_system(s5_irregular.S5_IRREGULAR_LAYER, system, gate)


def _same(gaps):
    return gaps


S5_IRREGULAR = of_s5(s5_irregular.S5_IRREGULAR_LAYER, irregular)
S5_IRREGULAR.plant(
    ("decay_only", "the inputs have gaps of 1", of_gaps(_same, np.ones_like)),
    ("input_only", "the decays have gaps of 1", of_gaps(np.ones_like, _same)),
    ("times", "times since the start in place of gaps",
     of_gaps(lambda g: np.cumsum(g, -1), lambda g: np.cumsum(g, -1))),
)  # fmt: skip


def _scan(change):
    """Mamba with other arguments of its scan."""
    names = ("x", "dt", "A", "B", "C", "D", "z", "dt_bias")

    def scan(right, *args):
        return change(right, SimpleNamespace(**dict(zip(names, args, strict=True))))

    return with_operators(mamba.MAMBA_LAYER, mamba_scan=scan)


def _softplus_none(right, a):
    """dt + bias itself as the step."""
    steps = np.maximum(a.dt + a.dt_bias[..., None], 0)
    y = bare().selective_scan(a.x, steps, a.A, a.B, a.C)
    return (y + a.D[..., None] * a.x) * silu(a.z)


def _gate_sigmoid(right, a):
    """σ(z) for z σ(z)."""
    ones = np.ones_like(a.z)
    return right(a.x, a.dt, a.A, a.B, a.C, a.D, ones, a.dt_bias) / silu(ones) * sigmoid(a.z)


def _gate_before(right, a):
    """The gate on the input of the scan."""
    ones = np.ones_like(a.z)
    given = a.x * silu(a.z)
    return right(given, a.dt, a.A, a.B, a.C, a.D, ones, a.dt_bias) / silu(ones)


def _unactivated(u, *parameters):
    """The filter without SiLU."""
    p, ops = mamba.MAMBA_LAYER.kind(*parameters), bare()
    before = mamba.rest(p, u.shape[:-2])[0]
    x, _, z, _ = mamba._inside(ops, p, u, before)
    _, (dt, A, B, C) = mamba._scanned(p, np.swapaxes(x, -1, -2))
    y = ops.mamba_scan(x, dt, A, B, C, p.D, z, p.dt_bias)
    return np.swapaxes(y, -1, -2) @ p.W_out


MAMBA = planting("mamba_layer")
MAMBA.plant(
    ("softplus", "softplus is forgotten", _scan(_softplus_none)),
    ("gate_sigmoid", "σ(z) for z σ(z)", _scan(_gate_sigmoid)),
    ("gate_before", "the gate on the input of the scan", _scan(_gate_before)),
    ("filter_linear", "SiLU after the filter is forgotten", instead(_unactivated)),
)


def _of_s4d(layer: Layer, name: str, other: str):
    """Bugs of S4D under a map: the `other` one, and a circular convolution."""
    kernels = f"diagonal_kernel_{name}", f"diagonal_kernel_{other}"

    def exchanged(right, *args, l):
        return getattr(bare(), kernels[1])(*args, l=l)

    def circular(right, u, k):
        return bare().circular_convolution(u, k)

    bugs = planting(f"{layer}_layer")
    bugs.plant(
        (other, f"the rule {other} for {name}", with_operators(layer, **{kernels[0]: exchanged})),
        ("circular", "the convolution wraps around",
         with_operators(layer, causal_convolution=circular)),
    )  # fmt: skip
    return bugs


S4D = _of_s4d(s4d.S4D_LAYER, "zoh", "bilinear")
S4D_BILINEAR = _of_s4d(s4d_bilinear.S4D_BILINEAR_LAYER, "bilinear", "zoh")


def _of_tanh(change):
    """The RNN with another function of its input and state."""

    def program(u, *parameters):
        p = rnn.RNN_LAYER.kind(*parameters)
        x, rows = np.zeros((*u.shape[:-2], len(p.W_x)), u.dtype), []
        for k in range(u.shape[-2]):
            x = change(u[..., k, :] @ p.W_u, x @ p.W_x, p.b_x)
            rows.append(linear(x, p.W, p.b))
        return np.stack(rows, axis=-2) if rows else np.zeros_like(u)

    return instead(program)


RNN = planting("rnn_layer")
RNN.plant(
    ("sigmoid", "σ for tanh", _of_tanh(lambda u, x, b: sigmoid(u + x + b))),
    ("tanh_late", "tanh of the state alone", _of_tanh(lambda u, x, b: u + np.tanh(x) + b)),
    ("linear", "tanh is forgotten", _of_tanh(lambda u, x, b: u + x + b)),
)

OF_GATES = [*S5.bugs, *S5_IRREGULAR.bugs, *MAMBA.bugs, *S4D.bugs, *S4D_BILINEAR.bugs, *RNN.bugs]
for _layer, _system in SYSTEMS:
    _bugs = planting(f"{_layer}_layer")
    _bugs.plant(*((n, what, after_system(_layer, _system, mix)) for n, what, mix in MIXES))
    OF_GATES += _bugs.bugs


S5_BIDIRECTIONAL = of_s5(
    s5_bidirectional.S5_BIDIRECTIONAL_LAYER, around(ssm.linearized_bidirectional)
)


def of_states(change):
    """The bidirectional S5 from changed states of the past and of the future."""

    def system(ops, p, u):
        a, f = s5._discrete(ops, p)
        b, n = ssm.driven(f * p.B, u), len(a)
        steps = np.broadcast_to(a, b.shape[-2:])
        past = ops.linear_scan(steps, b)
        past, future = change(past, ops.linear_scan(steps, b[..., ::-1, :])[..., ::-1, :])
        C = 2 * p.C
        return ssm.read(C[:, :n], past.copy()) + ssm.read(C[:, n:], future.copy()) + p.D * u

    gate = gate_of(gelu, lambda p, y: linear(gelu(y), p.W, p.b))
    return after_system(s5_bidirectional.S5_BIDIRECTIONAL_LAYER, system, gate)


def earlier(z):
    """z_{k+1}, and 0 after the end."""
    return np.concatenate([z[..., 1:, :], np.zeros_like(z[..., :1, :])], axis=-2)


S5_BIDIRECTIONAL.plant(
    ("future", "the scan from the end is forgotten", of_states(lambda x, z: (x, 0 * z))),
    ("exchanged", "the two directions are exchanged", of_states(lambda x, z: (z, x))),
    ("lag_one", "the future begins one step later", of_states(lambda x, z: (x, earlier(z)))),
    ("unturned", "the second scan stays in reversed time",
     of_states(lambda x, z: (x, z[..., ::-1, :]))),
)  # fmt: skip


def _convolved(change):
    """The bidirectional HOPE with another convolution, from the signal and both kernels."""
    return with_operators(
        hope_bidirectional.HOPE_BIDIRECTIONAL_LAYER,
        bidirectional_convolution_shifted=lambda right, u, k, kr: change(right, u, k, kr),
    )


def _lag_zero(right, u, k, kr):
    """Both kernels at lag 0."""
    past = bare().causal_convolution
    return past(u, k) + past(u[..., ::-1], kr)[..., ::-1]


HOPE_BIDIRECTIONAL = planting("hope_bidirectional_layer")
HOPE_BIDIRECTIONAL.plant(
    ("lag_zero", "the future begins with the present input", _convolved(_lag_zero)),
    ("future", "the kernel of the future is forgotten",
     _convolved(lambda right, u, k, kr: right(u, k, 0 * kr))),
    ("exchanged", "the two kernels are exchanged",
     _convolved(lambda right, u, k, kr: right(u, kr, k))),
    ("unturned", "the second kernel reads the past too",
     _convolved(lambda right, u, k, kr: bare().causal_convolution(u, k + kr))),
    (
        "circular",
        "the convolution wraps around",
        _convolved(
            lambda right, u, k, kr: bare().circular_convolution(
                u, k + np.concatenate([0 * kr[..., :1], kr[..., :-1][..., ::-1]], axis=-1)
            )
        ),
    ),
)  # fmt: skip

OF_DIRECTIONS = [*S5_BIDIRECTIONAL.bugs, *HOPE_BIDIRECTIONAL.bugs]
