"""Planted bugs in Mamba-3: trapezoid, angles, turned pairs, heads, rounding, states, resets."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.mamba3 import programs
from refssm.conformance.planted.mamba3.programs import but_for, earlier, output, rotated, share
from refssm.conformance.planted.planting import InEach
from refssm.conformance.planted.recurrences import RESETS, lasts, starts, tiled
from refssm.conformance.planted.scan.pieces import in_any_form, late
from refssm.mamba3 import MAMBA3_SISO_RECURRENCE

PLAIN, STATEFUL, PACKED, SEQUENCES, PLACES, STEP = (
    (op,) for op in MAMBA3_SISO_RECURRENCE.operators
)
BOTH = PLAIN + STEP
LATER = STATEFUL + PACKED + SEQUENCES + PLACES  # the other forms


def _weighed(before=None, now=None):
    """Other weights: before(now) for β, now(now) for γ."""

    def weigh(step):
        a, b, c = programs.weights(step)
        return a, before(step) if before else b, now(step) if now else c

    return but_for(weigh=weigh)


def _turned_again(now, S, key, value):
    """The key of the step before, turned by this step's angle."""
    return programs.updated(now, S, rotated(key, programs.rate(now)), value)


def _last_value_now(now, S, key, value):
    """β k'_{t-1} v_t: this step's value in both terms."""
    return programs.updated(now, S, key, now.v)


def _last_key_now(now, S, key, value):
    """β k'_t v_{t-1}."""
    return programs.updated(now, S, now.k_t, value)


def _decayed_twice(now, S, key, value):
    """α (S + β key valueᵀ): β has α already."""
    both = S + programs.outer(now.before[..., None] * key, value)
    own = programs.outer(now.now[..., None] * now.k_t, now.v)
    return now.a[..., None, None] * both + own


def _without_share(now):
    """½ for λ."""
    return now.dt / 2 * np.exp(now.log_g)


def _with_old_weights(right, g):
    """β_t from λ_{t-1} and Δ_{t-1}."""
    old_dt, old_trap = earlier(g.dt), earlier(g.trap)

    def weigh(now):
        a, _, own = programs.weights(now)
        return a, (1 - share(old_trap[..., now.t])) * old_dt[..., now.t] * a, own

    return right(g, weigh=weigh)


TRAPEZOID = [
    (BOTH + LATER, "before_without_decay", "β = (1 − λ) Δ: no α",
     _weighed(before=lambda now: (1 - share(now.trap)) * now.dt)),
    (BOTH + LATER, "shares_exchanged", "λ and 1 − λ exchanged", _weighed(
        before=lambda now: share(now.trap) * now.dt * np.exp(now.log_g),
        now=lambda now: (1 - share(now.trap)) * now.dt)),
    (BOTH + LATER, "before_missing", "β = 0: the rule of Mamba-2, γ = λ Δ",
     _weighed(before=lambda now: 0 * now.dt)),
    (BOTH, "as_euler", "β = 0 and γ = Δ: the rule of Mamba-2",
     _weighed(before=lambda now: 0 * now.dt, now=lambda now: now.dt + 0 * now.trap)),
    (BOTH, "fixed_share", "λ = ½: the classical trapezoid", _weighed(
        before=_without_share, now=lambda now: now.dt / 2)),
    (BOTH, "share_before_logistic", "trap for σ(trap)", _weighed(
        before=lambda now: (1 - now.trap) * now.dt * np.exp(now.log_g),
        now=lambda now: now.trap * now.dt)),
    (BOTH, "share_logistic_twice", "σ(σ(trap))", lambda right, g: right(g.but(
        trap=share(g.trap).astype(g.trap.dtype)))),
    (BOTH + STATEFUL, "step_missing", "γ = λ: no Δ",
     _weighed(now=lambda now: share(now.trap) + 0 * now.dt)),
    (BOTH, "before_without_step", "β = (1 − λ) α: no Δ",
     _weighed(before=lambda now: (1 - share(now.trap)) * np.exp(now.log_g))),
    (BOTH, "before_decayed_twice", "α (S + β key valueᵀ): β has α already",
     but_for(update=_decayed_twice)),
    (BOTH, "now_decayed", "γ = λ Δ α", _weighed(
        now=lambda now: share(now.trap) * now.dt * np.exp(now.log_g))),
    (BOTH, "last_value_of_this_step", "v_t for v_{t-1} in the term of the step before",
     but_for(update=_last_value_now)),
    (BOTH, "last_key_of_this_step", "k'_t for k'_{t-1} in the term of the step before",
     but_for(update=_last_key_now)),
    (BOTH, "last_key_turned_again", "k'_{t-1} turned once more, by this step's angle",
     but_for(update=_turned_again)),
    (BOTH, "last_key_not_turned", "k_{t-1} without its angle in the term of the step before",
     but_for(update=lambda now, S, key, value: programs.updated(
         now, S, programs.turns_back(key, now.phase - programs.rate(now)), value))),
    (PLAIN + STATEFUL, "weight_of_step_before", "β with λ and Δ of the step before",
     _with_old_weights),
]  # fmt: skip


