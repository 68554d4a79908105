"""Planted bugs in delta_dplr: formula, gates, what is removed, heads, rounding."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.linear_attention.low_rank import programs
from refssm.conformance.planted.linear_attention.programs import (
    but_for,
    earlier,
    outer,
    output,
    recalled,
    turned_if_square,
)
from refssm.conformance.planted.planting import Epsilon, InEach
from refssm.conformance.planted.recurrences import tiled
from refssm.conformance.planted.scan.pieces import in_any_form, late
from refssm.linear_attention.delta_dplr import (
    DELTA_DPLR,
    DELTA_DPLR_PACKED,
    DELTA_DPLR_PACKED_STATEFUL,
    DELTA_DPLR_STATEFUL,
    DELTA_DPLR_STATES,
    DELTA_DPLR_STEP,
)
from refssm.linear_attention.delta_dplr_chunked import (
    DELTA_DPLR_CHUNKED,
    DELTA_DPLR_CHUNKED_PACKED,
    DELTA_DPLR_CHUNKED_PACKED_STATEFUL,
    DELTA_DPLR_CHUNKED_STATEFUL,
)

PLAIN, STEP = (DELTA_DPLR,), (DELTA_DPLR_STEP,)
CHUNKED_FROM_STATES = (DELTA_DPLR_CHUNKED_STATEFUL, DELTA_DPLR_CHUNKED_PACKED_STATEFUL)
FROM_STATES = (DELTA_DPLR_STATEFUL, DELTA_DPLR_PACKED_STATEFUL, DELTA_DPLR_STATES,
               *CHUNKED_FROM_STATES)  # fmt: skip
CHUNKED = (DELTA_DPLR_CHUNKED, DELTA_DPLR_CHUNKED_STATEFUL, DELTA_DPLR_CHUNKED_PACKED)
SEQUENCES = (*PLAIN, DELTA_DPLR_STATEFUL, DELTA_DPLR_PACKED, *CHUNKED)
OTHERS = (*FROM_STATES, DELTA_DPLR_PACKED, DELTA_DPLR_CHUNKED, DELTA_DPLR_CHUNKED_PACKED)
EVERY = (*PLAIN, *STEP, *OTHERS)


def _updated(parts):
    """The next state from the decays times S, what is moved, and what is written."""

    def update(now, S):
        kept, moved, written = (
            now.gate[..., None] * S, outer(now.b, recalled(S, now.a)), outer(now.k, now.v)
        )  # fmt: skip
        return parts(now, S, kept, moved, written)

    return but_for(update=update)


def _moved(of):
    """b times another vector of values, of(step, S)."""
    return _updated(lambda now, S, kept, moved, written: kept + outer(now.b, of(now, S)) + written)


def _gate_of_values(now, S, kept, moved, written):
    gates = np.take(now.gate, np.arange(S.shape[-1]) % now.gate.shape[-1], axis=-1)
    return gates[..., None, :] * S + moved + written


def _removed_of_values(now, S, kept, moved, written):
    """(S b) aᵀ where the state is square."""
    if S.shape[-1] != S.shape[-2]:
        return kept + moved + written
    return kept + outer(programs.applied(S, now.b), now.a) + written


def _normalised(x, epsilon=0.0):
    size = np.sqrt((x**2).sum(-1, keepdims=True) + x.dtype.type(epsilon))
    return np.where(size > 0, x / np.where(size > 0, size, 1), x).astype(x.dtype)


def _rate(a, b):
    """η of b = −a ∘ η, 0 where a is 0."""
    return np.where(a == 0, 0, -b / np.where(a == 0, 1, a)).astype(b.dtype)


def _lost_at(size):
    return but_for(carry=lambda S, t: S * (t == 0 or t % size != 0))


def _at_chunks(x, size=64):
    first = (np.arange(x.shape[-2]) % size == 0)[:, None]
    return np.where(first, 0, x).astype(x.dtype)


def _start_only_decays(right, g):
    """What a reads is the state since the start: the first state decays, and nothing else."""
    y, S = right(g.but(S0=0 * g.S0))
    carried, last = right(g.but(v=0 * g.v, b=0 * g.b))
    return y + carried, S + last


def _tail(x, size=4):
    """Zeros for the entries beyond a multiple of `size`, if there is one block."""
    n = x.shape[-1]
    return np.where(np.arange(n) < (n // size * size or n), x, 0).astype(x.dtype)


OF_STEP_BEFORE = (
    ("query_late", "q of the step before: q_{t−1} for q_t",
     lambda earlier: lambda right, g: right(g.but(q=earlier(g.q, -2)))),
    ("key_late", "k of the step before: k_{t−1} for k_t",
     lambda earlier: lambda right, g: right(g.but(k=earlier(g.k, -2)))),
    ("removed_key_late", "a and b of the step before",
     lambda earlier: lambda right, g: right(g.but(a=earlier(g.a, -2), b=earlier(g.b, -2)))),
)  # fmt: skip
MISREAD = [
    (EVERY, "removed_of_decayed", "b (aᵀ diag(e^g) S): a reads the state after its decay",
     _moved(lambda now, S: recalled(now.gate[..., None] * S, now.a))),
    (EVERY, "removed_of_written", "a reads the state after the new value was written",
     _moved(lambda now, S: recalled(S + outer(now.k, now.v), now.a))),
    (EVERY, "exchanged", "a and b exchanged: a (bᵀ S)",
     lambda right, g: right(g.but(a=g.b, b=g.a))),
    (EVERY, "rate_forgotten", "b = κ̂ in place of κ̂ ∘ η: all of what is recalled is removed",
     lambda right, g: right(g.but(b=-g.a))),
    (EVERY, "removed_added", "−b (aᵀ S): κ̂ for −κ̂",
     lambda right, g: right(g.but(a=-g.a))),
    (EVERY, "not_removed", "b (aᵀ S) left out: only the decay is left",
     lambda right, g: right(g.but(b=0 * g.b))),
    (PLAIN + STEP, "removed_twice", "2 b (aᵀ S)", {"b": lambda b: 2 * b}),
    (PLAIN + STEP, "rate_twice", "κ̂ ∘ η²: the rate multiplied in once more",
     lambda right, g: right(g.but(b=g.b * _rate(g.a, g.b)))),
    (PLAIN + STEP, "rate_of_first_key", "one rate for all keys: that of the first",
     lambda right, g: right(g.but(b=-g.a * _rate(g.a, g.b)[..., :1]))),
    (PLAIN + STEP, "key_normalised", "k / ‖k‖", {"k": _normalised}),
    (PLAIN + STEP, "removed_key_normalised", "a / ‖a‖", {"a": _normalised}),
    (PLAIN, "both_normalised", "a and b divided by their norms: the rates lose their size",
     {"a": _normalised, "b": _normalised}),
    (PLAIN, "removed_key_with_epsilon", "a / √(‖a‖² + 1e-6)", Epsilon(
        1e-6, lambda e: lambda right, g: right(g.but(a=_normalised(g.a, e))))),
    (PLAIN + STEP, "decay_of_written", "the decay after k vᵀ was added: it multiplies this, too",
     _updated(lambda now, S, kept, moved, written: now.gate[..., None] * (S + written) + moved)),
    (PLAIN + STEP, "decay_of_moved", "the decay after b (aᵀ S) was added: it multiplies this, too",
     _updated(lambda now, S, kept, moved, written: now.gate[..., None] * (S + moved) + written)),
    (PLAIN + STEP, "decay_after", "the decay after all was added",
     _updated(lambda now, S, kept, moved, written: now.gate[..., None] * (S + moved + written))),
    (PLAIN + STEP, "gate_of_values", "the gate of key n for value n", _updated(_gate_of_values)),
    (PLAIN + STEP, "removed_of_values", "(S b) aᵀ where n = p", _updated(_removed_of_values)),
    (PLAIN + STEP, "written_with_b", "b vᵀ for k vᵀ: the value written with the removed key",
     _updated(lambda now, S, kept, moved, written: kept + moved + outer(now.b, now.v))),
    (PLAIN + STEP, "removed_with_k", "k (aᵀ S) for b (aᵀ S)",
     lambda right, g: right(g.but(b=np.broadcast_arrays(g.k, g.b)[0]))),
    (PLAIN + STEP, "delta_rule", "k (v + Sᵀ a)ᵀ: the delta rule of the written key",
     _updated(lambda now, S, kept, moved, written:
              kept + outer(now.k, now.v + recalled(S, now.a)))),
    (PLAIN + STEP, "read_by_query", "b (qᵀ S)", _moved(lambda now, S: recalled(S, now.q))),
    (PLAIN, "query_and_key_exchanged", "q and k exchanged",
     lambda right, g: right(g.but(q=g.k, k=g.q))),
    (EVERY, "read_before", "the state read before it is written, as RWKV-6 does",
     but_for(read=lambda S, before, now: before)),
    (PLAIN + STEP, "read_without_value", "the state read before k vᵀ is added", but_for(
        read=lambda S, before, now: S - outer(now.k, now.v))),
    (PLAIN + STEP, "query_scaled", "q / √n",
     {"q": lambda q: q / q.dtype.type(np.sqrt(q.shape[-1]))}),
    (PLAIN + STEP, "gate_not_exponentiated", "log_g taken for the gate",
     but_for(gates=lambda s: s)),
    (PLAIN + STEP, "gate_exponentiated_twice", "e^{−e^{log_g}}: log_g taken for RWKV's w",
     but_for(gates=lambda s: np.exp(-np.exp(s)))),
    (PLAIN + STEP, "gate_in_base_two", "2^log_g",
     {"log_g": lambda s: s * s.dtype.type(np.log(2))}),
    (PLAIN, "gate_clipped", "log_g clipped to −e^{−1/2}, the strongest decay of RWKV-7",
     {"log_g": lambda s: np.maximum(s, s.dtype.type(-np.exp(-0.5)))}),
    (PLAIN, "gate_clipped_at_5", "log_g clipped to −5", {"log_g": lambda s: np.maximum(s, -5)}),
    (PLAIN, "gate_late", "log_g_{t-1} for log_g_t",
     lambda right, g: right(g.but(log_g=earlier(g.log_g, -2)))),
    (PLAIN + STEP + OTHERS[:1], "gate_of_first_key", "the gate of the first key used for all keys",
     lambda right, g: right(g.but(log_g=np.broadcast_to(g.log_g[..., :1], g.log_g.shape)))),
    (PLAIN, "gate_mean", "one gate used for all keys: the mean of log_g", lambda right, g: right(
        g.but(log_g=np.broadcast_to(g.log_g.mean(-1, keepdims=True), g.log_g.shape)))),
    *(row for name, what, wrong in OF_STEP_BEFORE for row in late(SEQUENCES, name, what, wrong)),
    (PLAIN, "rate_late", "b of the step before", {"b": lambda b: earlier(b, -2)}),
    (PLAIN, "removed_alone_late", "a of the step before", {"a": lambda a: earlier(a, -2)}),
    (PLAIN, "value_late", "v_{t-1} for v_t", {"v": lambda v: earlier(v, -2)}),
    (PLAIN, "transposed_where_square", "the state read as (p, n) where p = n",
     but_for(read=lambda S, before, now: turned_if_square(S))),
    (FROM_STATES, "start_only_decays", "a does not read what comes from the first state: an "
     "initial state that only decays", _start_only_decays),
]  # fmt: skip
ROUNDING = [
    (PLAIN, "state_in_bfloat16", "the state kept in bfloat16", but_for(keep=bfloat16)),
    (PLAIN, "state_in_float16", "the state kept in float16", but_for(keep=float16)),
    (PLAIN, "removed_in_bfloat16", "aᵀ S rounded to bfloat16",
     _moved(lambda now, S: bfloat16(recalled(S, now.a)))),
    (PLAIN, "gates_in_bfloat16", "the decays rounded to bfloat16",
     but_for(gates=lambda s: bfloat16(np.exp(s)))),
    (PLAIN, "slow_gate_lost", "log_g above −1e-3 taken for 0",
     {"log_g": lambda s: np.where(s > -1e-3, 0, s).astype(s.dtype)}),
    (SEQUENCES, "carry_lost_64", "the state lost at blocks of 64", _lost_at(64)),
    (PLAIN, "carry_lost_16", "the state lost at blocks of 16", _lost_at(16)),
    (PLAIN, "carry_lost_256", "the state lost at blocks of 256", _lost_at(256)),
    (PLAIN, "first_chunk_only", "only the first 64 steps have a state before them",
     but_for(carry=lambda S, t: S * (t < 64))),
    (PLAIN, "gate_lost_at_chunks", "no gate at the first step of each chunk of 64",
     {"log_g": _at_chunks}),
    (PLAIN, "removed_lost_at_chunks", "nothing removed at the first step of each chunk of 64",
     {"b": _at_chunks}),
    (PLAIN + STEP, "keys_tail", "keys beyond a multiple of 4 left out", {"k": _tail}),
    (PLAIN + STEP, "removed_keys_tail", "entries of a beyond a multiple of 4 left out",
     {"a": _tail}),
]  # fmt: skip


def _tiled(x, heads):
    return tiled(x, heads.shape[:-2])


def _of_first_head(x):
    return np.broadcast_to(x[:, :, :1], x.shape) if x.ndim > 3 else x


HEADS = [
    (PLAIN + STEP, "groups_tiled", "head j reads the keys of j mod G, not of j // H",
     lambda right, g: right(g.but(q=_tiled(g.q, g.v), k=_tiled(g.k, g.v)))),
    (PLAIN, "groups_tiled_in_q", "queries tiled over the heads, keys repeated",
     lambda right, g: right(g.but(q=_tiled(g.q, g.v)))),
    *((PLAIN, f"first_head_{name}", f"{name} of a group's first head for all its heads",
       {name: _of_first_head}) for name in ("log_g", "a", "b")),
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
FORMULA.plant(((DELTA_DPLR_PACKED,), "later_value_read", "y_t also reads 1e-3 of v_{t+1}",
               output(lambda y, g: y + g.v.dtype.type(1e-3) * np.roll(g.v, -1, axis=-2))),
              by="causal")  # fmt: skip
