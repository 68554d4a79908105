"""Planted bugs of layers with gates around a recurrence: of order, of what is shared, of gates."""

import numpy as np

from refssm.activations import gelu, gelu_tanh, sigmoid, silu, softplus
from refssm.conformance.planted.layers.gates import with_operators
from refssm.conformance.planted.layers.parameters import planting
from refssm.conformance.planted.planting import instead
from refssm.layers._namespaces import bare
from refssm.layers._parts import bank
from refssm.layers._parts.heads import merged
from refssm.layers._parts.mixing import mapped
from refssm.layers.gated import gss, h3, mega_ema, rglru


def _wrapped(right, u, k):
    """A convolution that wraps around."""
    del right
    return bare().circular_convolution(u, k)


def _same(x, *others):
    return x


def _second(right, x):
    """x, for any function of it."""
    del right
    return x


def _written(k, v):
    """k vᵀ."""
    return h3._rows(k) * h3._columns(v)


def _of_h3(streams=_same, write=_written, after=_same, skip=lambda stored, v: stored,
           shifted="k"):  # fmt: skip
    """H3 with other streams (q, k, v), another product of keys and values, another function after
    the diagonal system, or another skip; `shifted`: which stream is shifted."""

    def program(u, *parameters):
        p, ops = h3.H3(*parameters), bare()
        filters = h3.prepared(ops, p, u.shape[-2])[0]
        x = dict(zip("qkv", streams(h3._streams(p, u)), strict=True))
        late = ops.short_convolution(x[shifted], p.C_shift) + p.D_shift[..., None] * x[shifted]
        x[shifted] = late
        stored = write(x["k"], x["v"])
        y = ops.causal_convolution(stored, filters.K[:, None, None, :])
        y = after(y + h3._of_heads(p.D) * skip(stored, x["v"]))
        return merged(h3.read(x["q"], y), p.W_out)

    return instead(program)


def _on_h3(**others):
    return with_operators(h3.H3_LAYER, **others)


def _stored_with_query(u, *parameters):
    """The diagonal system after the query."""
    p, ops = h3.H3(*parameters), bare()
    filters = h3.prepared(ops, p, u.shape[-2])[0]
    q, k, v = h3._streams(p, u)
    k = ops.short_convolution(k, p.C_shift) + p.D_shift[..., None] * k
    stored = _written(q * k, v)
    y = ops.causal_convolution(stored, filters.K[:, None, None, :]) + h3._of_heads(p.D) * stored
    return merged(h3.turned(y.sum(-3)), p.W_out)


def _bilinear(right, *args, l):
    """The kernel under the bilinear map."""
    del right
    return bare().diagonal_kernel_bilinear(*args, l=l)


H3 = planting("h3_layer")
H3.plant(
    ("query_stored", "the query is in what is stored", instead(_stored_with_query)),
    ("values_shifted", "the values are shifted, not the keys", _of_h3(shifted="v")),
    ("queries_shifted", "the queries are shifted, not the keys", _of_h3(shifted="q")),
    ("exchanged", "queries and keys are exchanged", _of_h3(lambda x: (x[1], x[0], x[2]))),
    ("keys_first", "the keys of the first head for all",
     _of_h3(lambda x: (x[0], 0 * x[1] + x[1][..., :1, :, :], x[2]))),
    ("added", "keys and values are added, not multiplied",
     _of_h3(write=lambda k, v: h3._rows(k) + h3._columns(v))),
    ("outer_transposed", "v kᵀ for k vᵀ", _of_h3(write=lambda k, v: _written(v, k))),
    ("elementwise", "k_i v_i in place of all k_i v_j",
     _of_h3(write=lambda k, v: _written(k, v) * np.eye(k.shape[-2], dtype=k.dtype)[..., None])),
    ("gelu", "GELU after the diagonal system, as in the layer of S4D", _of_h3(after=gelu)),
    ("skip_values", "the skip connection passes the values alone",
     _of_h3(skip=lambda stored, v: 0 * stored + h3._columns(v))),
    ("bilinear", "the bilinear map for zero-order hold", _on_h3(diagonal_kernel_zoh=_bilinear)),
    ("half", "the factor 2 of conjugate pairs is forgotten",
     _on_h3(diagonal_kernel_zoh=lambda right, *args, l: right(*args, l=l) / 2)),
    ("circular", "the convolution wraps around", _on_h3(causal_convolution=_wrapped)),
    ("kernel_first", "the kernel of the first head for all",
     _on_h3(causal_convolution=lambda right, u, k: right(u, 0 * k + k[:1]))),
)  # fmt: skip


