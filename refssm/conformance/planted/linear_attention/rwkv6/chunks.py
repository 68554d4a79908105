"""Planted bugs of RWKV-6 by chunks: weights of pairs, the bonus, carries, resets, gradients."""

from types import SimpleNamespace

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16
from refssm.conformance.planted.linear_attention.rwkv6 import programs
from refssm.conformance.planted.linear_attention.rwkv6.formula import BONUS, KEYED
from refssm.conformance.planted.linear_attention.rwkv6.gradients import OF_BONUS
from refssm.conformance.planted.planting import InEach, Planting
from refssm.conformance.planted.recurrences import RESETS, lasts, planted_in, starts
from refssm.conformance.planted.scan.pieces import in_any_form, in_sequences, late
from refssm.linear_attention.rwkv6_chunked import RWKV6_BY_CHUNKS

PLAIN, STATEFUL, PACKED, SEQUENCES = ((op,) for op in RWKV6_BY_CHUNKS.operators)
ALL = RWKV6_BY_CHUNKS.operators


def _parts(g, seen_by):
    """What a chunk is made of: weights between steps, from its start and to its end."""
    size, parts = g.r.shape[-2], SimpleNamespace(g=g, k=g.k, v=g.v, log_w=g.log_w)
    number = np.cumsum(seen_by(g.resets), axis=-1)
    steps = np.arange(size)
    inside = (steps[:, None, None] < steps) & (steps < steps[:, None])  # j < s < i
    parts.tri = (steps[:, None] > steps).astype(g.k.dtype)[..., None]
    parts.D = np.exp(np.einsum("jsi,...sn->...ijn", np.swapaxes(inside, 0, 1), g.log_w)) * parts.tri
    parts.E = np.exp(np.cumsum(g.log_w, axis=-2) - g.log_w)
    parts.F = np.exp(np.einsum("js,...sn->...jn", steps[:, None] < steps, g.log_w))
    parts.end = np.exp(g.log_w.sum(-2))[..., :, None]
    parts.u = g.u[..., None, :]
    parts.same = (number[..., :, None] == number[..., None, :])[..., None]
    parts.begun = (number > 0)[..., None]
    parts.last = (number == number[..., -1:])[..., None]
    return parts


def _chunk(g, S, of):
    """The outputs of a chunk and the state after it; `of` has the parts that are replaced."""
    c = _parts(g, of.get("seen", lambda resets: resets))

    def part(name, own):
        return of[name](c) if name in of else own

    P = np.where(c.same, part("between", c.D), 0)
    P = np.einsum("...in,...ijn,...jn->...ij", g.r, P, c.k)
    read = np.where(c.begun, 0, part("from_start", c.E) * g.r)
    own = (g.r * part("bonus", c.u) * c.k).sum(-1, keepdims=True)
    y = np.einsum("...np,...in->...ip", S, read) + P @ c.v + own * c.v
    keys = np.where(c.last, part("to_end", c.F) * c.k, 0)
    carried = np.where(c.begun[..., -1:, :], 0, part("carried", c.end) * S)
    return y, carried + np.swapaxes(keys, -1, -2) @ c.v


def _same(x, *_):
    return x


def by_chunks(g, size, *, keep=_same, start=_same, **of):
    """RWKV-6 by chunks of `size` steps; each keyword replaces a part by a wrong one."""
    S, y = g.S0, []
    for first in range(0, g.r.shape[-2], size):
        piece = g.at(slice(first, first + size))
        more, S = _chunk(piece, start(S, first, g), of)
        S = keep(S)
        y.append(more)
    return np.concatenate(y, axis=-2), S


def in_form(op):
    """Turn a dictionary of wrong parts into a program of an operator by chunks of 16 steps."""

    def adapt(wrong):
        program = programs.form(op, lambda g: wrong(by_chunks, g, 16))
        return lambda right, *arrays, **statics: program(*arrays)

    return adapt


def but_for(**parts):
    """The right program with some of its parts replaced."""
    return lambda right, *args: right(*args, **parts)


