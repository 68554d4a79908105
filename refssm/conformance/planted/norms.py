"""Planted bugs of the family `norms`: the root, the mean, the gate, the groups, the projection."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each
from refssm.activations import sigmoid, silu, silu_vjp
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import Epsilon, Planting, instead, of_result
from refssm.norms import GATED_RMS_NORM, L2_NORM, RMS_NORM_GATED

same = np.positive


def mean_of_squares(s, count):
    """Σ s²/count."""
    return (s * s).sum(-1, keepdims=True) / s.dtype.type(count)


def over_root(m, eps):
    """1/√(m + ε)."""
    return 1 / np.sqrt(m + m.dtype.type(eps))


def in_groups(s, group):
    """The last axis as groups of channels."""
    return s.reshape(*s.shape[:-1], s.shape[-1] // group, group)


def normal(s, count, eps, mean=mean_of_squares, rate=over_root):
    """s/√(mean s² + ε)."""
    return s * rate(mean(s, count), eps)


def after(*, mean=mean_of_squares, rate=over_root, gate=silu, weight=same, cast=same):
    """The gate after the norm, with parts replaced by wrong ones."""

    def program(right, x, z, w, *, eps):
        y = cast(normal(x, x.shape[-1], eps, mean, rate)) * weight(w) * gate(z)
        return y.astype(np.result_type(x, z, w))

    return program


def before(*, mean=mean_of_squares, rate=over_root, gate=silu, weight=same, cast=same):
    """The gate before the norm, with parts replaced by wrong ones."""

    def program(right, x, z, w, *, eps, group):
        s = in_groups(x * gate(z), group)
        y = cast(normal(s, group, eps, mean, rate))
        return (y.reshape(*y.shape[:-2], w.shape[-1]) * weight(w)).astype(np.result_type(x, z, w))

    return program


def alone(*, mean=mean_of_squares, rate=over_root, gate=None, weight=None, cast=same):
    """No gate, and a sum for the mean."""
    del gate, weight

    def program(right, x, *, eps):
        return cast(normal(x, 1, eps, mean, rate)).astype(x.dtype)

    return program


def _outside(m, eps):
    return 1 / (np.sqrt(m) + m.dtype.type(eps))


def _at_least(m, eps):
    return 1 / np.sqrt(np.maximum(m, m.dtype.type(eps)))


def _length_at_least(m, eps):
    return 1 / np.maximum(np.sqrt(m), m.dtype.type(eps))


def _without(m, eps):
    """No ε; a row of zeros stays zero."""
    return 1 / np.sqrt(np.where(m == 0, 1, m))


def _added_twice(m, eps):
    return over_root(m, 2 * eps)


def _squared(m, eps):
    return over_root(m, eps * eps)


def _of_root(m, eps):
    return 1 / np.sqrt(m + np.sqrt(m.dtype.type(eps)))


def _not_rooted(m, eps):
    return 1 / (m + m.dtype.type(eps))


def _of_absolute(s, count):
    """(Σ |s|/count)²."""
    return (np.abs(s).sum(-1, keepdims=True) / s.dtype.type(count)) ** 2


def _centred(s, count):
    return mean_of_squares(s - s.mean(-1, keepdims=True), count)


def _less_one(s, count):
    return mean_of_squares(s, max(1, s.shape[-1] - 1) * count / s.shape[-1])


def _over_batch(s, count):
    """Along the outermost axis of the batch."""
    return (s * s).mean(0, keepdims=True) * s.dtype.type(s.shape[-1] / count)


def _of_first_row(s, count):
    m = mean_of_squares(s, count)
    return np.broadcast_to(m[:1], m.shape)


def _first_64(s, count):
    """Only the first 64 features counted."""
    return mean_of_squares(s[..., :64], count)


def _padded_to_power(s, count):
    """Divided by the next power of two, as a block of a kernel has."""
    n = s.shape[-1]
    return mean_of_squares(s, count * 2.0 ** np.ceil(np.log2(n)) / n)


def _tail_lost(s, count):
    """Features beyond a multiple of 4 not counted."""
    n = s.shape[-1]
    return mean_of_squares(s[..., : n // 4 * 4] if n > 4 else s, count)


def _squares_in_half(s, count):
    """Squares in half precision: they overflow above 256."""
    with np.errstate(over="ignore"):
        return float16(s * s).sum(-1, keepdims=True) / s.dtype.type(count)


def _peak(s, count):
    return (s * s).max(-1, keepdims=True)


def _other_count(s, count):
    """A mean for a sum, a sum for a mean."""
    return (s * s).sum(-1, keepdims=True) / s.dtype.type(1 if count > 1 else s.shape[-1])


def _fixed(number):
    """Another ε, whatever is asked for."""
    return lambda form: form(rate=lambda m, eps: over_root(m, number))


ROOTS = (
    ("eps_outside", "√(mean) + ε: ε after the root", _outside),
    ("eps_missing", "no ε", _without),
    ("eps_as_maximum", "max(mean, ε) for mean + ε", _at_least),
    ("eps_of_length", "max(√(mean), ε), as F.normalize", _length_at_least),
    ("eps_twice", "ε added twice", _added_twice),
    ("eps_squared", "ε² under the root", _squared),
    ("eps_rooted", "√ε under the root", _of_root),
    ("root_missing", "1/(mean + ε)", _not_rooted),
    ("root_in_bfloat16", "1/√ rounded to bfloat16", lambda m, eps: bfloat16(over_root(m, eps))),
    ("root_in_float16", "1/√ rounded to float16", lambda m, eps: float16(over_root(m, eps))),
)
MEANS = (
    ("of_absolute_values", "the mean of moduli", _of_absolute),
    ("centred", "the mean subtracted first, as LayerNorm", _centred),
    ("over_n_less_one", "Σ x²/(n − 1)", _less_one),
    ("over_the_batch", "the mean along the batch", _over_batch),
    ("of_first_row", "the first row's length for all", _of_first_row),
    ("first_64", "features beyond 64 not counted", _first_64),
    ("tail_lost", "features beyond a multiple of 4 not counted", _tail_lost),
    ("squares_in_float16", "squares in half precision, which overflow above 256", _squares_in_half),
    ("largest", "the largest square for the mean", _peak),
)


def _hard(z):
    return z * np.clip(z / 6 + z.dtype.type(0.5), 0, 1)


GATES = (
    ("sigmoid_gate", "σ(z) for silu(z)", sigmoid),
    ("relu_gate", "max(z, 0) for silu(z)", lambda z: np.maximum(z, 0)),
    ("gelu_gate", "z σ(1.702 z) for silu(z)", lambda z: z * sigmoid(z.dtype.type(1.702) * z)),
    ("hard_gate", "z clip(z/6 + 1/2, 0, 1) for silu(z)", _hard),
    ("gate_forgotten", "no gate", np.ones_like),
    ("gate_twice", "silu(silu(z))", lambda z: silu(silu(z))),
    ("gate_in_bfloat16", "silu(z) rounded to bfloat16", lambda z: bfloat16(silu(z))),
    ("gate_overflows", "z e^z/(1 + e^z): NaN above 88", lambda z: z * np.exp(z) / (1 + np.exp(z))),
    ("gate_cut", "silu as 0 below −20", lambda z: np.where(z < -20, 0, silu(z))),
    ("gate_linear", "silu as z above 6", lambda z: np.where(z > 6, z, silu(z))),
)
WEIGHTS = (
    ("weight_plus_one", "1 + w for w, as Gemma", lambda w: 1 + w),
    ("weight_forgotten", "no weight", np.ones_like),
    ("weight_of_first", "one weight for all", lambda w: 0 * w + w[..., :1]),
    ("weight_reversed", "w backwards", lambda w: w[..., ::-1]),
    ("weight_in_bfloat16", "w rounded to bfloat16", bfloat16),
)
NORMED_IN_BFLOAT16 = ("normed_in_bfloat16", "the normed row rounded to bfloat16", bfloat16)

AFTER = Planting(RMS_NORM_GATED, "float32")
BEFORE = Planting(GATED_RMS_NORM, "float32")
ALONE = Planting(L2_NORM, "float32")
for _planting, _form in ((AFTER, after), (BEFORE, before), (ALONE, alone)):
    _planting.usual()
    _norm = "sum" if _planting is ALONE else "mean"  # of squares, under the root
    _planting.plant(
        *((name, what.replace("mean", _norm), _form(rate=rate)) for name, what, rate in ROOTS)
    )
    _planting.plant(*((name, what, _form(mean=mean)) for name, what, mean in MEANS))
    _planting.plant(
        ("mean_or_sum", "a sum for the mean, or a mean for the sum", _form(mean=_other_count)),
        (*NORMED_IN_BFLOAT16[:2], _form(cast=bfloat16)),
        ("fixed_eps", "ε = 1e-5, whatever is asked for",
         Epsilon(1e-5, lambda e, form=_form: _fixed(e)(form))),
    )  # fmt: skip
for _planting, _form in ((AFTER, after), (BEFORE, before)):
    _planting.plant(*((name, what, _form(gate=gate)) for name, what, gate in GATES))
    _planting.plant(*((name, what, _form(weight=weight)) for name, what, weight in WEIGHTS))
    _planting.plant(
        ("padded_to_power", "divided by the next power of two", _form(mean=_padded_to_power)),
        ("gate_and_value_exchanged", "x and z exchanged",
         lambda right, x, z, *args, **statics: right(z, x, *args, **statics)),
    )  # fmt: skip


def _gated_first(right, x, z, w, *, eps):
    return before()(right, x, z, w, eps=eps, group=max(1, x.shape[-1]))


def _weight_first(right, x, z, w, *, eps):
    """The norm of w x."""
    return after(weight=np.ones_like)(right, x * w, z, w, eps=eps)


AFTER.plant(
    ("gate_before", "the gate before the norm, as Mamba-2", _gated_first),
    ("weight_before", "w x in the norm", _weight_first),
)


def _with_group(change):
    """Other groups than asked for."""

    def program(right, x, z, w, *, eps, group):
        return right(x, z, w, eps=eps, group=change(group, x.shape[-1]))

    return program


def _gated_last(right, x, z, w, *, eps, group):
    s = in_groups(x + 0 * z, group)
    y = normal(s, group, eps)
    return y.reshape(*y.shape[:-2], w.shape[-1]) * w * silu(z)


def _strided(right, x, z, w, *, eps, group):
    """Channels g, g + groups, … as one group: (d g) for (g d)."""
    n = x.shape[-1]
    order = np.arange(n).reshape(group, n // group).T.ravel()
    found = right(x[..., order], z[..., order], w[..., order], eps=eps, group=group)
    y = np.empty_like(found)
    y[..., order] = found
    return y


def _weights_of_a_group(right, x, z, w, *, eps, group):
    """The first group's weights for all groups."""
    return right(x, z, np.resize(w[..., :group], w.shape), eps=eps, group=group)


