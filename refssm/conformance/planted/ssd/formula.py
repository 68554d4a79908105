"""Planted bugs in the recurrence of state-space duality: formula, heads and groups, rounding."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import InEach
from refssm.conformance.planted.recurrences import tiled
from refssm.conformance.planted.scan.pieces import in_any_form, late
from refssm.conformance.planted.ssd import operators, programs
from refssm.conformance.planted.ssd.forms import CHUNKED, RECURRENT, SEQUENCES
from refssm.conformance.planted.ssd.operators import (
    CHUNK,
    FORWARD,
    IN_FORMS,
    PLAIN,
    QUAD,
    REC,
    RECURRENT_FORMS,
    STEP,
)
from refssm.conformance.planted.ssd.programs import but_for, earlier, output, recurrence


def _state_unread(fails):
    """The last of n states is not read if fails(p, n)."""

    def program(right, g):
        n = g.B.shape[-1]
        lost = fails(g.x.shape[-1], n) & (np.arange(n) == n - 1)
        return right(g.but(C=np.where(lost, 0, g.C)))

    return program


def _whole_blocks(C, size=4):
    """No output of the state's entries beyond a multiple of `size`, if there is one block."""
    n = C.shape[-1]
    return np.where(np.arange(n) < (n // size * size or n), C, 0).astype(C.dtype)


def _lost_at(steps):
    """The states are lost between blocks; this shows where |a| is near 1."""
    return but_for(carry=lambda S, t, before: S * (not steps(t)))


FORMULA = InEach(in_any_form(programs.in_form))
FORMULA.plant(
    # how the formula is misread
    (PLAIN + STEP, "sign", "A's minus sign forgotten", {"log_a": np.negative}),
    (REC, "exponential_twice", "e^{a} of what is a already", {"log_a": np.exp}),
    (STEP, "exponential_twice", "e^{a}", {"log_a": np.exp}),
    (REC + STEP, "base_two", "2^{log_a}", {"log_a": lambda s: s * s.dtype.type(np.log(2))}),
    (SEQUENCES, "decay_late", "log_a_{t-1} for log_a_t", {"log_a": earlier}),
    (PLAIN, "decay_early", "log_a_{t+1} for log_a_t", {"log_a": lambda s: np.roll(s, -1, -1)}),
    (REC, "input_late", "x_{t-1} for x_t", {"x": lambda x: earlier(x, -2)}),
    *late(PLAIN + FORWARD, "output_late", "C of the step before: C_{t−1} for C_t",
          lambda earlier: lambda right, g: right(g.but(C=earlier(g.C, -2)))),
    *late(PLAIN + FORWARD, "B_late", "B of the step before: B_{t−1} for B_t",
          lambda earlier: lambda right, g: right(g.but(B=earlier(g.B, -2)))),
    (REC, "log_a_read_as_a", "log_a taken for a", lambda right, g: right(g, a=g.log_a)),
    (STEP, "decay_after", "e^{log_a} (S + x Bᵀ)",
     lambda right, g: right(g.but(x=g.x * np.exp(g.log_a)[..., None]))),
    (PLAIN, "decay_after", "e^{log_a_t} (S_{t-1} + x_t B_tᵀ): the new input decays too",
     lambda right, g: right(g.but(x=g.x * np.exp(g.log_a)[..., None]))),
    (REC + QUAD, "first_input_decays", "x_0 decays by log_a_0", lambda right, g: right(
     g.but(x=g.x * np.exp(np.where(np.arange(g.x.shape[-2]) == 0, g.log_a, 0))[..., None]))),
    (PLAIN + IN_FORMS, "exclusive", "the state read before it is written: y_t = S_{t−1} C_t",
     but_for(read=lambda S, before, decayed: before + 0 * S)),
    (REC + STEP + IN_FORMS, "read_decayed",
     "the decayed state read, before the input is added",
     but_for(read=lambda S, before, decayed: decayed + 0 * S)),
    (REC + QUAD, "reverse", "scanned from the end",
     output(lambda y, g: recurrence(g.at(slice(None, None, -1)))[0][..., ::-1, :].copy())),
    (PLAIN + operators.REC_STATEFUL + STEP, "exchanged", "B and C exchanged",
     lambda right, g: right(g.but(B=g.C, C=g.B))),
    (REC, "transposed_where_square", "the state read as (n, p) where p = n",
     but_for(read=lambda S, *_: programs.turned_if_square(S))),
    (REC + CHUNK + STEP, "wide_heads", "a state lost where p > n",
     _state_unread(lambda p, n: p > n)),
    (REC, "odd_states", "the last of an odd number of states lost",
     _state_unread(lambda p, n: n % 2 == 1)),
    (REC + QUAD, "normalised", "divided by the sum of weights, as linear attention is", output(
     lambda y, g: y / recurrence(g.but(x=np.ones_like(g.x), S0=np.zeros_like(g.S0)))[0])),
    (SEQUENCES + STEP, "padding_skipped", "a step with log_a = 0 taken for padding",
     lambda right, g: right(g.but(x=np.where((g.log_a == 0)[..., None], 0, g.x)))),
    # arithmetic in fewer bits, range, and length
    (REC + CHUNK, "state_in_bfloat16", "the state kept in bfloat16", but_for(keep=bfloat16)),
    (REC + CHUNK, "state_in_float16", "the state kept in float16", but_for(keep=float16)),
    (PLAIN + STEP, "log_a_in_bfloat16", "log_a rounded to bfloat16", {"log_a": bfloat16}),
    (REC + QUAD + STEP, "decay_clipped", "log_a clipped to −10",
     {"log_a": lambda s: np.maximum(s, -10)}),
    (REC, "slow_decay_lost", "log_a above −1e-3 taken for 0",
     {"log_a": lambda s: np.where(np.abs(s) < 1e-3, 0, s).astype(s.dtype)}),
    (REC, "small_flushed", "inputs below the smallest normal flushed",
     {"x": lambda x: np.where(np.abs(x) < np.finfo(x.dtype).tiny, 0, x).astype(x.dtype)}),
    (REC, "carry_lost_64", "the state lost at blocks of 64", _lost_at(lambda t: t % 64 == 0)),
    (REC, "carry_lost_64_4", "the state lost at blocks of 64", _lost_at(lambda t: t == 3 * 64)),
    (REC, "carry_lost_128", "the state lost at blocks of 128", _lost_at(lambda t: t % 128 == 0)),
    (REC + CHUNK, "state_tail", "entries of the state beyond a multiple of 4 left out",
     {"C": _whole_blocks}),
    (REC, "tail_lost", "steps beyond a multiple of 8 not written",
     output(lambda y, g: np.where(np.arange(y.shape[-2])[:, None] < y.shape[-2] // 8 * 8, y, 0))),
)  # fmt: skip
FORMULA.plant(
    (REC + QUAD, "decay_conjugated", "the decay conjugated", {"log_a": np.conj}),
    (REC + QUAD, "output_conjugated", "C* for C, as in Hermitian attention", {"C": np.conj}),
    (REC + QUAD + STEP, "input_conjugated", "B* for B", {"B": np.conj}),
    (STEP, "decay_conjugated", "a* for a", {"log_a": np.conj}),
    (STEP, "output_conjugated", "C* for C", {"C": np.conj}),
    (REC + QUAD, "phase_lost", "the imaginary part of log_a dropped", {"log_a": np.real}),
    (REC, "imaginary_lost", "the result allocated with the type of x",
     output(lambda y, g: y if np.iscomplexobj(g.x) else y.real)),
    (REC + STEP, "sixteen_states", "a state lost where n = 16",
     _state_unread(lambda p, n: n == 16)),
    # the draws of this type reach so far
    (RECURRENT_FORMS, "guarded",
     "a guard takes e^x as 0 where x > 0, as if log_a could not be positive",
     lambda right, g: right(g, a=np.where(g.log_a.real > 0, 0, np.exp(g.log_a)))),
    (REC, "growth_clipped", "log_a > 0 clipped to 0",
     {"log_a": lambda s: s - np.maximum(s.real, 0)}),
    (REC, "carry_lost_256", "the state lost at blocks of 256", _lost_at(lambda t: t % 256 == 0)),
    by="value[complex64]",
)  # fmt: skip
# the whole sequence is one block of the quadratic form
NOT_QUADRATIC = tuple(op for op in SEQUENCES if op not in QUAD)
FORMULA.plant(
    (NOT_QUADRATIC, "nan_spread", "masked by multiplication: 0 · NaN reaches the past",
     output(lambda y, g: y + 0 * g.x.sum(axis=-2, keepdims=True))),
    (STEP, "nan_spread", "NaN of one number of the head in all",
     output(lambda y, g: y + 0 * g.x.sum(axis=-1, keepdims=True))),
    by="nan",
)  # fmt: skip
for _operators, _what in (REC, " against division by zero"), (STEP, ""):
    FORMULA.plant((_operators, "offset", f"1e-12 added to every input{_what}",
                   {"x": lambda x: x + x.dtype.type(1e-12)}), by="zero")  # fmt: skip
for _operators, _check in (operators.REC_PACKED, "causal"), (REC, "prefix"):
    FORMULA.plant((_operators, "later_state_read", "y_t also reads 1e-3 of x_{t+1}",
                   output(lambda y, g: y + g.x.dtype.type(1e-3) * np.roll(g.x, -1, axis=-2))),
                  by=_check)  # fmt: skip

# Heads and groups: axes are (b, g, h, l, …) and B and C are (b, g, 1, l, n): heads of a group are
# neighbours.
BY_LAW = RECURRENT + QUAD + CHUNKED[1:2]  # where the draws of seed 0 have groups
TILED = "head k of all heads read the group k mod G, not k // H"
FIRST = "B and C of the first group for all"


def _with_tiled(names):
    return lambda right, g: right(g.but(**{n: tiled(getattr(g, n), g.x.shape[:-2]) for n in names}))


def _of_first_group(B):
    return B[:, [0] * B.shape[1]] if B.ndim == 5 else B


def _first_group(right, g):
    return right(g.but(B=_of_first_group(g.B), C=_of_first_group(g.C)))


def _of_first_head(a):
    return np.broadcast_to(a[:, :, :1], a.shape) if a.ndim > 3 else a


FORMULA.plant(
    (SEQUENCES, "groups_tiled", TILED, _with_tiled("BC")),
    (STEP, "groups_tiled", f"{TILED}: prefill repeats, the step tiles", _with_tiled("BC")),
    (REC, "groups_tiled_in_B", "B tiled over the heads, C repeated", _with_tiled("B")),
    (REC, "groups_tiled_in_C", "C tiled over the heads, B repeated", _with_tiled("C")),
    (PLAIN + STEP, "first_group", FIRST, _first_group),
    (REC, "first_group_of_C", "C of the first group for all", {"C": _of_first_group}),
    (REC, "groups_turned", "groups of B in the opposite order",
     {"B": lambda B: B[:, ::-1] if B.ndim == 5 else B}),
    (REC, "first_head_decay", "log_a of a group's first head for all its heads",
     {"log_a": _of_first_head}),
    (REC, "first_head_input", "x of a group's first head for all its heads", {"x": _of_first_head}),
    (REC, "heads_turned", "log_a laid out (h, g) and read as (g, h)",
     {"log_a": lambda s: np.swapaxes(s, 1, 2).reshape(s.shape) if s.ndim > 3 else s}),
)  # fmt: skip
FORMULA.plant(
    (BY_LAW + STEP, "groups_tiled_by_law", TILED, _with_tiled("BC")),
    (REC + CHUNK + STEP, "first_group_by_law", FIRST, _first_group),
    by="group",
)
