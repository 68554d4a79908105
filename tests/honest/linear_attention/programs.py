"""Honest linear attention: whole matrices, chunks, attention, blocks of time, double precision."""

from honest import Honest
from honest.linear_attention.chunks import as_attention, in_chunks
from honest.linear_attention.steps import (
    by_keys,
    by_matrices,
    in_blocks,
    in_double,
    states_saved,
    turned_state,
)
from refssm.conformance.planted.linear_attention.forms import (
    RECURRENCES,
    form,
    gradient_form,
    one_step,
    sequences,
)


def _made(name, whole, operators, vjp=None):
    """One implementation of each of `operators`, from a function of all arguments."""
    return [
        Honest(op.name, name, form(op, whole), gradient_form(op, vjp) if vjp else None)
        for op in operators
    ]


SEQUENCES = [op for recurrence in RECURRENCES for op in sequences(recurrence)]
RULES = RECURRENCES[1:]
PLAIN = [recurrence.operators[0] for recurrence in RECURRENCES]
IMPLEMENTATIONS = [
    *_made("turned_state", turned_state, SEQUENCES, states_saved),
    # a whole matrix of gates has zeros beside them, and 0 · NaN is NaN: for delta rules only
    *_made("by_matrices", by_matrices, [op for r in RULES for op in sequences(r)]),
    *_made("chunks_of_16", in_chunks(16), SEQUENCES),
    *_made("chunks_of_64", in_chunks(64), PLAIN),
    *_made("attention", as_attention, PLAIN),
    *_made("blocks", in_blocks, SEQUENCES),
    *_made("double_inside", in_double, PLAIN),
    *_made("turned_state", turned_state, map(one_step, RECURRENCES), states_saved),
    *_made("by_keys", by_keys, map(one_step, RECURRENCES)),
    *_made("by_matrices", by_matrices, map(one_step, RULES)),
]