BEFORE.plant(
    ("gate_after", "the gate after the norm", _gated_last),
    ("groups_ignored", "one group of all channels", _with_group(lambda group, n: n)),
    ("groups_counted", "`group` taken as the number of groups",
     _with_group(lambda group, n: n // group)),
    ("groups_strided", "every so many channels a group", _strided),
    ("weight_of_first_group", "the first group's weights for all", _weights_of_a_group),
    ("gate_again", "the gate before and after the norm",
     lambda right, x, z, w, **statics: right(x, z, w, **statics) * silu(z)),
)  # fmt: skip
ALONE.plant(
    ("scaled", "multiplied by √n, as an RMS norm",
     lambda right, x, **statics: right(x, **statics) * np.sqrt(x.dtype.type(x.shape[-1]))),
    ("one_norm", "Σ |x| for the length",
     lambda right, x, *, eps: x / (np.abs(x).sum(-1, keepdims=True) + x.dtype.type(eps))),
    ("scaled_for_attention", "divided by √n", lambda right, x, **statics:
     right(x, **statics) / np.sqrt(x.dtype.type(x.shape[-1]))),
    ("not_normed", "x itself", instead(lambda x, **statics: x.copy())),
    ("all_rows_as_one", "the length of all rows together",
     alone(mean=lambda s, count: (s * s).sum(keepdims=True))),
)  # fmt: skip


# Gradients: parts of the right formula replaced


def _projected(g, y, rate, count, part=1.0):
    return rate * (g - g.dtype.type(part) * y * ((g * y).sum(-1, keepdims=True) / count))


def back_after(*, part=1.0, slope=silu_vjp, weight=same, rated=1, of_mean=lambda count: count):
    """The VJP of the gate after the norm."""

    def vjp(right, dy, x, z, w, *, eps):
        count = x.shape[-1]
        rate = over_root(mean_of_squares(x, count), eps)
        y, gate = x * rate, silu(z)
        g = dy * weight(w) * gate
        dx = _projected(g, y, rate**rated, of_mean(count), part)
        return unbroadcast_each((dx, slope(dy * w * y, z), dy * y * gate), (x, z, w))

    return vjp


def back_before(*, part=1.0, slope=silu_vjp, weight=same, rated=1, of_mean=lambda count: count):
    """The VJP of the gate before the norm."""

    def vjp(right, dy, x, z, w, *, eps, group):
        gate = silu(z)
        s = in_groups(x * gate, group)
        rate = over_root(mean_of_squares(s, group), eps)
        y = s * rate
        ds = _projected(
            in_groups(dy * weight(w), group), y, rate**rated, of_mean(group), part
        ).reshape(dy.shape)
        gradients = ds * gate, slope(ds * x, z), dy * y.reshape(dy.shape)
        return unbroadcast_each(gradients, (x, z, w))

    return vjp


def back_alone(*, part=1.0, rated=1, of_mean=lambda count: count, slope=None, weight=None):
    """The VJP of the length."""
    del slope, weight

    def vjp(right, dy, x, *, eps):
        rate = over_root(mean_of_squares(x, 1), eps)
        return unbroadcast_each((_projected(dy, x * rate, rate**rated, of_mean(1), part),), (x,))

    return vjp


def _first_of_batch(right, dy, x, z, w, **statics):
    """dw of the first row only."""
    dx, dz, _ = right(dy, x, z, w, **statics)
    only = np.concatenate([dy[:1], 0 * dy[1:]]) if dy.ndim > w.ndim else dy
    return dx, dz, right(only, x, z, w, **statics)[2]


def _mean_of_batch(right, dy, x, z, w, **statics):
    dx, dz, dw = right(dy, x, z, w, **statics)
    return dx, dz, dw / dw.dtype.type(max(1, dy.size // max(1, dw.size)))


def _weight_by_x(right, dy, x, z, w, **statics):
    """dw with x for the normed x."""
    dx, dz, _ = right(dy, x, z, w, **statics)
    return dx, dz, unbroadcast(dy * x * silu(z), w)


BACKS = ((AFTER, back_after), (BEFORE, back_before), (ALONE, back_alone))
for _planting, _back in BACKS:
    _planting.plant(
        ("projection_missing", "dx without the part along x", _back(part=0.0)),
        ("projection_halved", "half of the part along x", _back(part=0.5)),
        ("projection_twice", "twice the part along x", _back(part=2.0)),
        ("projection_sign", "the part along x added", _back(part=-1.0)),
        ("rate_missing", "dx without the factor 1/√", _back(rated=0)),
        ("rate_twice", "dx with the factor 1/√ twice", _back(rated=2)),
        ("sign", "dx with the other sign", {"x": np.negative}),
        ("float16", "the cotangent in float16", {"dy": float16}),
        ("rounded", "dx rounded to bfloat16", {"x": bfloat16}),
        by="gradient",
    )
for _planting, _back in BACKS[:2]:
    _planting.plant(
        ("projection_summed", "the sum for the mean in the part along x",
         _back(of_mean=lambda count: 1)),
        ("gate_slope", "dz with σ(z) for the slope of silu",
         _back(slope=lambda dy, z: dy * sigmoid(z))),
        ("gate_slope_of_sigmoid", "dz with σ(z) σ(−z) for the slope of silu",
         _back(slope=lambda dy, z: dy * sigmoid(z) * sigmoid(-z))),
        ("weight_forgotten", "dx without w", _back(weight=np.ones_like)),
        ("weights_of_first_batch", "dw of the first row only", _first_of_batch),
        ("weights_averaged", "dw averaged over the rows", _mean_of_batch),
        ("weights_of_x", "dw with x for the normed x", _weight_by_x),
        ("gate_zero", "dz = 0", of_result(lambda dx, dz, dw: (dx, 0 * dz, dw))),
        by="gradient",
    )  # fmt: skip
ALONE.plant(("projection_averaged", "the mean for the sum in the part along x",
             lambda right, dy, x, **statics: back_alone(of_mean=lambda _: x.shape[-1])(
                 right, dy, x, **statics)), by="gradient")  # fmt: skip
BEFORE.plant(("groups_ignored", "one group of all channels",
              lambda right, dy, x, z, w, *, eps, group:
              right(dy, x, z, w, eps=eps, group=x.shape[-1])), by="gradient")  # fmt: skip
BUGS = [*AFTER.bugs, *BEFORE.bugs, *ALONE.bugs]
