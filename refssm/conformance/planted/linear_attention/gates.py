"""Planted bugs in the gates of delta rules."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.activations import sigmoid, softplus
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import Planting, of_result
from refssm.linear_attention import GATED_DELTA_GATES, KIMI_GATES, KIMI_GATES_BOUNDED

HEADS, KEYS, BOUNDED = (
    Planting(op, "float32") for op in (GATED_DELTA_GATES, KIMI_GATES, KIMI_GATES_BOUNDED)
)
GATES = HEADS, KEYS, BOUNDED
for _planting in GATES:
    _planting.usual()


def _of_heads(decays):
    """Gates of heads with log_g = decays(a, A_log, dt_bias)."""

    def program(right, a, b, A_log, dt_bias):
        log_g, beta = right(a, b, A_log, dt_bias)
        return decays(a, A_log, dt_bias).astype(log_g.dtype) + 0 * log_g, beta

    return program


def _of_keys(decays):
    """Gates of keys with log_g = decays(a, A_log, dt_bias)."""
    return lambda right, a, A_log, dt_bias: decays(a, A_log[..., None], dt_bias).astype(a.dtype)


def _stepped(steps):
    """−e^{A_log} steps(a + dt_bias)."""
    return lambda a, A_log, dt_bias: -np.exp(A_log) * steps(a + dt_bias)


def _above(threshold):
    """softplus(x) = x above a threshold."""
    return _stepped(lambda v: np.where(v > threshold, v, softplus(v)))


def _in_base_two(v):
    """log₂(1 + 2^v)."""
    two = v.dtype.type(np.log(2))
    return softplus(v * two) / two


DECAYS = (
    ("bias_after", "the bias added after the softplus",
     lambda a, A_log, dt_bias: -np.exp(A_log) * (softplus(a) + dt_bias)),
    ("bias_missing", "the bias left out",
     lambda a, A_log, dt_bias: -np.exp(A_log) * softplus(a) + 0 * dt_bias),
    ("bias_subtracted", "a − dt_bias",
     lambda a, A_log, dt_bias: -np.exp(A_log) * softplus(a - dt_bias)),
    ("rate_not_exponentiated", "−A_log as the rate",
     lambda a, A_log, dt_bias: -A_log * softplus(a + dt_bias)),
    ("rate_inverted", "e^{−A_log}",
     lambda a, A_log, dt_bias: -np.exp(-A_log) * softplus(a + dt_bias)),
    ("rate_in_base_two", "2^{A_log}",
     lambda a, A_log, dt_bias: -np.exp2(A_log) * softplus(a + dt_bias)),
    ("rate_in_bfloat16", "e^{A_log} rounded to bfloat16",
     lambda a, A_log, dt_bias: -bfloat16(np.exp(A_log)) * softplus(a + dt_bias)),
    ("sign", "growth for decay",
     lambda a, A_log, dt_bias: np.exp(A_log) * softplus(a + dt_bias)),
    ("softplus_missing", "a + dt_bias without softplus", _stepped(lambda v: v)),
    ("softplus_cut", "max(v, 0) for softplus", _stepped(lambda v: np.maximum(v, 0))),
    ("softplus_in_float16", "softplus rounded to float16",
     _stepped(lambda v: float16(softplus(float16(v))))),
    ("softplus_in_base_two", "log₂(1 + 2^v)", _stepped(_in_base_two)),
    ("softplus_naive", "log(1 + e^v): no digits below −17",
     _stepped(lambda v: np.log(1 + np.exp(v)))),
    ("sigma_for_softplus", "σ for softplus", _stepped(sigmoid)),
    ("threshold_7", "softplus(v) = v above 7", _above(7)),
    ("decay_itself", "e^{log_g} for log_g",
     lambda a, A_log, dt_bias: np.exp(-np.exp(A_log) * softplus(a + dt_bias))),
)  # fmt: skip
LARGE = ("threshold_20", "softplus(v) = v above 20, in double precision, too", _above(20))
HEADS.plant(*((name, what, _of_heads(decays)) for name, what, decays in DECAYS))
KEYS.plant(*((name, what, _of_keys(decays)) for name, what, decays in DECAYS))
HEADS.plant((*LARGE[:2], _of_heads(LARGE[2])), by="value[float64]")
KEYS.plant((*LARGE[:2], _of_keys(LARGE[2])), by="value[float64]")


def _beta(change):
    """beta = change(b)."""

    def program(right, a, b, A_log, dt_bias):
        log_g, beta = right(a, b, A_log, dt_bias)
        return log_g, change(b).astype(beta.dtype) + 0 * beta

    return program


HEADS.plant(
    ("beta_not_squashed", "b for σ(b)", _beta(lambda b: b)),
    ("beta_doubled", "2σ(b), as where eigenvalues may be negative",
     _beta(lambda b: 2 * sigmoid(b))),
    ("beta_of_minus_b", "σ(−b)", _beta(lambda b: sigmoid(-b))),
    ("beta_by_tanh", "tanh(b)", _beta(np.tanh)),
    ("beta_in_bfloat16", "beta rounded to bfloat16", _beta(lambda b: bfloat16(sigmoid(b)))),
    ("a_and_b_exchanged", "a and b exchanged", lambda right, a, b, *rest: right(b, a, *rest)),
    ("outputs_exchanged", "beta before log_g", of_result(lambda log_g, beta: (beta, log_g))),
)  # fmt: skip


def _undone_rate(gradient, A_log):
    """A gradient without the factor e^{A_log}."""
    return gradient * np.exp(-A_log)


def _dA_log_of_rate(right, *args):
    *others, dA_log, ddt_bias = right(*args)
    return *others, _undone_rate(dA_log, args[-2]), ddt_bias


def _slope_missing(place):
    """Gradients of the softplus with the slope 1."""

    def program(right, *args):
        *gradients, ddt_bias = right(*args)
        a, A_log, dt_bias = args[place], args[-2], args[-1]
        rate = -np.exp(A_log) if A_log.ndim == dt_bias.ndim else -np.exp(A_log)[..., None]
        through, _ = unbroadcast_each((args[0] * rate + 0 * (a + dt_bias), dt_bias), (a, dt_bias))
        gradients[0] = through
        return *gradients, ddt_bias

    return program


COMMON = (
    ("dA_log_sign", "dA_log with the other sign", {"A_log": np.negative}),
    ("dA_log_missing", "dA_log = 0", {"A_log": np.zeros_like}),
    ("da_missing", "da = 0", {"a": np.zeros_like}),
    ("ddt_bias_missing", "ddt_bias = 0", {"dt_bias": np.zeros_like}),
    ("ddt_bias_in_float16", "ddt_bias rounded to float16", {"dt_bias": float16}),
    ("dA_log_of_rate", "the gradient of e^{A_log} for that of A_log", _dA_log_of_rate),
)


def _db_by_difference(right, dlog_g, dbeta, a, b, A_log, dt_bias):
    beta = sigmoid(b)
    da, _, *others = right(dlog_g, dbeta, a, b, A_log, dt_bias)
    return da, *unbroadcast_each((dbeta * beta * (1 - beta),), (b,)), *others


HEADS.plant(
    *COMMON,
    (
        "db_by_difference",
        "db = dbeta β (1 − β), as PyTorch's sigmoid: no digits where β is near 1",
        _db_by_difference,
    ),
    ("da_without_slope", "the slope of softplus taken as 1", _slope_missing(2)),
    ("db_missing", "db = 0", {"b": np.zeros_like}),
    ("dbeta_dropped", "dbeta left out", {"dbeta": np.zeros_like}),
    ("db_doubled", "db of 2σ(b)", {"b": lambda g: 2 * g}),
    by="gradient",
)
KEYS.plant(
    *COMMON,
    ("da_without_slope", "the slope of softplus taken as 1", _slope_missing(1)),
    ("dA_log_of_one_key", "dA_log of one key for the sum over keys",
     lambda right, dlog_g, a, A_log, dt_bias: (
         right(dlog_g, a, A_log, dt_bias)[0],
         right(dlog_g * (np.arange(a.shape[-1]) == 0), a, A_log, dt_bias)[1],
         right(dlog_g, a, A_log, dt_bias)[2])),
    by="gradient",
)  # fmt: skip


def _between(formula):
    """log_g = formula(a, slope, dt_bias, c)."""

    def program(right, a, A_log, dt_bias, *, c=-5.0):
        log_g = formula(a, np.exp(A_log)[..., None], dt_bias, a.dtype.type(c))
        return log_g.astype(a.dtype)

    return program


BOUNDED.plant(
    ("slope_missing", "σ(a + dt_bias)",
     _between(lambda a, s, bias, c: c * sigmoid(a + bias) + 0 * s)),
    ("slope_outside", "e^{A_log} σ(a + dt_bias)",
     _between(lambda a, s, bias, c: c * s * sigmoid(a + bias))),
    ("bias_after_slope", "σ(e^{A_log} a + dt_bias)",
     _between(lambda a, s, bias, c: c * sigmoid(s * a + bias))),
    ("bias_missing", "the bias left out",
     _between(lambda a, s, bias, c: c * sigmoid(s * a) + 0 * bias)),
    ("clipped", "max(−e^{A_log} softplus, c): clipped and not bent",
     _between(lambda a, s, bias, c: np.maximum(-s * softplus(a + bias), c))),
    ("five_always", "−5 whatever c is",
     _between(lambda a, s, bias, c: -5 * sigmoid(s * (a + bias)))),
    ("sign", "−c", _between(lambda a, s, bias, c: -c * sigmoid(s * (a + bias)))),
    ("sigma_of_minus", "σ(−z)", _between(lambda a, s, bias, c: c * sigmoid(-s * (a + bias)))),
    ("tanh_for_sigma", "tanh for σ", _between(lambda a, s, bias, c: c * np.tanh(s * (a + bias)))),
    ("bound_missing", "σ(z) without c", _between(lambda a, s, bias, c: sigmoid(s * (a + bias)))),
    ("sigma_in_bfloat16", "σ(z) rounded to bfloat16",
     _between(lambda a, s, bias, c: c * bfloat16(sigmoid(s * (a + bias))))),
    ("slope_in_bfloat16", "e^{A_log} rounded to bfloat16",
     _between(lambda a, s, bias, c: c * sigmoid(bfloat16(s) * (a + bias)))),
    ("argument_in_float16", "z rounded to float16",
     _between(lambda a, s, bias, c: c * sigmoid(float16(s * (a + bias))))),
    ("softplus_for_sigma", "c softplus(z)",
     _between(lambda a, s, bias, c: c * softplus(s * (a + bias)))),
)  # fmt: skip


def _bounded_back(dlog_g, a, A_log, dt_bias, c, slope_of):
    """The gradients with another slope of σ."""
    slope = np.exp(A_log)[..., None]
    z = slope * (a + dt_bias)
    dz = dlog_g * a.dtype.type(c) * slope_of(z)
    return unbroadcast_each((slope * dz, (z * dz).sum(-1), slope * dz), (a, A_log, dt_bias))


BOUNDED.plant(
    *COMMON[:5],
    ("slope_of_sigma", "σ(z) for its slope", lambda right, *args, c=-5.0:
     _bounded_back(*args, c, sigmoid)),
    ("slope_by_difference", "σ(z) (1 − σ(z)): no digits where σ is near 1",
     lambda right, *args, c=-5.0: _bounded_back(*args, c, lambda z: sigmoid(z) * (1 - sigmoid(z)))),
    ("c_missing", "the gradients of σ without c", lambda right, *args, c=-5.0:
     right(*args, c=-1.0)),
    ("da_without_slope", "da without e^{A_log}", lambda right, *args, c=-5.0: (
        _undone_slope(right(*args, c=c)[0], args[2]), *right(*args, c=c)[1:])),
    by="gradient",
)  # fmt: skip


def _undone_slope(da, A_log):
    return da * np.exp(-A_log)[..., None]
