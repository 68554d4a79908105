"""Planted bugs of layers of diagonal systems, and of fixed filters."""

from dataclasses import replace
from functools import partial

import numpy as np

from refssm.activations import gelu
from refssm.conformance.planted.layers.gates import (
    MIXES,
    TANH_FORM,
    after_system,
    gate_of,
    with_operators,
)
from refssm.conformance.planted.layers.parameters import planting
from refssm.conformance.planted.planting import Epsilon, instead
from refssm.layers import Layer
from refssm.layers._namespaces import bare
from refssm.layers._parts import bank, ssm
from refssm.layers._parts.mixing import linear
from refssm.layers.diagonal import liquid_s4, s5_discrete, spectral_ssm, stable_ssm
from refssm.layers.diagonal.dss_exp import DSS_EXP_LAYER
from refssm.layers.diagonal.dss_softmax import DSS_SOFTMAX_LAYER


def _circular(right, u, k):
    return bare().circular_convolution(u, k)


def _circular_taps(right, u, k):
    """Of t taps, cut or padded to the length."""
    l = u.shape[-1]
    padded = np.concatenate([k[..., :l], np.zeros((*k.shape[:-1], l), k.dtype)], axis=-1)
    return _circular(right, u, padded[..., :l])


def _of_bank(layer: Layer, system, **convolution):
    """Bugs after the `system`, and of its convolutions, which are causal ones if none is given."""
    bugs = planting(f"{layer}_layer")
    bugs.plant(*((n, what, after_system(layer, system, mix)) for n, what, mix in MIXES))
    around = convolution or {"causal_convolution": _circular}
    bugs.plant(("circular", "the convolution wraps around", with_operators(layer, **around)))
    return bugs


def _by_kernel(layer: Layer):
    def system(ops, p, u):
        return bank.filtered(ops, layer.prepared(ops, p, u.shape[-2])[0].K, p.D, u)

    return system


def _of_dss(layer: Layer, name: str):
    """Bugs of a layer whose kernel is the operator of this name; and how to plant others."""

    def on(change):
        return with_operators(layer, **{name: change})

    bugs = _of_bank(layer, _by_kernel(layer))
    bugs.plant(
        ("undivided", "C for C/w", on(lambda right, w, C, dt, *, l: right(w, C * w, dt, l=l))),
        ("imaginary", "the imaginary part of the kernel",
         on(lambda right, *given, l: -1j * right(*given, l=l))),
        ("modulus", "the modulus of the kernel", on(lambda right, *given, l:
                                                    np.abs(right(*given, l=l)) + 0j)),
        ("kernel_late", "the kernel begins one step late",
         on(lambda right, *given, l: _late(right(*given, l=l)))),
    )  # fmt: skip
    return bugs, on


def _late(k):
    return np.concatenate([0 * k[..., :1], k[..., :-1]], axis=-1)


DSS_EXP, _on = _of_dss(DSS_EXP_LAYER, "dss_exp_kernel")
DSS_EXP.plant(
    ("bilinear", "the bilinear map for zero-order hold", _on(
        lambda right, w, C, dt, *, l:
        bare().diagonal_kernel_bilinear(w, np.ones_like(w), C, dt, l=l))),
    ("softmax", "the kernel of DSS-softmax", _on(
        lambda right, w, C, dt, *, l: bare().dss_softmax_kernel(w, C, dt, l=l))),
    ("no_scale", "e^{dt w k} without its factor", _on(
        lambda right, w, C, dt, *, l:
        right(w, C * w / np.expm1(dt[..., None] * w), dt, l=l))),
)  # fmt: skip


def _over(steps):
    """The sum over another number of steps."""

    def kernel(right, *given, l):
        return right(*given, l=steps(l))[..., :l]

    return kernel


def _with_epsilon(number):
    """1/x written x*/(|x|² + ε), x = w (e^{l dt w} − 1), as published."""

    def kernel(right, w, C, dt, *, l):
        z = dt[..., None] * w
        x = np.where(z.real > 0, -z, z)
        modulus = np.abs(w * np.expm1(max(1, l) * x)) ** 2
        return right(w, C * (modulus / (modulus + modulus.dtype.type(number))), dt, l=l)

    return with_operators(DSS_SOFTMAX_LAYER, dss_softmax_kernel=kernel)


DSS_SOFTMAX, _on = _of_dss(DSS_SOFTMAX_LAYER, "dss_softmax_kernel")
DSS_SOFTMAX.plant(
    ("exp", "the kernel of DSS-exp, of which growing modes overflow", _on(
        lambda right, w, C, dt, *, l: bare().dss_exp_kernel(w, C, dt, l=l))),
    ("one_more", "the sum over l + 1 steps", _on(_over(lambda l: l + 1))),
    ("padded", "the sum over 2l steps, those of the transform", _on(_over(lambda l: 2 * l))),
    ("epsilon", "1/x as x*/(|x|² + {})", Epsilon(1e-4, _with_epsilon)),
    ("decaying", "−|Re w| for Re w", _on(
        lambda right, w, C, dt, *, l: right(-np.abs(w.real) + 1j * w.imag, C, dt, l=l))),
)  # fmt: skip