def _halves(x, phase):
    """Number n turned with number n + half: pairs of the other convention."""
    c, s, half = np.cos(phase), np.sin(phase), x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return np.concatenate([first * c - second * s, first * s + second * c], axis=-1)


def _keys_only(right, g):
    return right(g, turn_q=lambda q, phase: q + 0 * phase.repeat(2, -1))


def _lost(size, *parts):
    """Parts of the state lost at blocks."""

    def carry(now, *state):
        kept = now.t == 0 or now.t % size != 0
        pairs = zip(state, programs.PARTS, strict=True)
        return [x if kept or name not in parts else 0 * x for x, name in pairs]

    return but_for(carry=carry)


def _late_angles(right, g):
    """The move of the step before."""
    moves = earlier(programs.rate(g), -2)
    return right(g, move=lambda now: moves[..., now.t, :])


def _moving(of):
    """Another change of the angles, of(now)."""
    return but_for(move=lambda now: of(now).astype(now.angles.dtype))


ANGLES = [
    (BOTH + LATER, "turned_back", "q and k turned the other way",
     but_for(move=lambda now: -programs.rate(now))),
    (BOTH + LATER, "queries_turned_back", "q turned the other way, k as it should",
     but_for(turn_q=programs.turns_back)),
    (BOTH, "queries_not_turned", "q as it is, k turned", _keys_only),
    (BOTH + LATER, "angle_without_step", "π tanh(angles), not times Δ",
     _moving(lambda now: np.pi * np.tanh(now.angles) + 0 * now.dt[..., None])),
    (BOTH, "angle_without_tanh", "π angles Δ", _moving(
        lambda now: np.pi * now.angles * now.dt[..., None])),
    (BOTH, "angle_without_pi", "tanh(angles) Δ", _moving(
        lambda now: np.tanh(now.angles) * now.dt[..., None])),
    (BOTH, "angle_two_pi", "2π tanh(angles) Δ", _moving(
        lambda now: 2 * np.pi * np.tanh(now.angles) * now.dt[..., None])),
    (BOTH, "angle_of_logistic", "π σ(angles) Δ", _moving(
        lambda now: np.pi * share(now.angles) * now.dt[..., None])),
    (STEP + STATEFUL + PLAIN, "angle_not_carried", "the angle of this step alone, not the sum",
     but_for(carry=lambda now, phase, *others: (0 * phase, *others))),
    (BOTH, "halves_turned", "number n paired with number n + half, not with its neighbour",
     but_for(turn=_halves)),
    (PLAIN + STATEFUL, "angle_late", "q and k turned by the angle before the step", _late_angles),
    (PLAIN + STATEFUL, "angle_lost_64", "the sum of angles begins anew at blocks of 64",
     _lost(64, "phase")),
    (PLAIN + STATEFUL, "last_pair_lost_64", "the last key and value lost at blocks of 64",
     _lost(64, "key", "value")),
    (PLAIN + STATEFUL, "state_lost_64", "S lost at blocks of 64", _lost(64, "S")),
    (PLAIN, "state_lost_256", "S lost at blocks of 256", _lost(256, "S")),
    (PLAIN, "angle_in_half_turn", "angles taken modulo π", but_for(
        wrap=lambda phase: np.mod(phase, np.pi).astype(phase.dtype))),
    (PLAIN, "turn_of_six", "6.28 for 2π in the remainder", but_for(
        wrap=lambda phase: np.mod(phase, 6.28).astype(phase.dtype))),
    (PLAIN, "angles_in_bfloat16", "the rates rounded to bfloat16",
     {"angles": bfloat16}),
    (PLAIN, "phase_in_bfloat16", "the sum of angles kept in bfloat16", but_for(
        keep=lambda now, phase, *others: (bfloat16(phase), *others))),
    (PLAIN, "phase_in_float16", "the sum of angles kept in float16", but_for(
        keep=lambda now, phase, *others: (float16(phase), *others))),
]  # fmt: skip
ARGUMENTS = [
    (BOTH, "decay_in_base_two", "2^{log_g}: an exponent in base 2", lambda right, g: right(
        g.but(log_g=(g.log_g * np.log(2)).astype(g.log_g.dtype)))),
    (BOTH, "decay_times_step", "log_g Δ: log_g has Δ already",
     lambda right, g: right(g.but(log_g=g.log_g * g.dt))),
    (BOTH, "step_softplus_twice", "softplus(dt): dt was after the softplus",
     lambda right, g: right(g.but(dt=np.logaddexp(0, g.dt).astype(g.dt.dtype)))),
    (BOTH, "exchanged", "q and k exchanged", lambda right, g: right(g.but(q=g.k, k=g.q))),
    (BOTH, "query_scaled", "q / √n",
     lambda right, g: right(g.but(q=g.q / g.q.dtype.type(np.sqrt(g.q.shape[-1]))))),
    (BOTH + LATER, "read_before", "Sᵀ q before the step's input is written", but_for(
        read=lambda now, S: np.einsum(
            "...np,...n->...p", S - programs.outer(now.now[..., None] * now.k_t, now.v), now.q_t))),
    (PLAIN + STATEFUL, "decay_late", "log_g of the step before",
     lambda right, g: right(g.but(log_g=earlier(g.log_g)))),
    (PLAIN, "decay_clipped", "log_g clipped to −5", {"log_g": lambda s: np.maximum(s, -5)}),
    *(row for name, what, wrong in (
        ("query_late", "q of the step before: q_{t−1} for q_t",
         lambda earlier: lambda right, g: right(g.but(q=earlier(g.q, -2)))),
        ("key_late", "k of the step before: k_{t−1} for k_t",
         lambda earlier: lambda right, g: right(g.but(k=earlier(g.k, -2)))))
      for row in late(PLAIN + LATER, name, what, wrong)),
    (PLAIN, "S_in_bfloat16", "S kept in bfloat16", but_for(
        keep=lambda now, phase, S, *others: (phase, bfloat16(S), *others))),
    (PLAIN, "key_in_bfloat16", "the last key kept in bfloat16", but_for(
        keep=lambda now, phase, S, key, value: (phase, S, bfloat16(key), value))),
    (PLAIN, "step_in_bfloat16", "dt rounded to bfloat16", {"dt": bfloat16}),
    (PLAIN, "slow_decay_lost", "log_g above −1e-3 taken for 0",
     {"log_g": lambda s: np.where(s > -1e-3, 0, s).astype(s.dtype)}),
]  # fmt: skip