def _on_rglru(**others):
    return with_operators(rglru.RGLRU_LAYER, **others)


def _recurrence(change):
    """The recurrent block with `change(u, r, i, a_param)` for its recurrence."""
    return _on_rglru(rg_lru=lambda right, *args: change(*args))


def _scanned(log_a, b):
    """x_t = a_t x_{t−1} + b_t."""
    return bare().linear_scan(np.exp(log_a), b)


def _log_decay(r, a_param):
    """log a."""
    return -8 * softplus(a_param) * r


def _root_linear(u, r, i, a_param):
    """√(1 − a) for √(1 − a²)."""
    log_a = _log_decay(r, a_param)
    return _scanned(log_a, np.sqrt(-np.expm1(log_a)) * (i * u))


def _decay_times_gate(u, r, i, a_param):
    """a r for a^r."""
    log_a = _log_decay(np.ones_like(r), a_param) + np.log(r)
    return _scanned(log_a, np.sqrt(-np.expm1(2 * log_a)) * (i * u))


def _gates_unfiltered(u, *parameters):
    """The gates read what the filter reads."""
    p, ops = rglru.RecurrentBlock(*parameters), bare()
    raw = rglru._mapped(u, p.W_u, p.b_u)
    v = ops.short_convolution(rglru.turned(raw), p.k) + p.k_bias[..., None]
    _, r, i, a_param = rglru._arguments(p, raw, rglru._logits(p, raw))
    x = ops.rg_lru(rglru.beside(rglru.turned(v)), r, i, a_param)
    gate = gelu(rglru._mapped(u, p.W_gate, p.b_gate))
    return merged(gate * rglru.split(x, *p.k_bias.shape), p.W_out) + p.b_out


RGLRU = planting("rglru_layer")
RGLRU.plant(
    ("root", "the input without √(1 − a²)",
     _recurrence(lambda u, r, i, a: _scanned(_log_decay(r, a), i * u))),
    ("root_linear", "√(1 − a) for √(1 − a²)", _recurrence(_root_linear)),
    ("unscaled_start", "the first input without √(1 − a²), as in published code",
     _recurrence(lambda *args: bare().rg_lru_unscaled_start(*args))),
    ("eighth", "a^r for a^{8r}", _recurrence(lambda u, r, i, a: bare().rg_lru(u, r / 8, i, a))),
    ("decay_times_gate", "a r for a^r", _recurrence(_decay_times_gate)),
    ("gates_exchanged", "the gates are exchanged",
     _recurrence(lambda u, r, i, a: bare().rg_lru(u, i, r, a))),
    ("input_ungated", "the gate of the input is forgotten",
     _recurrence(lambda u, r, i, a: bare().rg_lru(u, r, np.ones_like(i), a))),
    ("gates_unfiltered", "the gates read the input of the filter", instead(_gates_unfiltered)),
    ("filter_silu", "SiLU after the filter, as in Mamba",
     _on_rglru(short_convolution=lambda right, u, k: silu(right(u, k)))),
    ("gelu_tanh", "GELU by tanh", _on_rglru(gelu=lambda right, x: gelu_tanh(x))),
    ("gate_sigmoid", "σ for GELU", _on_rglru(gelu=lambda right, x: sigmoid(x))),
    ("gate_silu", "SiLU for GELU", _on_rglru(gelu=lambda right, x: silu(x))),
    ("gate_linear", "GELU is forgotten", _on_rglru(gelu=_second)),
)  # fmt: skip


def _on_gss(**others):
    return with_operators(gss.GSS_LAYER, **others)


def _of_gss(inside=gelu, gate=gelu, read=lambda p, y, x: y):
    """Gated state spaces with other activations, or another output of the system."""

    def program(u, *parameters):
        p, ops = gss.GSS(*parameters), bare()
        x = inside(mapped(u, p.W_u))
        K = gss.prepared(ops, p, u.shape[-2])[0].K
        y = read(p, bank.filtered(ops, K, p.D, x), x)
        return mapped(gate(mapped(u, p.W_gate)) * mapped(y, p.W_wide), p.W_out)

    return instead(program)