def _rated(layer: Layer, rate):
    """The layer with other rates."""
    other = stable_ssm.RateMap(rate, np.ones_like, np.ones_like)
    changed = replace(layer, prepared=partial(stable_ssm._prepared, other))
    return instead(lambda u, *p: changed.forward(bare(), layer.kind(*p), u))


RATES = {
    "exp": ("e^weight", stable_ssm.EXP.rate),
    "softplus": ("log(1 + e^weight)", stable_ssm.SOFTPLUS.rate),
    "best": ("1/(weight² + ½)", stable_ssm.BEST.rate),
    "published": ("1/(weight² + 0.1)", lambda w: 1 / (w * w + w.dtype.type(0.1))),
    "inverse": ("weight² + ½", lambda w: w * w + w.dtype.type(0.5)),
    "relu": ("the positive part of the weight", lambda w: np.maximum(w, w.dtype.type(2**-10))),
    "modulus": ("|weight|", lambda w: np.abs(w) + w.dtype.type(2**-10)),
}
OF_RATES = []
for _layer, _own in (
    (stable_ssm.STABLE_SSM_EXP_LAYER, "exp"),
    (stable_ssm.STABLE_SSM_SOFTPLUS_LAYER, "softplus"),
    (stable_ssm.STABLE_SSM_BEST_LAYER, "best"),
):
    _bugs = _of_bank(_layer, _by_kernel(_layer))
    _bugs.plant(
        *((f"rate_{name}", f"rates {what}", _rated(_layer, rate))
          for name, (what, rate) in RATES.items() if name != _own),
        ("bilinear", "the bilinear map for zero-order hold", with_operators(
            _layer, diagonal_kernel_zoh=lambda right, *given, l:
            bare().diagonal_kernel_bilinear(*given, l=l))),
    )  # fmt: skip
    OF_RATES += _bugs.bugs


def _of_discrete(change):
    """S5 with another discrete system: `change` of p."""

    def system(ops, p, u):
        q = s5_discrete.prepared(ops, change(p), 0)[0]
        return ssm.linearized(ops, q, u)[0]

    gate = gate_of(gelu, lambda p, y: linear(gelu(y), p.W, p.b))
    return after_system(s5_discrete.S5_DISCRETE_LAYER, system, gate)


def _before(ops, p, u):
    """y_k = C x_{k−1} + D u_k."""
    y = ssm.linearized(ops, s5_discrete.prepared(ops, replace(p, D=0 * p.D), 0)[0], u)[0]
    return np.concatenate([0 * y[..., :1, :], y[..., :-1, :]], axis=-2) + p.D * u


def _found(ops, p, u):
    return ssm.linearized(ops, s5_discrete.prepared(ops, p, 0)[0], u)[0]


def _mix(mix, found=_found):
    return after_system(s5_discrete.S5_DISCRETE_LAYER, found, mix)


S5_DISCRETE = planting("s5_discrete_layer")
S5_DISCRETE.plant(
    ("gelu_tanh", "GELU by tanh", _mix(TANH_FORM)),
    ("gate_input", "the gate before GELU",
     _mix(gate_of(gelu, lambda p, y: linear(y, p.W, p.b)))),
    ("gate_none", "the gate is forgotten", _mix(lambda p, y, u: gelu(y))),
    ("half", "the factor 2 of conjugate pairs is forgotten",
     _of_discrete(lambda p: replace(p, C=p.C / 2))),
    ("held", "e^a for a, as if it were continuous",
     _of_discrete(lambda p: replace(p, a=np.exp(-np.abs(p.a.real) + 1j * p.a.imag)))),
    ("normalised", "inputs times √(1 − |a|²), as in the LRU", _of_discrete(lambda p: replace(
        p, B=np.sqrt(np.maximum(1 - np.abs(p.a) ** 2, 0))[:, None] * p.B))),
    ("modulus", "|a| for a", _of_discrete(lambda p: replace(p, a=np.abs(p.a) + 0j))),
    ("clipped", "|a| is at most 0.99", _of_discrete(lambda p: replace(
        p, a=p.a * np.minimum(1, 0.99 / np.maximum(np.abs(p.a), 0.1)).astype(p.D.dtype)))),
    ("state_before", "the output from the state before", _mix(
        gate_of(gelu, lambda p, y: linear(gelu(y), p.W, p.b)), _before)),
)  # fmt: skip


def _liquid(change):
    """Liquid S4 with other kernels or products: y from K, K², the rows u, and p."""

    def system(ops, p, u):
        q, ut = liquid_s4.prepared(ops, p, u.shape[-2])[0], bank.turned(u)
        return bank.turned(change(ops.causal_convolution, q, ut) + p.D[:, None] * ut)

    return after_system(liquid_s4.LIQUID_S4_LAYER, system, lambda p, y, u: bank.mixed(bare(), p, y))