def _tiled(x, heads):
    return tiled(x, heads.shape[:-2])


def _of_first_head(x):
    return np.broadcast_to(x[:, :, :1], x.shape) if x.ndim > 3 else x


HEADS = [
    (PLAIN, "groups_tiled", "head j reads the keys of j mod G, not of j // H",
     lambda right, g: right(g.but(q=_tiled(g.q, g.v), k=_tiled(g.k, g.v)))),
    (PLAIN, "first_head_angles", "angles of a group's first head for all its heads",
     {"angles": _of_first_head}),
    (PLAIN, "first_head_trap", "trap of a group's first head for all its heads",
     {"trap": lambda x: np.broadcast_to(x[:, :, :1], x.shape) if x.ndim > 2 else x}),
]  # fmt: skip
FORMULA = InEach(in_any_form(programs.in_form))
FORMULA.plant(*TRAPEZOID, *ANGLES, *ARGUMENTS, *HEADS)
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


def _ending(**changes):
    """The last state with changed parts."""

    def program(right, g):
        y, *state = right(g)
        told = dict(zip(programs.PARTS, state, strict=True))
        return y, *(changes.get(name, lambda x, g: x)(x, g) for name, x in told.items())

    return program


def _one_early(right, g):
    y, *_ = right(g)
    number = g.q.shape[-2] - 1
    return y, *(right(g.at(slice(number)))[1:] if number else g.state)


