"""Planted bugs in the recurrences of linear attention: formula, gates, heads, rounding."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.linear_attention import programs
from refssm.conformance.planted.linear_attention.forms import (
    one_step,
    plain,
    sequences,
    with_states,
)
from refssm.conformance.planted.linear_attention.programs import (
    but_for,
    earlier,
    outer,
    output,
    recalled,
)
from refssm.conformance.planted.planting import InEach
from refssm.conformance.planted.recurrences import tiled
from refssm.conformance.planted.scan.pieces import in_any_form, late
from refssm.linear_attention.delta import DELTA
from refssm.linear_attention.gated_delta import GATED_DELTA
from refssm.linear_attention.gated_linear import GATED_LINEAR
from refssm.linear_attention.kimi import KIMI


def _in(form, *recurrences):
    return tuple(map(form, recurrences))


ALL = _in(plain, GATED_LINEAR, DELTA, GATED_DELTA, KIMI)
GATED = _in(plain, GATED_LINEAR, GATED_DELTA, KIMI)
KEYED = _in(plain, GATED_LINEAR, KIMI)
RULES = _in(plain, DELTA, GATED_DELTA, KIMI)
BOTH = _in(plain, GATED_DELTA, KIMI)  # a gate and a delta rule
STEPS = _in(one_step, GATED_LINEAR, DELTA, GATED_DELTA, KIMI)
GATED_STEPS = _in(one_step, GATED_LINEAR, GATED_DELTA, KIMI)
RULE_STEPS = _in(one_step, DELTA, GATED_DELTA, KIMI)
BOTH_STEPS = _in(one_step, GATED_DELTA, KIMI)
KEYED_STEPS = _in(one_step, GATED_LINEAR, KIMI)
LINEAR, RULE, OF_HEADS, OF_KEYS = ((op,) for op in ALL)
IN_FORMS, DELTAS_IN_FORMS, KEYED_IN_FORMS, GATED_IN_FORMS = (
    tuple(op for recurrence in recurrences for op in with_states(recurrence))
    for recurrences in (
        (GATED_LINEAR, DELTA, GATED_DELTA, KIMI),
        (DELTA, GATED_DELTA, KIMI),
        (GATED_LINEAR, KIMI),
        (GATED_LINEAR, GATED_DELTA, KIMI),
    )
)


def _written(missing):
    """Z and Z + k uᵀ, with u from the decayed state, the one before, and the step."""

    def update(now, S):
        Z = now.a[..., None] * S
        return Z, Z + outer(now.k, missing(now, Z, S))

    return but_for(update=update)


def _decay_after(now, S):
    """The delta rule, or the sum, before the decay."""
    missing = now.v
    if now.beta is not None:
        missing = now.beta * (now.v - recalled(S, now.k))
    return S, now.a[..., None] * (S + outer(now.k, missing))


def _decay_of_values(now, S):
    """The gate of key n for value n."""
    gates = np.take(now.a, np.arange(S.shape[-1]) % now.a.shape[-1], axis=-1)
    Z = gates[..., None, :] * S
    missing = now.v if now.beta is None else now.beta * (now.v - recalled(Z, now.k))
    return Z, Z + outer(now.k, missing)


def _both_corrected(now, S):
    """The old value taken away with the rate 1, whatever β is."""
    return now.beta * now.v - recalled(S, now.k)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _normalised(x):
    return x / np.sqrt((x**2).sum(-1, keepdims=True) + x.dtype.type(1e-6))


def _at_chunks(g, size=64):
    """No gate at the first step of a chunk: its sum begins anew after that step."""
    first = (np.arange(g.log_g.shape[-2]) % size == 0)[:, None]
    return g.but(log_g=np.where(first, 0, g.log_g))


def _lost_at(size):
    return but_for(carry=lambda S, t: S * (t == 0 or t % size != 0))


def _tail(x, size=4):
    """Zeros for the entries beyond a multiple of `size`, if there is one block."""
    n = x.shape[-1]
    return np.where(np.arange(n) < (n // size * size or n), x, 0).astype(x.dtype)


# planted in the forms by chunks, too
BETA_ON_VALUE_ONLY = (
    "beta_missing_on_correction", "β v − Sᵀ k: β multiplies v only, not what is taken away",
    _written(lambda now, Z, S: _both_corrected(now, Z)))  # fmt: skip
READ_BEFORE = (
    "read_before", "the state read before it is written",
    but_for(read=lambda S, Z, before: before + 0 * S))  # fmt: skip
GATES_OF_KEYS = (
    ("gate_of_first_key", "the gate of the first key used for all keys",
     lambda right, g: right(g.but(log_g=g.log_g[..., :1]))),
    ("gate_of_last_key", "the gate of the last key used for all keys",
     lambda right, g: right(g.but(log_g=g.log_g[..., -1:]))),
    ("gate_mean", "one gate used for all keys: the mean of log_g",
     lambda right, g: right(g.but(log_g=g.log_g.mean(-1, keepdims=True)))),
)  # fmt: skip
OF_STEP_BEFORE = (
    ("query_late", "q of the step before: q_{t−1} for q_t",
     lambda earlier: lambda right, g: right(g.but(q=earlier(g.q, -2)))),
    ("key_late", "k of the step before: k_{t−1} for k_t",
     lambda earlier: lambda right, g: right(g.but(k=earlier(g.k, -2)))),
)  # fmt: skip
MISREAD = [
    (BOTH + BOTH_STEPS, "correction_of_undecayed", "v − S_{t-1}ᵀ k: what the state recalled before "
     "it decayed", _written(lambda now, Z, S: now.beta * (now.v - recalled(S, now.k)))),
    (GATED + GATED_STEPS, "decay_after", "the gate applied after the new value was written",
     but_for(update=_decay_after)),
    (RULES + RULE_STEPS + DELTAS_IN_FORMS, *BETA_ON_VALUE_ONLY),
    (RULES + RULE_STEPS + DELTAS_IN_FORMS, "beta_missing_on_value",
     "v − β Sᵀ k: β multiplies only what is taken away, not v",
     _written(lambda now, Z, S: now.v - now.beta * recalled(Z, now.k))),
    (RULES + RULE_STEPS, "no_correction", "β v written, nothing taken away",
     _written(lambda now, Z, S: now.beta * now.v)),
    (RULES + RULE_STEPS, "corrected_by_query", "v − Sᵀ q",
     _written(lambda now, Z, S: now.beta * (now.v - recalled(Z, now.q)))),
    (RULES + RULE_STEPS, "beta_twice", "β² for β",
     _written(lambda now, Z, S: now.beta * now.beta * (now.v - recalled(Z, now.k)))),
    (BOTH, "gate_on_correction_twice", "v − e^g Zᵀ k", _written(
        lambda now, Z, S: now.beta * (now.v - recalled(now.a[..., None] * Z, now.k)))),
    (RULES + RULE_STEPS, "beta_through_sigmoid", "σ(β): the rate was after σ already",
     {"beta": _sigmoid}),
    (RULES + RULE_STEPS, "beta_doubled", "2 β: negative eigenvalues allowed twice",
     {"beta": lambda b: 2 * b}),
    (RULE + OF_HEADS, "beta_clipped", "β clipped to 1", {"beta": lambda b: np.minimum(b, 1)}),
    (RULES, "beta_late", "β_{t-1} for β_t", {"beta": earlier}),
    (ALL + STEPS + IN_FORMS, *READ_BEFORE),
    (BOTH + LINEAR + GATED_STEPS + GATED_IN_FORMS, "read_decayed",
     "the decayed state read, before the new value is written",
     but_for(read=lambda S, Z, before: Z)),
    (ALL + STEPS, "query_scaled", "q / √n",
     {"q": lambda q: q / q.dtype.type(np.sqrt(q.shape[-1]))}),
    (LINEAR + OF_HEADS + STEPS, "query_normalised", "q / ‖q‖", {"q": _normalised}),
    (ALL + STEPS, "key_normalised", "k / ‖k‖", {"k": _normalised}),
    (LINEAR + OF_HEADS + STEPS[:1], "exchanged", "q and k exchanged",
     lambda right, g: right(g.but(q=g.k, k=g.q))),
    (GATED + GATED_STEPS, "gate_not_exponentiated", "log_g taken for the gate",
     but_for(gates=lambda s: s)),
    (GATED + GATED_STEPS, "gate_in_base_two", "2^log_g",
     {"log_g": lambda s: s * s.dtype.type(np.log(2))}),
    (OF_HEADS + GATED_STEPS, "gate_before_sigmoid", "e^{logσ(log_g)}: a gate taken as its logit",
     but_for(gates=_sigmoid)),
    (GATED, "gate_late", "log_g_{t-1} for log_g_t",
     lambda right, g: right(g.but(log_g=earlier(g.log_g, -2)))),
    *((KEYED + KEYED_STEPS + KEYED_IN_FORMS, *row) for row in GATES_OF_KEYS),
    *(row for name, what, wrong in OF_STEP_BEFORE
      for row in late(ALL + IN_FORMS, name, what, wrong)),
    (KEYED + GATED_STEPS[::2], "gate_of_values", "the gate of key n for value n",
     but_for(update=_decay_of_values)),
    (GATED + GATED_STEPS, "gate_clipped", "log_g clipped to −5",
     {"log_g": lambda s: np.maximum(s, -5)}),
    (ALL, "transposed_where_square", "the state read as (p, n) where p = n",
     but_for(read=lambda S, Z, before: programs.turned_if_square(S))),
    (LINEAR + RULE, "value_late", "v_{t-1} for v_t", {"v": lambda v: earlier(v, -2)}),
    (LINEAR, "value_normalised", "y divided by the sum of weights, as linear attention is", output(
        lambda y, g: y / programs.recurrence(g.but(v=np.ones_like(g.v)))[0])),
]  # fmt: skip
ROUNDING = [
    (ALL, "state_in_bfloat16", "the state kept in bfloat16", but_for(keep=bfloat16)),
    (LINEAR + OF_HEADS, "state_in_float16", "the state kept in float16", but_for(keep=float16)),
    (GATED, "gate_in_bfloat16", "log_g rounded to bfloat16", {"log_g": bfloat16}),
    (RULES, "beta_in_bfloat16", "β rounded to bfloat16", {"beta": bfloat16}),
    (RULES, "correction_in_bfloat16", "v − Sᵀ k rounded to bfloat16", _written(
        lambda now, Z, S: now.beta * bfloat16(now.v - recalled(Z, now.k)))),
    (GATED, "slow_gate_lost", "log_g above −1e-3 taken for 0",
     {"log_g": lambda s: np.where(s > -1e-3, 0, s).astype(s.dtype)}),
    (ALL, "carry_lost_64", "the state lost at blocks of 64", _lost_at(64)),
    (OF_HEADS + RULE, "carry_lost_256", "the state lost at blocks of 256", _lost_at(256)),
    (GATED, "gate_lost_at_chunks", "no gate at the first step of each chunk of 64",
     lambda right, g: right(_at_chunks(g))),
    (ALL + STEPS, "keys_tail", "keys beyond a multiple of 4 left out",
     lambda right, g: right(g.but(k=_tail(g.k)))),
]  # fmt: skip


def _tiled(x, heads):
    return tiled(x, heads.shape[:-2])


def _of_first_head(x):
    return np.broadcast_to(x[:, :, :1], x.shape) if x.ndim > 3 else x


HEADS = [
    (ALL + STEPS, "groups_tiled", "head j reads the keys of j mod G, not of j // H",
     lambda right, g: right(g.but(q=_tiled(g.q, g.v), k=_tiled(g.k, g.v)))),
    (LINEAR + OF_HEADS, "groups_tiled_in_q", "queries tiled over the heads, keys repeated",
     lambda right, g: right(g.but(q=_tiled(g.q, g.v)))),
    (GATED, "first_head_gate", "log_g of a group's first head for all its heads",
     {"log_g": _of_first_head}),
    (RULES, "first_head_beta", "β of a group's first head for all its heads",
     {"beta": _of_first_head}),
]  # fmt: skip

FORMULA = InEach(in_any_form(programs.in_form))
FORMULA.plant(*MISREAD, *ROUNDING, *HEADS)
FORMULA.plant(
    (ALL, "nan_spread", "masked by multiplication: 0 · NaN reaches the past",
     output(lambda y, g: y + 0 * g.v.sum(axis=-2, keepdims=True))),
    (STEPS, "nan_spread", "NaN of one value in all",
     output(lambda y, g: y + 0 * g.v.sum(axis=-1, keepdims=True))),
    by="nan",
)  # fmt: skip
FORMULA.plant((ALL, "offset", "1e-12 added to every value",
               {"v": lambda v: v + v.dtype.type(1e-12)}), by="zero")  # fmt: skip
for _recurrence in (GATED_LINEAR, DELTA, GATED_DELTA, KIMI):
    *_, _packed = sequences(_recurrence)
    FORMULA.plant(((_packed,), "later_value_read", "y_t also reads 1e-3 of v_{t+1}",
                   output(lambda y, g: y + g.v.dtype.type(1e-3) * np.roll(g.v, -1, axis=-2))),
                  by="causal")  # fmt: skip
