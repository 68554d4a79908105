"""Planted bugs of linear attention by chunks: weights, the inverse, carries, resets, gradients."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.linear_attention import programs
from refssm.conformance.planted.linear_attention.forms import (
    packed,
    plain,
    stateful,
    with_states,
)
from refssm.conformance.planted.linear_attention.formula import (
    BETA_ON_VALUE_ONLY,
    GATES_OF_KEYS,
    OF_STEP_BEFORE,
    READ_BEFORE,
)
from refssm.conformance.planted.linear_attention.programs import in_place_of
from refssm.conformance.planted.linear_attention.triangular import (
    but_for,
    in_each,
    inverse,
)
from refssm.conformance.planted.planting import InEach, Planting
from refssm.conformance.planted.recurrences import RESETS, lasts, planted_in, starts
from refssm.conformance.planted.scan.pieces import in_any_form, in_sequences, late
from refssm.linear_attention.chunked import (
    CHUNKED,
    DELTA_CHUNKED,
    GATED_DELTA_CHUNKED,
    GATED_LINEAR_CHUNKED,
    KIMI_CHUNKED,
)

GATED = (plain(GATED_DELTA_CHUNKED), plain(KIMI_CHUNKED))
CORRECTED = (plain(DELTA_CHUNKED), *GATED)
LINEAR, STATEFUL, PACKED = (
    (plain(GATED_LINEAR_CHUNKED),),
    tuple(map(stateful, CHUNKED)),
    tuple(map(packed, CHUNKED)),
)
IN_FORMS, DELTAS_IN_FORMS, GATED_IN_FORMS, KEYED_IN_FORMS = (
    tuple(op for recurrence in recurrences for op in with_states(recurrence))
    for recurrences in (
        CHUNKED,
        (DELTA_CHUNKED, GATED_DELTA_CHUNKED, KIMI_CHUNKED),
        (GATED_LINEAR_CHUNKED, GATED_DELTA_CHUNKED, KIMI_CHUNKED),
        (GATED_LINEAR_CHUNKED, KIMI_CHUNKED),
    )
)


def _neumann(L):
    """I − L + L²: a series cut after two terms."""
    return np.eye(L.shape[-1], dtype=L.dtype) - L + L @ L


def _in_halves(L):
    """The inverse in half precision."""
    return float16(inverse(float16(L)))


CHUNKS = in_each()
CHUNKS.plant(
    ("triangle_for_decays", "a plain triangle for the decays from j to i in the outputs",
     but_for(of_P=lambda c: c.tri)),
    ("triangle_in_L", "L without decays", but_for(of_L=lambda c: c.tri)),
    ("W_undecayed", "W without the decays from the start of the chunk",
     but_for(keys_of_W=lambda c: c.k)),
    ("W_decayed_after", "W of undecayed keys with L of decayed ones, decayed where it is used",
     but_for(keys_of_W=lambda c: c.k, W=lambda W, c: c.E * W)),
    ("carry_undecayed", "the state at a chunk's end without the chunk's decay",
     but_for(carried=lambda S, c: S)),
    ("queries_undecayed", "the state read without the decays from the start of the chunk",
     but_for(queries=lambda c: c.q)),
    ("keys_undecayed_to_end", "keys without the decays to the chunk's end",
     but_for(keys_to_end=lambda c: c.tri[..., -1, :, :] * c.k)),
    ("gates_across_chunks", "gates summed from the start of the sequence",
     but_for(sums=lambda c: c.before + c.G)),
    ("gates_without_own", "gates summed up to the step before",
     but_for(sums=lambda c: c.G - c.log_g)),
    of=GATED,
)  # fmt: skip
CHUNKS.plant(
    ("diagonal_in_L", "L with i ≥ j", but_for(strict=np.tril)),
    ("inverse_sign", "(I − L)⁻¹", but_for(inverse=lambda L: inverse(-L))),
    ("inverse_cut", "I − L + L² for the inverse", but_for(inverse=_neumann)),
    ("inverse_in_float16", "the inverse in float16", but_for(inverse=_in_halves)),
    ("beta_missing_in_W", "W without β", but_for(beta_of_W=np.ones_like)),
    ("state_not_corrected", "U for U − W S", but_for(new=lambda U, W, S: U + 0 * W @ S)),
    ("last_chunk_from_rest", "the last partial chunk begins at rest", but_for(
        start=lambda S, first, g, size: S * (first == 0 or first + size <= g.q.shape[-2]))),
    of=CORRECTED,
)  # fmt: skip
CHUNKS.plant(
    ("carry_missing", "the state lost between chunks", but_for(keep=lambda S: 0 * S)),
    ("carry_in_bfloat16", "the state kept in bfloat16 between chunks", but_for(keep=bfloat16)),
    of=(*CORRECTED, *LINEAR),
)  # fmt: skip
CHUNKS.plant(
    ("beta_missing_in_U", "v − β Sᵀ k: β multiplies only what is taken away, not v (U without β)",
     but_for(beta_of_U=np.ones_like)),
    of=(*CORRECTED, *DELTAS_IN_FORMS),
)  # fmt: skip
CHUNKS.plant(
    ("diagonal_missing",
     "a query does not see its own step: the state read before the value is written",
     but_for(up_to=lambda P: np.tril(P, -1))),
    of=(*CORRECTED, *LINEAR, *IN_FORMS),
)  # fmt: skip
# a delta rule without gates reads the same before and after the decay
BY_STEPS = InEach(in_any_form(programs.in_form))
BY_STEPS.plant(
    (CORRECTED + DELTAS_IN_FORMS, *BETA_ON_VALUE_ONLY),
    (GATED + LINEAR + GATED_IN_FORMS, *READ_BEFORE),
    *((GATED[1:] + LINEAR + KEYED_IN_FORMS, *row) for row in GATES_OF_KEYS),
    *(
        row
        for name, what, wrong in OF_STEP_BEFORE
        for row in late((*CORRECTED, *LINEAR, *IN_FORMS), name, what, wrong)
    ),
)
CHUNKS.plant(
    ("keys_divided_by_decays", "k e^{−G}: infinite after strong decays", but_for(
        of_P=lambda c: np.exp(c.G)[..., :, None, :] * np.exp(-c.G)[..., None, :, :])),
    of=(plain(KIMI_CHUNKED), *LINEAR),
)  # fmt: skip


def _start_added_to_last(right, g):
    y, S = right(g)
    return y, S + g.S0


CHUNKS.plant(
    ("start_in_every_chunk", "S0 added at every chunk",
     but_for(start=lambda S, first, g, size: S + g.S0 if first else S)),
    ("start_kept", "every chunk begins with S0", but_for(start=lambda S, first, g, size: g.S0)),
    *starts("S0", core=2),
    of=STATEFUL,
)  # fmt: skip
CHUNKS.plant(
    ("start_added_twice", "S0 added to the last state once more", _start_added_to_last),
    *lasts(core=2),
    of=STATEFUL, by="state",
)  # fmt: skip
CHUNKS.plant(
    ("reset_not_masked", "pairs of steps across a reset in a chunk count",
     but_for(seen=lambda resets: resets & (np.arange(resets.shape[-1]) == 0))),
    *RESETS[:12],
    of=PACKED,
)  # fmt: skip


def _in_gradient_form(op):
    """Turn wrong(right, dy, dS, given) into a VJP of an operator by chunks."""
    of_steps = programs.in_gradient_form(op)

    def adapt(wrong):
        program = of_steps(wrong)
        return lambda right, *args, chunk: program(right, *args)

    return adapt


def _of_chunk(op):
    """As `_in_gradient_form`, for wrong(right, dy, dS, given, chunk)."""
    of_steps = programs.in_gradient_form(op)

    def adapt(wrong):
        def vjp(right, *args, chunk):
            program = of_steps(lambda right, *given: wrong(right, *given, chunk))
            return program(right, *args)

        return vjp

    return adapt


def _detached_at(first):
    """The state carried from one chunk to the next as a constant; that before the first, if so."""
    return lambda right, dy, dS, g, chunk: right(
        dy, dS, g, carry=lambda G, t: G * (t % chunk != 0 or (first and t == 0))
    )


OF_CHUNK = InEach(in_sequences(_of_chunk))
OF_CHUNK.plant(
    ("carry_constant", "the state between chunks taken as a constant: no gradient passes to the "
     "chunk before", _detached_at(False)),
    ("carry_constant_but_first", "the state between chunks taken as a constant: no gradient passes "
     "to the chunk before", _detached_at(True)),
    of=tuple(op for op in (*LINEAR, *CORRECTED, *IN_FORMS)), by="gradient",
)  # fmt: skip
GRADIENTS = InEach(_in_gradient_form)
GRADIENTS.plant(
    ("detached", "no gradient passes from a chunk of 64 steps to the one before",
     lambda right, dy, dS, g: right(dy, dS, g, carry=lambda G, t: G * (t % 64 != 0))),
    ("dk_of_U", "dk without the part through W", in_place_of("k", lambda p: p.rate * p.by_r)),
    ("dbeta_of_U", "dβ without the part through W", in_place_of(
        "beta", lambda p: (p.g.v * p.w).sum(-1))),
    of=CORRECTED, by="gradient",
)  # fmt: skip
GRADIENTS.plant(
    ("dlog_g_without_carry", "log_g has no gradient from the state before a chunk of 64",
     lambda right, dy, dS, g: right(dy, dS, g, change=_without_borders)),
    of=GATED, by="gradient",
)  # fmt: skip


def _without_borders(parts):
    dlog_g = parts.found["log_g"]
    first = np.arange(dlog_g.shape[-2]) % 64 == 0
    return {"log_g": np.where(first[:, None], 0, dlog_g)}


_USUAL = Planting(plain(GATED_LINEAR_CHUNKED), "float32")
_USUAL.usual()
BUGS = [*CHUNKS.bugs, *BY_STEPS.bugs, *OF_CHUNK.bugs, *GRADIENTS.bugs, *_USUAL.bugs]
BUGS += planted_in(GATED_DELTA_CHUNKED, "float32") + planted_in(KIMI_CHUNKED, "float32")
# the mistakes that any operator can have show in the forms by pieces of two recurrences
_ANYWHERE = {bug.name for bug in _USUAL.bugs}
for _recurrence in (GATED_LINEAR_CHUNKED, DELTA_CHUNKED):
    BUGS += [bug for bug in planted_in(_recurrence, "float32") if bug.name not in _ANYWHERE]