def _half_written(right, g):
    """S with the term that the next step adds for this one, (1 − λ) Δ of this step."""
    y, phase, S, key, value = right(g)
    more = (1 - share(g.trap[..., -1])) * g.dt[..., -1]
    return y, phase, S + programs.outer(more[..., None] * key, value), key, value


STATE = InEach(programs.in_form)
STATE.plant(
    ("last_state_one_step_early", "the last state: that before the last step", _one_early),
    ("last_key_not_turned", "the last key without its angle",
     _ending(key=lambda x, g: g.k[..., -1, :] + 0 * x)),
    ("last_key_zero", "zeros for the last key", _ending(key=lambda x, g: 0 * x)),
    ("last_value_zero", "zeros for the last value", _ending(value=lambda x, g: 0 * x)),
    ("last_S_zero", "zeros for S", _ending(S=lambda x, g: 0 * x)),
    ("last_value_in_bfloat16", "the last value rounded to bfloat16",
     _ending(value=lambda x, g: bfloat16(x))),
    ("last_S_with_next_term", "S with the input's other half, which belongs to the next step",
     _half_written),
    *lasts(core=1),
    of=STATEFUL, by="state",
)  # fmt: skip
STATE.plant(
    *starts("phase0", core=1),
    ("start_S_ignored", "the first S taken as zero", {"S0": lambda x: 0 * x}),
    ("start_key_ignored", "the first key taken as zero", {"key0": lambda x: 0 * x}),
    ("start_value_ignored", "the first value taken as zero", {"value0": lambda x: 0 * x}),
    ("start_key_turned", "the first key turned by the first angle, which it has already",
     lambda right, g: right(g.but(key0=rotated(g.key0, g.phase0)))),
    of=STATEFUL,
)  # fmt: skip


def _kept_at_resets(*parts):
    """Some parts of the state are kept where a sequence begins."""

    def program(right, g):
        begins, whole = g.resets, g.but(resets=np.zeros_like(g.resets))

        def carry(now, *state):
            rested = programs.rested(begins[..., now.t], *state)
            triples = zip(programs.PARTS, state, rested, strict=True)
            return [x if name in parts else z for name, x, z in triples]

        return right(whole, carry=carry)

    return program


KINDS = ("ignored", "late", "early", "first_only", "last_only", "within_64", "at_block",
         "lost_at_64", "on_grid_16", "of_first_in_batch", "beside_a_reset_lost")  # fmt: skip
STATE.plant(
    *(row for row in RESETS if row[0].removeprefix("reset_") in KINDS),
    ("last_pair_kept_at_reset", "the last key and value of the sequence before are read",
     _kept_at_resets("key", "value")),
    ("S_kept_at_reset", "S not dropped where a sequence begins", _kept_at_resets("S")),
    of=PACKED,
)  # fmt: skip


def _multiplied(right, g):
    """The state times 0 at a reset."""
    begins, whole = g.resets, g.but(resets=np.zeros_like(g.resets))

    def carry(now, *state):
        kept = np.where(begins[..., now.t], 0, 1).astype(g.v.dtype)
        pairs = zip(state, programs.PARTS.values(), strict=True)
        return [x * kept[(..., *[None] * rank)] for x, rank in pairs]

    return right(whole, carry=carry)


STATE.plant((PACKED, "nan_leaks", "the state times 0 at a reset: NaN comes through", _multiplied),
            by="nan")  # fmt: skip
