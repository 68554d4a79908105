"""Planted bugs in mLSTM: gates, normaliser, scale, heads, rounding, states, resets."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import Epsilon, InEach
from refssm.conformance.planted.recurrences import RESETS, lasts, starts, tiled
from refssm.conformance.planted.scan.pieces import in_any_form, late
from refssm.conformance.planted.xlstm import programs
from refssm.conformance.planted.xlstm.programs import but_for, earlier, output
from refssm.xlstm import XLSTM

PLAIN, STATEFUL, PACKED, SEQUENCES, PLACES, STEP = ((op,) for op in XLSTM.operators)
BOTH = PLAIN + STEP
LATER = STATEFUL + PACKED + SEQUENCES + PLACES  # the other forms


def _over(d_of):
    """The output over another denominator, d_of(|a|, e^{−m})."""
    return but_for(divide=lambda num, a, m: num / d_of(np.abs(a), np.exp(-m))[..., None])


def _added(where):
    """A program with a small number in the denominator, where(|a|, e^{−m}, number)."""
    return lambda e: _over(lambda a, floor: where(a, floor, a.dtype.type(e)))


def _gated(f=None, g=None):
    """Other gates: f(now, m, m'), g(now, m, m')."""

    def gates(now, m, m_next):
        right = programs.gates(now, m, m_next)
        return f(now, m, m_next) if f else right[0], g(now, m, m_next) if g else right[1]

    return but_for(gates=gates)


def _normaliser(of):
    """Another sum of keys, of(now, s)."""

    def update(now, S, s):
        return programs.updated(now, S, s)[0], of(now, s)

    return but_for(update=update)


def _stale_scale(now, S, s, m):
    """m that begins at 0 with each block of 64, and no state brought to it."""
    return S, s, m * (now.t == 0 or now.t % 64 != 0)


def _lost(size, S=1, s=1, m=1):
    """Parts of the state lost at blocks."""

    def carry(now, *state):
        kept = now.t == 0 or now.t % size != 0
        return tuple(x if kept else x * part for x, part in zip(state, (S, s, m), strict=True))

    return but_for(carry=carry)


def _read_before(right, g):
    """y_t of the state before step t, over the right denominator."""

    def update(now, S, s):
        now.old = S
        return programs.updated(now, S, s)

    S, s, m, y = g.S0, g.s0, g.m0, []
    for now in programs.steps_of(g):
        S, s, m = programs.rested(now.resets, S, s, m)
        m_next = programs.scale(now, m)
        now.f, now.g = programs.gates(now, m, m_next)
        num = now.f[..., None] * programs.recalled(S, now.q)
        S, s = update(now, S, s)
        m = m_next
        y.append(programs.divided(num, programs.inner(s, now.q), m))
    return np.stack(y, axis=-2), S, s, m


def _logsigmoid(x):
    return -np.logaddexp(0, -x).astype(x.dtype)


def _sigmoid(now, m, m_next):
    """σ(i) for e^i."""
    return np.exp(_logsigmoid(now.i) - m_next)


def _root(n, like):
    return like.dtype.type(np.sqrt(n))


NORMALISER = [
    (BOTH + LATER, "floor_of_one", "max(|sᵀ q|, 1) in units of e^m: the 1 is not e^{−m}",
     _over(lambda a, floor: np.maximum(a, 1))),
    (BOTH + LATER, "modulus_missing", "max(sᵀ q, e^{−m}): no modulus",
     but_for(divide=lambda num, a, m: num / np.maximum(a, np.exp(-m))[..., None])),
    (BOTH, "floor_missing", "|sᵀ q|, no 1 below it", _over(lambda a, floor: a)),
    (BOTH, "normaliser_missing", "Sᵀ q, not divided",
     _over(lambda a, floor: floor)),
    (BOTH, "sum_for_maximum", "|sᵀ q| + e^{−m} for the larger of both",
     _over(lambda a, floor: a + floor)),
    (BOTH, "floor_of_e_to_m", "max(|sᵀ q|, e^m)", _over(lambda a, floor: np.maximum(a, 1 / floor))),
    (BOTH, "floor_clipped", "e^{−m} with m clipped to −5 … 5", but_for(
        divide=lambda num, a, m: programs.divided(num, a, np.clip(m, -5, 5)))),
    (BOTH + STATEFUL, "s_not_decayed", "s ← s + e^i k: the sum of keys does not decay", _normaliser(
        lambda now, s: s + now.g[..., None] * now.k)),
    (BOTH + STATEFUL, "s_without_input_gate", "s ← e^{log_f} s + k", _normaliser(
        lambda now, s: now.f[..., None] * s + now.k)),
    (BOTH, "s_of_unscaled_keys", "s of k √n, S of k", _normaliser(
        lambda now, s: now.f[..., None] * s
        + now.g[..., None] * now.k * _root(now.k.shape[-1], now.k))),
    (BOTH, "s_of_queries", "s of q, not of k", _normaliser(
        lambda now, s: now.f[..., None] * s + now.g[..., None] * now.q)),
    (PLAIN, "s_of_this_chunk", "s begins anew in each block of 64", _lost(64, s=0)),
]  # fmt: skip
EPSILONS = [
    (PLAIN + STEP, "epsilon_beside", "1e-6 added to max(|sᵀ q|, e^{−m})",
     Epsilon(1e-6, _added(lambda a, floor, e: np.maximum(a, floor) + e))),
    (PLAIN + STEP, "epsilon_on_floor", "1e-3 added to e^{−m} below |sᵀ q|",
     Epsilon(1e-3, _added(lambda a, floor, e: np.maximum(a, floor + e)))),
]  # fmt: skip
SCALES = [
    (BOTH + STATEFUL, "scale_of_step_before", "e^{log_f} and e^{i − m} with m of the step before",
     but_for(gates=lambda now, m, m_next: (np.exp(now.log_f), np.exp(now.i - m)))),
    (BOTH, "state_not_brought_to_scale", "e^{log_f} S: not times e^{m − m'} as m rises",
     _gated(f=lambda now, m, m_next: np.exp(now.log_f))),
    (BOTH, "input_gate_not_in_scale", "e^i for e^{i − m'}", _gated(g=lambda now, m, m_next:
                                                                  np.exp(now.i))),
    (PLAIN, "scale_of_input_gate", "m' = i: e^{log_f + m − i} overflows",
     but_for(scale=lambda now, m: now.i + 0 * m)),
    (BOTH, "scale_of_forget_gate", "m' = log_f + m: e^{i − m'} overflows",
     but_for(scale=lambda now, m: now.log_f + m)),
    (PLAIN, "unscaled", "m = 0 throughout: e^i overflows",
     but_for(scale=lambda now, m: 0 * (now.i + m))),
    (PLAIN + STATEFUL, "scale_not_carried", "m from 0 again in each block of 64, S as it was",
     but_for(carry=_stale_scale)),
]  # fmt: skip
GATES = [
    (BOTH + LATER, "input_gate_not_exponentiated", "i for e^i",
     _gated(g=lambda now, m, m_next: now.i * np.exp(-m_next))),
    (BOTH, "input_gate_logistic", "σ(i) for e^i", _gated(g=_sigmoid)),
    (BOTH + LATER, "forget_gate_twice", "logsigmoid(log_f): log_f was after logsigmoid already",
     {"log_f": _logsigmoid}),
    (BOTH, "forget_gate_not_logarithm", "e^{log_f} taken for log_f: a gate for its logarithm",
     {"log_f": np.exp}),
    (BOTH, "gates_in_base_two", "2^i and 2^log_f",
     lambda right, g: right(g.but(i=g.i * g.i.dtype.type(np.log(2)),
                                  log_f=g.log_f * g.i.dtype.type(np.log(2))))),
    (BOTH, "gates_exchanged", "i and log_f exchanged",
     lambda right, g: right(g.but(i=g.log_f, log_f=g.i))),
    (BOTH, "input_gate_capped", "15 tanh(i/15): the cap of the model, applied again",
     {"i": lambda i: (15 * np.tanh(i / 15)).astype(i.dtype)}),
    (BOTH, "forget_gate_on_write", "e^{log_f} (S + e^i k vᵀ): the forget gate on the new one, too",
     _gated(g=lambda now, m, m_next: np.exp(now.log_f + now.i - m_next))),
    (BOTH, "input_gate_on_keys_and_values", "e^{2i} k vᵀ in S, e^i k in s",
     lambda right, g: right(g.but(v=g.v * np.exp(g.i)[..., None]))),
    (BOTH, "write_one_minus_f", "(1 − e^{log_f}) e^i k vᵀ", _gated(
        g=lambda now, m, m_next: -np.expm1(now.log_f) * np.exp(now.i - m_next))),
    (PLAIN + STATEFUL, "forget_gate_late", "log_f of the step before",
     lambda right, g: right(g.but(log_f=earlier(g.log_f)))),
    (PLAIN, "input_gate_late", "i of the step before",
     lambda right, g: right(g.but(i=earlier(g.i)))),
    (PLAIN, "forget_gate_clipped", "log_f clipped to −5", {"log_f": lambda s: np.maximum(s, -5)}),
]  # fmt: skip
ARGUMENTS = [
    (BOTH, "key_scaled", "k / √n again", {"k": lambda k: k / _root(k.shape[-1], k)}),
    (BOTH, "key_unscaled", "k √n", {"k": lambda k: k * _root(k.shape[-1], k)}),
    (BOTH + LATER, "read_before", "Sᵀ q before the new value is written", _read_before),
    (BOTH, "exchanged", "q and k exchanged", lambda right, g: right(g.but(q=g.k, k=g.q))),
    *(row for name, what, wrong in (
        ("query_late", "q of the step before: q_{t−1} for q_t",
         lambda earlier: lambda right, g: right(g.but(q=earlier(g.q, -2)))),
        ("key_late", "k of the step before: k_{t−1} for k_t",
         lambda earlier: lambda right, g: right(g.but(k=earlier(g.k, -2)))))
      for row in late(PLAIN + LATER, name, what, wrong)),
    (PLAIN, "value_late", "v_{t-1} for v_t", {"v": lambda v: earlier(v, -2)}),
]  # fmt: skip
ROUNDING = [
    (PLAIN, "S_in_bfloat16", "S kept in bfloat16",
     but_for(keep=lambda S, s, m: (bfloat16(S), s, m))),
    (PLAIN, "s_in_bfloat16", "s kept in bfloat16",
     but_for(keep=lambda S, s, m: (S, bfloat16(s), m))),
    (PLAIN, "input_gate_in_bfloat16", "i rounded to bfloat16", {"i": bfloat16}),
    (PLAIN, "forget_gate_in_bfloat16", "log_f rounded to bfloat16", {"log_f": bfloat16}),
    (PLAIN, "carry_lost_64", "the state lost at blocks of 64", _lost(64, S=0, s=0)),
    (PLAIN + STATEFUL, "carry_lost_256", "the state lost at blocks of 256", _lost(256, S=0, s=0)),
    (PLAIN, "slow_gate_lost", "log_f above −1e-3 taken for 0",
     {"log_f": lambda s: np.where(s > -1e-3, 0, s).astype(s.dtype)}),
]  # fmt: skip


def _tiled(x, heads):
    return tiled(x, heads.shape[:-2])


def _of_first_head(x):
    return np.broadcast_to(x[:, :, :1], x.shape) if x.ndim > 3 else x


HEADS = [
    (PLAIN, "groups_tiled", "head j reads the keys of j mod G, not of j // H",
     lambda right, g: right(g.but(q=_tiled(g.q, g.v), k=_tiled(g.k, g.v)))),
    (PLAIN, "first_head_input_gate", "i of a group's first head for all its heads",
     {"i": _of_first_head}),
    (PLAIN, "first_head_forget_gate", "log_f of a group's first head for all its heads",
     {"log_f": _of_first_head}),
]  # fmt: skip
FORMULA = InEach(in_any_form(programs.in_form))
FORMULA.plant(*NORMALISER, *EPSILONS, *SCALES, *GATES, *ARGUMENTS, *ROUNDING, *HEADS)
FORMULA.plant(
    (PLAIN, "nan_spread", "masked by multiplication: 0 · NaN reaches the past",
     output(lambda y, g: y + 0 * g.v.sum(axis=-2, keepdims=True))),
    (STEP, "nan_spread", "NaN of one value in all",
     output(lambda y, g: y + 0 * g.v.sum(axis=-1, keepdims=True))),
    by="nan",
)  # fmt: skip
FORMULA.plant((PLAIN, "offset", "1e-12 added to every value",
               {"v": lambda v: v + v.dtype.type(1e-12)}), by="zero")  # fmt: skip
FORMULA.plant((PACKED, "later_value_read", "y_t also reads 1e-3 of v_{t+1}",
               output(lambda y, g: y + g.v.dtype.type(1e-3) * np.roll(g.v, -1, axis=-2))),
              by="causal")  # fmt: skip


def _ending(change):
    """The last state, change(S, s, m)."""

    def program(right, g):
        y, *state = right(g)
        return y, *change(*state)

    return program


def _one_early(right, g):
    y, *_ = right(g)
    number = g.q.shape[-2] - 1
    return y, *(right(g.at(slice(number)))[1:] if number else (g.S0, g.s0, g.m0))


STATE = InEach(programs.in_form)
STATE.plant(
    ("last_state_one_step_early", "the last state: that before the last step", _one_early),
    ("last_scale_zero", "zero for the last m, beside S in its units",
     _ending(lambda S, s, m: (S, s, 0 * m))),
    ("last_state_unscaled", "e^m S and e^m s returned beside m", _ending(
        lambda S, s, m: (S * np.exp(m)[..., None, None], s * np.exp(m)[..., None], m))),
    ("last_s_zero", "zeros for the last s", _ending(lambda S, s, m: (S, 0 * s, m))),
    ("last_s_in_bfloat16", "the last s rounded to bfloat16",
     _ending(lambda S, s, m: (S, bfloat16(s), m))),
    ("last_scale_in_float16", "the last m rounded to float16",
     _ending(lambda S, s, m: (S, s, float16(m)))),
    ("last_scale_of_step_before", "the last m of the step before, beside S in the new units",
     lambda right, g: (*right(g)[:3], _one_early(right, g)[3])),
    *lasts(core=2),
    of=STATEFUL, by="state",
)  # fmt: skip
STATE.plant(
    *starts("S0", core=2),
    ("start_s_ignored", "the first s taken as zero", {"s0": lambda x: 0 * x}),
    ("start_scale_ignored", "the first m taken as zero, S and s as they are",
     {"m0": lambda x: 0 * x}),
    ("start_undecayed", "the first state does not decay at the first step",
     lambda right, g: right(g.but(
         log_f=np.where(np.arange(g.log_f.shape[-1]) == 0, 0, g.log_f)))),
    of=STATEFUL,
)  # fmt: skip


def _kept_at_resets(part):
    """One part of the state is kept where a sequence begins."""

    def program(right, g):
        begins, whole = g.resets, g.but(resets=np.zeros_like(g.resets))

        def carry(now, *state):
            kept = list(programs.rested(begins[..., now.t], *state))
            kept[part] = state[part]
            return tuple(kept)

        return right(whole, carry=carry)

    return program


KINDS = ("ignored", "late", "early", "first_only", "last_only", "within_64", "at_block",
         "lost_at_64", "on_grid_16", "of_first_in_batch", "beside_a_reset_lost")  # fmt: skip
STATE.plant(
    *(row for row in RESETS if row[0].removeprefix("reset_") in KINDS),
    ("s_kept_at_reset", "s not dropped where a sequence begins", _kept_at_resets(1)),
    ("S_kept_at_reset", "S not dropped where a sequence begins", _kept_at_resets(0)),
    of=PACKED,
)  # fmt: skip


def _multiplied(right, g):
    """The state times 0 at a reset."""
    begins, whole = g.resets, g.but(resets=np.zeros_like(g.resets))

    def carry(now, S, s, m):
        kept = np.where(begins[..., now.t], 0, 1).astype(S.dtype)
        return S * kept[..., None, None], s * kept[..., None], m * kept

    return right(whole, carry=carry)


STATE.plant((PACKED, "nan_leaks", "the state times 0 at a reset: NaN comes through", _multiplied),
            by="nan")  # fmt: skip