def _exponentials(right, w, C, dt, *, l):
    """The kernel without (e^w − 1)/w."""
    del right
    return bare().dss_exp_kernel(w, C * w / np.expm1(w), dt, l=l)


def _softmax(right, w, C, dt, *, l):
    """DSS-softmax for DSS-exp."""
    del right
    return bare().dss_softmax_kernel(w, C, dt, l=l)


def _of_lag_one(right, *args, l):
    """The kernel begins one step late."""
    K = right(*args, l=l)
    return np.concatenate([0 * K[..., :1], K[..., :-1]], axis=-1)


GSS = planting("gss_layer")
GSS.plant(
    ("gate_linear", "the gate without GELU", _of_gss(gate=_same)),
    ("gate_sigmoid", "σ for GELU in the gate", _of_gss(gate=sigmoid)),
    ("input_linear", "the input of the system without GELU", _of_gss(inside=_same)),
    ("gelu_tanh", "GELU by tanh", _of_gss(gelu_tanh, gelu_tanh)),
    ("silu", "SiLU for GELU", _of_gss(silu, silu)),
    ("output_gelu", "GELU after the system, as in the layer of S4D",
     _of_gss(read=lambda p, y, x: gelu(y))),
    ("twice", "a factor 2, as if modes had partners",
     _on_gss(dss_exp_kernel=lambda right, *args, l: 2 * right(*args, l=l))),
    ("imaginary", "the imaginary part for the real one",
     _on_gss(dss_exp_kernel=lambda right, *args, l: right(*args, l=l).imag)),
    ("exponentials", "the input without (e^w − 1)/w", _on_gss(dss_exp_kernel=_exponentials)),
    ("softmax", "the kernel of DSS-softmax", _on_gss(dss_exp_kernel=_softmax)),
    ("lag_one", "the kernel begins one step late", _on_gss(dss_exp_kernel=_of_lag_one)),
    ("circular", "the convolution wraps around", _on_gss(causal_convolution=_wrapped)),
)  # fmt: skip


def _on_mega(**others):
    return with_operators(mega_ema.MEGA_EMA_LAYER, **others)


def _average(decay=lambda p, s: 1 - p * s, weight=_same, scale=lambda n: n**-0.5):
    """Mega's average with other decays of p and σ(α), other weights of p and the decay, or another
    factor for n dimensions."""

    def kernel(right, delta, alpha, beta, gamma, *, l):
        del right
        p = sigmoid(delta)
        q = decay(p, sigmoid(alpha))
        powers = q[..., None] ** np.arange(l).astype(q.dtype)
        weights = delta.dtype.type(scale(max(1, q.shape[-1]))) * weight(p, q) * beta * gamma
        return (weights[..., None] * powers).sum(-2)

    return _on_mega(ema_kernel=kernel)


def _skip_outside(u, *parameters):
    """silu of the average alone, and ω u."""
    p, ops = mega_ema.MegaEMA(*parameters), bare()
    K = mega_ema.prepared(ops, p, u.shape[-2])[0].K
    return silu(bank.filtered(ops, K, 0 * p.omega, u)) + p.omega * u


MEGA_EMA = planting("mega_ema_layer")
MEGA_EMA.plant(
    ("linear", "SiLU is forgotten", _on_mega(silu=_second)),
    ("gelu", "GELU for SiLU", _on_mega(silu=lambda right, x: gelu(x))),
    ("skip_outside", "the skip connection after SiLU", instead(_skip_outside)),
    ("decay_damped", "σ(α)(1 − p) for 1 − σ(α) p", _average(lambda p, s: s * (1 - p))),
    ("decay_complement", "σ(α) p for 1 − σ(α) p", _average(lambda p, s: p * s)),
    ("weight_none", "the input without the weight p", _average(weight=lambda p, q: 1 + 0 * p)),
    ("weight_damped", "the input has the weight 1 − q", _average(weight=lambda p, q: 1 - q)),
    ("weight_decayed", "the newest input decays, too", _average(weight=lambda p, q: p * q)),
    ("sum", "the sum of the dimensions without 1/√n", _average(scale=lambda n: 1)),
    ("mean", "the mean of the dimensions", _average(scale=lambda n: 1 / n)),
    ("circular", "the convolution wraps around", _on_mega(causal_convolution=_wrapped)),
)  # fmt: skip

OF_GATED = [*H3.bugs, *RGLRU.bugs, *GSS.bugs, *MEGA_EMA.bugs]
