"""Planted bugs of layers with kernels of their own: in kernels, dilations, gates and residuals."""

import numpy as np

from refssm.activations import sigmoid
from refssm.conformance.planted.layers.gates import after_system, with_operators
from refssm.conformance.planted.layers.parameters import planting
from refssm.conformance.planted.planting import instead
from refssm.layers._namespaces import bare
from refssm.layers._parts import bank
from refssm.layers._parts.kernels import of_length
from refssm.layers._parts.mixing import linear
from refssm.layers.convolutions import multiscale_convolution as multiscale
from refssm.layers.convolutions.dilated_convolution import DILATIONS, DilatedConvolution, taps
from refssm.layers.convolutions.long_convolution import LONG_CONVOLUTION_LAYER


def _mixed(p, y, u):
    return bank.mixed(bare(), p, y)


def _with_kernel(layer, kernel):
    """The layer with the kernels (h, any length) that `kernel(p)` gives."""

    def system(ops, p, u):
        return bank.filtered(ops, of_length(kernel(p), u.shape[-2]), p.D, u)

    return after_system(layer, system, _mixed)


def _late(K):
    """The kernel from the next step on."""
    return np.concatenate([np.zeros_like(K[..., :1]), K], axis=-1)


def _circular(layer):
    return with_operators(
        layer, causal_convolution=lambda right, u, k: bare().circular_convolution(u, k)
    )


def _periodic(k):
    """The kernel again and again, as far as any signal of the judge."""
    return np.tile(k, 300)


LONG = planting("long_convolution_layer")
LONG.plant(
    ("circular", "the convolution wraps around", _circular(LONG_CONVOLUTION_LAYER)),
    ("kernel_late", "the kernel begins with the next step",
     _with_kernel(LONG_CONVOLUTION_LAYER, lambda p: _late(p.k))),
    ("kernel_short", "the last number of the kernel is left out",
     _with_kernel(LONG_CONVOLUTION_LAYER, lambda p: p.k[..., :-1])),
    ("kernel_periodic", "a kernel that is too short begins again",
     _with_kernel(LONG_CONVOLUTION_LAYER, lambda p: _periodic(p.k))),
    ("kernel_one", "the first channel's kernel for all",
     _with_kernel(LONG_CONVOLUTION_LAYER, lambda p: np.repeat(p.k[:1], len(p.k), 0))),
)  # fmt: skip


def _nearest(n, factor):
    """Each number `factor` times."""
    return np.repeat(np.eye(n), factor, axis=-1)


def _corners(n, factor):
    """The first and the last number at the first and the last place."""
    place = np.linspace(0, n - 1, factor * n)
    return np.maximum(0, 1 - np.abs(place - np.arange(n)[:, None]))


def _multiscale(stretching=multiscale.stretching, factors=multiscale.FACTORS,
                powers=(1, 2, 3), order=(0, 1, 2, 3)):  # fmt: skip
    """SGConv with another interpolation, other factors, powers of the decay, or order of scales."""

    def kernel(p):
        n, a = p.near.shape[-1], np.exp(-np.exp(p.log_rate))[:, None]
        parts = [p.near]
        for i, (factor, power) in enumerate(zip(factors, powers, strict=True)):
            w = p.far[..., i * n : (i + 1) * n]
            parts.append(a**power * (w @ stretching(n, factor).astype(w.dtype)))
        return np.concatenate([parts[i] for i in order], axis=-1)

    return _with_kernel(multiscale.MULTISCALE_CONVOLUTION_LAYER, kernel)


MULTISCALE = planting("multiscale_convolution_layer")
MULTISCALE.plant(
    ("circular", "the convolution wraps around",
     _circular(multiscale.MULTISCALE_CONVOLUTION_LAYER)),
    ("stretch_nearest", "each number is repeated, without interpolation",
     _multiscale(stretching=_nearest)),
    ("stretch_corners", "interpolation from end to end", _multiscale(stretching=_corners)),
    ("stretch_equal", "no scale is stretched", _multiscale(factors=(1, 1, 1))),
    ("stretch_twice", "each scale is stretched twice as far", _multiscale(factors=(2, 4, 8))),
    ("decay_none", "all scales weigh the same", _multiscale(powers=(0, 0, 0))),
    ("decay_late", "the decay begins one scale later", _multiscale(powers=(0, 1, 2))),
    ("decay_squared", "a^{2i} for a^i", _multiscale(powers=(2, 4, 6))),
    ("scales_reversed", "the coarsest scale first", _multiscale(order=(3, 2, 1, 0))),
    ("kernel_late", "the kernel begins with the next step",
     _with_kernel(multiscale.MULTISCALE_CONVOLUTION_LAYER,
                  lambda p: _late(multiscale.kernel(p)))),
)  # fmt: skip


def _before(x, d):
    """x_{k−d}, and 0 before the start."""
    rows = np.concatenate([np.zeros_like(x, shape=(*x.shape[:-2], d, x.shape[-1])), x], axis=-2)
    return rows[..., : x.shape[-2], :]


def _unit(value, gate):
    return np.tanh(value) * sigmoid(gate)


def _residual(x, added, u):
    return x + added


def _dilated(dilations=DILATIONS, past=_before, unit=_unit, follows=_residual,
             order=lambda now, then: (now, then)):  # fmt: skip
    """WaveNet's units with other dilations, delays, gates, residuals or an order of the taps."""

    def program(u, *parameters):
        p = DilatedConvolution(*parameters)
        x, out = u, np.zeros_like(u)
        for i, d in enumerate(dilations):
            given = np.concatenate(order(x, past(x, d)), axis=-1)
            value, gate = np.split(linear(given, *taps(p, i)), 2, axis=-1)
            added = unit(value, gate) @ p.W_out[i]
            x, out = follows(x, added, u), out + added
        return out

    return instead(program)


DILATED = planting("dilated_convolution_layer")
DILATED.plant(
    ("undilated", "each dilation is 1", _dilated(dilations=(1, 1, 1))),
    ("dilations_linear", "dilations 1, 2, 3", _dilated(dilations=(1, 2, 3))),
    ("dilations_reversed", "dilations 4, 2, 1", _dilated(dilations=DILATIONS[::-1])),
    ("dilations_late", "dilations 2, 4, 8", _dilated(dilations=(2, 4, 8))),
    ("circular", "the past wraps around", _dilated(past=lambda x, d: np.roll(x, d, -2))),
    ("future", "the step d later, not d before",
     _dilated(past=lambda x, d: _before(x[..., ::-1, :], d)[..., ::-1, :])),
    ("taps_exchanged", "the tap of the past reads the present",
     _dilated(order=lambda now, then: (then, now))),
    ("halves", "tanh of the second half, σ of the first",
     _dilated(unit=lambda value, gate: _unit(gate, value))),
    ("gate_none", "the gate is forgotten", _dilated(unit=lambda value, gate: np.tanh(value))),
    ("gate_linear", "the value without tanh",
     _dilated(unit=lambda value, gate: value * sigmoid(gate))),
    ("residual", "a unit reads only what the one before adds",
     _dilated(follows=lambda x, added, u: added)),
    ("residual_input", "each unit reads the signal itself",
     _dilated(follows=lambda x, added, u: u)),
)  # fmt: skip

OF_CONVOLUTIONS = [*LONG.bugs, *MULTISCALE.bugs, *DILATED.bugs]
