"""Honest linear attention by chunks: loops over steps, whole matrices, chunks of given sizes."""

from honest import Honest
from honest.linear_attention.back_by_chunks import BackByChunks
from honest.linear_attention.chunks import in_chunks
from honest.linear_attention.steps import by_matrices, states_saved, turned_state
from honest.recurrences import forms_of
from refssm.conformance.planted.linear_attention.forms import form, gradient_form
from refssm.linear_attention.chunked import CHUNKED
from refssm.linear_attention.sweep import gates_keys


def _without_chunk(program):
    """The same for every size of the chunks."""
    return lambda *arrays, chunk: program(*arrays)


def _of_size(op):
    """Chunks of the size that is asked for."""
    return lambda *arrays, chunk: form(op, in_chunks(chunk))(*arrays)


def _implementations(op):
    """The programs of one operator."""
    steps, back = form(op, turned_state), gradient_form(op, states_saved)
    matrices = Honest(op.name, "by_matrices", _without_chunk(form(op, by_matrices)))
    return [
        Honest(op.name, "turned_state", _without_chunk(steps), _without_chunk(back)),
        *([matrices] if "beta" in op.inputs else []),  # a gate of another key times NaN is NaN
        Honest(op.name, "chunks", _of_size(op)),
        Honest(op.name, "chunks_of_32", _without_chunk(form(op, in_chunks(32)))),
    ]


def _by_rows(recurrence):
    """Both directions chunk by chunk, in chunks of the size that is asked for."""
    if "beta" not in recurrence.inputs:
        return
    made = BackByChunks(tuple(recurrence.inputs), gates_keys(recurrence.operators[0]))
    pairs = recurrence.mirrors(made.run, made.back, lambda op: lambda f: f)
    for op, pair in zip(recurrence.operators, pairs, strict=True):
        yield Honest(op.name, "by_rows", pair.forward, pair.vjp)


def _step(recurrence):
    """The step of the recurrence whose chunks these are."""
    return recurrence.same_as.step


IMPLEMENTATIONS = [
    *(honest for r in CHUNKED for op in r.operators[:3] for honest in _implementations(op)),
    *(honest for r in CHUNKED for honest in _by_rows(r)),
    *(honest for r in CHUNKED for honest in forms_of(r, _step(r))),
]
