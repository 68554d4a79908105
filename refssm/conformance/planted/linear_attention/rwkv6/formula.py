"""Planted bugs in RWKV-6: what is read, bonus, decays, heads, rounding, first and last state."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.linear_attention.rwkv6 import programs
from refssm.conformance.planted.linear_attention.rwkv6.programs import (
    but_for,
    earlier,
    output,
    state_as,
    turned_if_square,
)
from refssm.conformance.planted.planting import InEach, of_result
from refssm.conformance.planted.recurrences import RESETS, lasts, starts, tiled
from refssm.conformance.planted.scan.pieces import in_any_form, late
from refssm.linear_attention.rwkv6 import RWKV6_RECURRENCE

PLAIN, STATEFUL, PACKED, _, _, STEP = ((op,) for op in RWKV6_RECURRENCE.operators)
IN_FORMS = RWKV6_RECURRENCE.operators[1:5]
ALL = (*PLAIN, *IN_FORMS, *STEP)


def _reading(read):
    """The matrix that r reads, from the step and the state."""
    return but_for(read=read)


def _of_values(x, p):
    """The number of key n for value n."""
    return np.take(x[..., 0], np.arange(p) % x.shape[-2], axis=-1)[..., None, :]


def _bonus_of_values(now, S):
    return S + _of_values(now.u, S.shape[-1]) * now.new


def _decay_of_values(now, S):
    return _of_values(now.a, S.shape[-1]) * S + now.new


def _bonus_from_step_before(right, g):
    """u k_{t-1} v_{t-1}ᵀ for u k_t v_tᵀ."""
    own, _ = right(g.but(S0=0 * g.S0), update=lambda now, S: 0 * now.new)
    k, v = earlier(g.k), earlier(g.v)
    other, _ = right(g.but(k=k, v=v, S0=0 * g.S0), update=lambda now, S: 0 * now.new)
    y, S = right(g)
    return y - own + other, S


def _in_memory(x):
    """Heads before time read as time before heads."""
    return np.swapaxes(x, -3, -2).reshape(x.shape) if x.ndim > 2 else x


# planted in the form by chunks, too
BONUS = [
    ("bonus_missing", "u forgotten: r reads the state alone", _reading(lambda now, S: S)),
    ("bonus_is_one", "u taken as 1: the state read after k vᵀ was added, without its decay",
     _reading(lambda now, S: S + now.new)),
    ("read_after", "the state read after the step, as gated linear attention does, without u",
     _reading(lambda now, S: now.a * S + now.new)),
    ("read_decayed", "the state decays before it is read: u k vᵀ + diag(e^log_w) S",
     _reading(lambda now, S: now.a * S + now.u * now.new)),
    ("bonus_on_state", "u multiplies the state that is read, too",
     _reading(lambda now, S: now.u * (S + now.new))),
    ("bonus_besides_one", "1 + u for u: the current step counts twice",
     _reading(lambda now, S: S + (1 + now.u) * now.new)),
    ("bonus_stored", "u k vᵀ for k vᵀ in the state, too",
     but_for(update=lambda now, S: now.a * S + now.u * now.new)),
    ("decay_on_new", "the decay multiplies the new k vᵀ, too",
     but_for(update=lambda now, S: now.a * (S + now.new))),
]  # fmt: skip
KEYED = [
    ("gate_of_first_key", "the decay of the first key used for all keys",
     lambda right, g: right(g.but(log_w=g.log_w[..., :1] + 0 * g.k))),
    ("gate_of_last_key", "the decay of the last key used for all keys",
     lambda right, g: right(g.but(log_w=g.log_w[..., -1:] + 0 * g.k))),
    ("gate_mean", "one decay used for all keys: the mean of log_w",
     lambda right, g: right(g.but(log_w=g.log_w.mean(-1, keepdims=True) + 0 * g.k))),
]  # fmt: skip
MISREAD = [
    *((ALL, *row) for row in (*BONUS, *KEYED)),
    (PLAIN + STATEFUL + STEP, "bonus_exponentiated", "e^u for u, as in RWKV-4",
     _reading(lambda now, S: S + np.exp(now.u) * now.new)),
    (PLAIN + STEP, "bonus_of_values", "u of key n for value n", _reading(_bonus_of_values)),
    (PLAIN + STEP, "bonus_of_first_key", "u of the first key for all keys",
     {"u": lambda u: np.broadcast_to(u[..., :1], u.shape)}),
    (PLAIN + STEP, "bonus_of_first_head", "u of the first head for all heads",
     {"u": lambda u: np.broadcast_to(u[..., :1, :], u.shape) if u.ndim > 1 else u}),
    (PLAIN + STATEFUL, "bonus_late", "u k_{t−1} v_{t−1}ᵀ for u k_t v_tᵀ", _bonus_from_step_before),
    (PLAIN + STEP, "gate_not_exponentiated", "log_w taken for the decay",
     but_for(gates=lambda s: s)),
    (ALL, "gate_exponentiated_twice", "e^(−e^log_w): log_w taken as w, of which RWKV makes −e^w",
     but_for(gates=lambda s: np.exp(-np.exp(s)))),
    (PLAIN + STEP, "gate_in_base_two", "2^log_w", {"log_w": lambda s: s * s.dtype.type(np.log(2))}),
    (PLAIN, "gate_late", "log_w_{t−1} for log_w_t",
     lambda right, g: right(g.but(log_w=earlier(g.log_w)))),
    (PLAIN, "gate_of_first_step", "the decay of the first step at all steps, as in RWKV-5",
     {"log_w": lambda s: np.broadcast_to(s[..., :1, :], s.shape)}),
    (PLAIN + STEP, "gate_of_values", "the decay of key n for value n",
     but_for(update=_decay_of_values)),
    (PLAIN + STEP, "gate_clipped", "log_w clipped to −5", {"log_w": lambda s: np.maximum(s, -5)}),
    (PLAIN + STEP, "receptance_scaled", "r / √n",
     {"r": lambda r: r / r.dtype.type(np.sqrt(r.shape[-1]))}),
    (PLAIN + STEP, "exchanged", "r and k exchanged",
     lambda right, g: right(g.but(r=g.k + 0 * g.r, k=g.r + 0 * g.k))),
    (PLAIN + STEP, "transposed_where_square", "the state read as (p, n) where p = n",
     _reading(lambda now, S: turned_if_square(S) + now.u * now.new)),
    (PLAIN, "value_late", "v_{t−1} for v_t", {"v": earlier}),
    (PLAIN + STATEFUL, "heads_before_time", "v with heads before time read as time before heads",
     {"v": _in_memory}),
    *late((*PLAIN, *IN_FORMS), "receptance_late", "r of the step before: r_{t−1} for r_t",
          lambda earlier: lambda right, g: right(g.but(r=earlier(g.r, -2)))),
    *late((*PLAIN, *IN_FORMS), "key_late", "k of the step before: k_{t−1} for k_t",
          lambda earlier: lambda right, g: right(g.but(k=earlier(g.k, -2)))),
]  # fmt: skip


def _lost_at(size):
    return but_for(carry=lambda S, t: S * (t == 0 or t % size != 0))


def _at_chunks(g, size=64):
    """No decay at the first step of a chunk: its sum begins anew after that step."""
    first = (np.arange(g.log_w.shape[-2]) % size == 0)[:, None]
    return g.but(log_w=np.where(first, 0, g.log_w))


def _tail(x, size=4):
    """Zeros for the entries beyond a multiple of `size`, if there is one block."""
    n = x.shape[-1]
    return np.where(np.arange(n) < (n // size * size or n), x, 0).astype(x.dtype)


ROUNDING = [
    (PLAIN, "state_in_bfloat16", "the state kept in bfloat16", but_for(keep=bfloat16)),
    (PLAIN, "state_in_float16", "the state kept in float16", but_for(keep=float16)),
    (PLAIN, "gate_in_bfloat16", "log_w rounded to bfloat16", {"log_w": bfloat16}),
    (PLAIN + STEP, "bonus_in_bfloat16", "u rounded to bfloat16", {"u": bfloat16}),
    (PLAIN, "slow_gate_lost", "log_w above −1e-3 taken for 0",
     {"log_w": lambda s: np.where(s > -1e-3, 0, s).astype(s.dtype)}),
    (PLAIN, "carry_lost_64", "the state lost at blocks of 64", _lost_at(64)),
    (PLAIN, "carry_lost_256", "the state lost at blocks of 256", _lost_at(256)),
    (PLAIN, "gate_lost_at_chunks", "no decay at the first step of each chunk of 64",
     lambda right, g: right(_at_chunks(g))),
    (PLAIN + STEP, "keys_tail", "keys beyond a multiple of 4 left out",
     lambda right, g: right(g.but(k=_tail(g.k)))),
]  # fmt: skip
HEADS = [
    (PLAIN + STEP, "groups_tiled", "head j reads the keys of j mod G, not of j // H",
     lambda right, g: right(g.but(r=tiled(g.r, g.v.shape[:-2]), k=tiled(g.k, g.v.shape[:-2])))),
    (PLAIN, "first_head_gate", "log_w of a group's first head for all its heads",
     {"log_w": lambda x: np.broadcast_to(x[:, :, :1], x.shape) if x.ndim > 3 else x}),
]  # fmt: skip
FORMULA = InEach(in_any_form(programs.in_form))
FORMULA.plant(*MISREAD, *ROUNDING, *HEADS)
FORMULA.plant(
    (PLAIN, "nan_spread", "masked by multiplication: 0 · NaN reaches the past",
     output(lambda y, g: y + 0 * g.v.sum(axis=-2, keepdims=True))),
    (STEP, "nan_spread", "NaN of one value in all",
     output(lambda y, g: y + 0 * g.v.sum(axis=-1, keepdims=True))),
    by="nan",
)  # fmt: skip
FORMULA.plant((PLAIN, "offset", "1e-12 added to every value",
               {"v": lambda v: v + v.dtype.type(1e-12)}), by="zero")  # fmt: skip
FORMULA.plant((PACKED, "later_value_read", "y_t also reads 1e-3 of v_{t+1}", output(
    lambda y, g: y + g.v.dtype.type(1e-3) * np.roll(g.v, -1, axis=-2))), by="causal")  # fmt: skip


def _ending(change):
    return of_result(lambda y, S: (y, change(S)))


def _one_early(right, g):
    y, S = right(g)
    number = g.r.shape[-2] - 1
    return y, right(g.at(slice(number)))[1] if number > 0 else g.S0 + 0 * S


def _last(g):
    """A mask that is true for the last step."""
    return (np.arange(g.r.shape[-2]) == g.r.shape[-2] - 1)[:, None]


STATE = InEach(programs.in_form)
STATE.plant(
    ("last_state_one_step_early", "the last state: S_{l−2}, which the last step reads", _one_early),
    ("last_state_transposed", "the last state: returned as (p, n) where p = n",
     _ending(turned_if_square)),
    ("last_state_from_rest", "the last state: as if S0 had been 0",
     state_as(lambda g: g.but(S0=0 * g.S0))),
    ("last_state_with_bonus", "the last state: its newest k vᵀ times u", lambda right, g: (
        right(g)[0], right(g.but(k=np.where(_last(g), g.u[..., None, :] * g.k, g.k)))[1])),
    ("last_state_undecayed", "the last state: the last decay left out",
     state_as(lambda g: g.but(log_w=np.where(_last(g), 0, g.log_w)))),
    *lasts(core=2),
    of=STATEFUL, by="state",
)  # fmt: skip
STATE.plant(
    *starts("S0", core=2),
    ("start_transposed", "S0 read as (p, n) where p = n", {"S0": turned_if_square}),
    ("start_of_first_head", "S0 that of the first head for all",
     {"S0": lambda S: np.broadcast_to(S[..., :1, :, :], S.shape) if S.ndim > 2 else S}),
    ("start_decayed", "S0 decays before the first step reads it", lambda right, g: right(
        g, read=lambda now, S: (now.a if now.first else 1) * S + now.u * now.new)),
    ("start_undecayed", "S0 does not decay at the first step", lambda right, g: right(
        g.but(log_w=np.where((np.arange(g.r.shape[-2]) == 0)[:, None], 0, g.log_w)))),
    of=STATEFUL,
)  # fmt: skip
KINDS = ("ignored", "late", "early", "first_only", "last_only", "within_64", "at_block",
         "lost_at_64", "on_grid_16", "of_first_in_batch", "beside_a_reset_lost")  # fmt: skip


def _multiplied(right, g):
    """The state times 0 at a reset."""
    kept = np.where(g.resets, 0, 1).astype(g.r.dtype)
    return right(g.but(resets=np.zeros_like(g.resets)),
                 carry=lambda S, t: S * kept[..., t, None, None])  # fmt: skip


def _dropped_after(right, g):
    """The state dropped after the first step of a sequence has read it."""
    own = right(g)[1]
    resets, zero = g.resets, np.zeros_like(g.resets)
    S, y = g.S0, []
    for t in range(g.r.shape[-2]):
        piece = g.at(slice(t, t + 1)).but(S0=S, resets=zero[..., t : t + 1])
        y.append(right(piece)[0])
        S = right(piece.but(S0=np.where(resets[..., t, None, None], 0, S)))[1]
    return np.concatenate(y, axis=-2), own


STATE.plant(
    *(row for row in RESETS if row[0].removeprefix("reset_") in KINDS),
    ("value_lost_at_reset", "the first value of a sequence is lost with the state",
     lambda right, g: right(g.but(v=np.where(g.resets[..., None], 0, g.v)))),
    ("reset_after_reading", "the first step of a sequence reads the state of the one before",
     _dropped_after),
    of=PACKED,
)  # fmt: skip
STATE.plant((PACKED, "nan_leaks", "the state times 0 at a reset: NaN comes through", _multiplied),
            by="nan")  # fmt: skip