def _with_products(products):
    """Other products of inputs."""
    return _liquid(lambda conv, q, u: conv(u, q.K) + conv(products(u), q.products))


def _all_pairs(conv, q, u):
    """Degree 2 with all pairs: U (K² * u)_{k−1} − (K² * u U)_{k−1}, U the sum of earlier inputs."""
    whole = np.cumsum(u, axis=-1)
    late = liquid_s4.late
    pairs = whole * late(conv(u, q.products)) - late(conv(u * whole, q.products))
    return conv(u, q.K) + pairs


def _liquid_system(ops, p, u):
    q, ut = liquid_s4.prepared(ops, p, u.shape[-2])[0], bank.turned(u)
    v = ut * liquid_s4.late(ut)
    y = ops.causal_convolution(ut, q.K) + ops.causal_convolution(v, q.products)
    return bank.turned(y + p.D[:, None] * ut)


def _kernels(change):
    """Liquid S4 with another kernel of degree 2, from a, B̄ and C."""

    def kernel(right, a, B, C, *, l, degree):
        return change(right, a, B, C, l) if degree == 2 else right(a, B, C, l=l, degree=degree)

    return with_operators(liquid_s4.LIQUID_S4_LAYER, liquid_kernel=kernel)


LIQUID_S4 = _of_bank(liquid_s4.LIQUID_S4_LAYER, _liquid_system)
LIQUID_S4.plant(
    ("products_none", "the liquid term is forgotten", _liquid(lambda conv, q, u: conv(u, q.K))),
    ("products_reversed", "the products in reversed time, as published",
     _with_products(lambda u: (u * liquid_s4.late(u))[..., ::-1])),
    ("squares", "u_k² for u_k u_{k−1}", _with_products(lambda u: u * u)),
    ("products_late", "the products of the step before",
     _with_products(lambda u: liquid_s4.late(u * liquid_s4.late(u)))),
    ("products_around", "the first input times the last one",
     _with_products(lambda u: u * np.roll(u, 1, -1))),
    ("all_pairs", "all pairs of inputs for those of neighbours", _liquid(_all_pairs)),
    ("B_once", "B̄ for B̄² in the kernel of the products",
     _kernels(lambda right, a, B, C, l: right(a, B, C, l=l, degree=1))),
    ("B_summed", "B̄ times the sum of all B̄, as published",
     _kernels(lambda right, a, B, C, l: right(a, B, C * B.sum(-1, keepdims=True), l=l, degree=1))),
    ("B_modulus", "|B̄|² for B̄²",
     _kernels(lambda right, a, B, C, l: right(a, B, C * B.conj(), l=l, degree=1))),
    ("zoh", "zero-order hold for the bilinear map", with_operators(
        liquid_s4.LIQUID_S4_LAYER, discretize_diagonal_bilinear=lambda right, *given:
        bare().discretize_diagonal_zoh(*given))),
)  # fmt: skip


def _filtered(ops, p, u):
    """The output of the filters."""
    found = ops.short_convolution(spectral_ssm._rows(u), spectral_ssm._filters(p))
    return spectral_ssm._features(found) @ spectral_ssm._matrices(p) + p.D * u


def _on_filters(change):
    """Spectral SSM with other filters (2n, t)."""
    return with_operators(
        spectral_ssm.SPECTRAL_SSM_LAYER,
        short_convolution=lambda right, rows, filters: right(rows, change(filters)),
    )


def _halves(change):
    """Other filters from those of M⁺ and those of M⁻."""
    return _on_filters(lambda both: np.concatenate(change(*np.split(both, 2))))


SPECTRAL_SSM = _of_bank(
    spectral_ssm.SPECTRAL_SSM_LAYER, _filtered, short_convolution=_circular_taps
)
SPECTRAL_SSM.plant(
    ("unsigned", "φ for φ⁻", _halves(lambda plus, minus: (plus, plus))),
    ("minus_none", "φ⁻ is forgotten", _halves(lambda plus, minus: (plus, 0 * minus))),
    ("exchanged", "M⁺ and M⁻ are exchanged", _halves(lambda plus, minus: (minus, plus))),
    ("minus_sign", "(−1)^{j+1} for (−1)^j", _halves(lambda plus, minus: (plus, -minus))),
    ("signs_of_filters", "(−1)^i by filter for (−1)^j by lag", _halves(
        lambda plus, minus: (plus, plus * spectral_ssm._signs(plus.T)[:, None]))),
    ("one_late", "the filters begin one step late", _on_filters(_late)),
    ("filters_exchanged", "the filters in the other order", _on_filters(lambda both: both[::-1])),
)  # fmt: skip

OF_DIAGONAL = [
    *DSS_EXP.bugs, *DSS_SOFTMAX.bugs, *OF_RATES, *S5_DISCRETE.bugs, *LIQUID_S4.bugs,
    *SPECTRAL_SSM.bugs,
]  # fmt: skip