CHUNKS = InEach(in_any_form(in_form))
CHUNKS.plant(
    ("triangle_for_decays", "a plain triangle for the decays from j to i in the outputs",
     but_for(between=lambda c: c.tri)),
    ("own_decay_in_pairs", "the decays between steps with that of the later step: it reads first",
     but_for(between=lambda c: np.exp(c.log_w)[..., :, None, :] * c.D)),
    ("own_decay_from_start", "the state decays by the step that reads it, too",
     but_for(from_start=lambda c: np.exp(c.log_w) * c.E)),
    ("queries_undecayed", "the state read without the decays from the start of the chunk",
     but_for(from_start=lambda c: np.ones_like(c.E))),
    ("keys_undecayed_to_end", "keys without the decays to the chunk's end",
     but_for(to_end=lambda c: np.ones_like(c.F))),
    ("keys_decayed_by_own", "keys decay by their own step, too",
     but_for(to_end=lambda c: np.exp(c.log_w) * c.F)),
    ("carry_undecayed", "the state at a chunk's end without the chunk's decay",
     but_for(carried=lambda c: np.ones_like(c.end))),
    ("diagonal_is_one", "weight 1 for the step itself: u left out, the mask has i ≥ j",
     but_for(bonus=lambda c: np.ones_like(c.u))),
    ("diagonal_missing", "the step itself left out: u forgotten",
     but_for(bonus=lambda c: 0 * c.u)),
    ("diagonal_twice", "the mask has i ≥ j, and u is added: 1 + u for u",
     but_for(bonus=lambda c: 1 + c.u)),
    ("keys_divided_by_decays", "k e^{−G}: infinite after strong decays", but_for(
        between=lambda c: (c.E[..., :, None, :] * np.exp(
            -np.cumsum(c.log_w, axis=-2))[..., None, :, :]) * c.tri)),
    ("carry_missing", "the state lost between chunks", but_for(keep=lambda S: 0 * S)),
    ("carry_in_bfloat16", "the state kept in bfloat16 between chunks", but_for(keep=bfloat16)),
    of=PLAIN,
)  # fmt: skip
CHUNKS.plant(
    ("start_in_every_chunk", "S0 added at every chunk",
     but_for(start=lambda S, first, g: S + g.S0 if first else S)),
    ("start_kept", "every chunk begins with S0", but_for(start=lambda S, first, g: g.S0)),
    ("start_not_in_first", "S0 is not read in the first chunk, only stored",
     lambda right, g, size: (right(g.but(S0=0 * g.S0), size)[0], right(g, size)[1])),
    ("own_decay_from_start", "the state decays by the step that reads it, too",
     but_for(from_start=lambda c: np.exp(c.log_w) * c.E)),
    ("diagonal_missing", "the step itself left out: u forgotten",
     but_for(bonus=lambda c: 0 * c.u)),
    *starts("S0", core=2),
    of=STATEFUL,
)  # fmt: skip
CHUNKS.plant(
    ("start_added_twice", "S0 added to the last state once more",
     lambda right, g, size: (lambda y, S: (y, S + g.S0))(*right(g, size))),
    *lasts(core=2),
    of=STATEFUL, by="state",
)  # fmt: skip
CHUNKS.plant(
    ("reset_not_masked", "pairs of steps across a reset in a chunk count",
     but_for(seen=lambda resets: resets & (np.arange(resets.shape[-1]) == 0))),
    *RESETS[:12],
    of=PACKED,
)  # fmt: skip
BY_STEPS = InEach(in_any_form(programs.in_form))
BY_STEPS.plant(
    *((ALL, *row) for row in (*BONUS, *KEYED)),
    *late(ALL, "receptance_late", "r of the step before: r_{t−1} for r_t",
          lambda earlier: lambda right, g: right(g.but(r=earlier(g.r, -2)))),
    *late(ALL, "key_late", "k of the step before: k_{t−1} for k_t",
          lambda earlier: lambda right, g: right(g.but(k=earlier(g.k, -2)))),
)  # fmt: skip


def _of_chunk(op):
    """Turn wrong(right, dy, dS, arguments, chunk) into a VJP of an operator by chunks."""
    of_steps = programs.in_gradient_form(op)

    def adapt(wrong):
        def vjp(right, *arrays, chunk):
            return of_steps(lambda right, *given: wrong(right, *given, chunk))(right, *arrays)

        return vjp

    return adapt


def _detached_at(first):
    """The state carried from one chunk to the next as a constant; that before the first, if so."""
    return lambda right, dy, dS, g, chunk: right(
        dy, dS, g, carry=lambda G, t: G * (t % chunk != 0 or (first and t == 0))
    )


CARRY = "the state between chunks taken as a constant: no gradient passes to the chunk before"
OF_CHUNK = InEach(in_sequences(_of_chunk))
OF_CHUNK.plant(
    ("carry_constant", CARRY, _detached_at(False)),
    ("carry_constant_but_first", CARRY, _detached_at(True)),
    of=ALL, by="gradient",
)  # fmt: skip
GRADIENTS = InEach(programs.in_gradient_form)
GRADIENTS.plant(*OF_BONUS, of=PLAIN, by="gradient")
_USUAL = Planting(PLAIN[0], "float32")
_USUAL.usual()
BUGS = [bug for p in (CHUNKS, BY_STEPS, OF_CHUNK, GRADIENTS, _USUAL) for bug in p.bugs]
_ANYWHERE = {bug.name for bug in _USUAL.bugs}
BUGS += [bug for bug in planted_in(RWKV6_BY_CHUNKS, "float32") if bug.name not in _ANYWHERE]
