"""Planted bugs of mLSTM by chunks: weights, scales, carries, the normaliser, padding, gradients."""

from types import SimpleNamespace

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import InEach, Planting
from refssm.conformance.planted.recurrences import RESETS, lasts, planted_in, starts
from refssm.conformance.planted.scan.pieces import in_any_form, in_sequences
from refssm.conformance.planted.xlstm import programs
from refssm.conformance.planted.xlstm.programs import GivenSteps, form
from refssm.xlstm import XLSTM_CHUNKED

PLAIN, STATEFUL, PACKED, SEQUENCES = ((op,) for op in XLSTM_CHUNKED.operators)


def by_chunks(
    g: GivenSteps,
    chunk: int,
    *,
    sums=None,
    weights=None,
    scale=None,
    inter=None,
    floor=None,
    end=None,
):
    """The outputs by chunks that end at resets, in double precision; a keyword replaces a part.

    `sums(c)` gives the sums of log_f in a chunk, `weights(c)` logarithms of weights (i, j),
    `scale(c)` all m, `inter(c)` logarithms of the weights of the state before, `floor(c)` the m of
    e^{−m}, `end(c)` changes what is added up for the next state.
    """
    wide = GivenSteps(*(x if x.dtype == bool else x.astype(np.float64) for x in g))
    S, s, m, y = wide.S0, wide.s0, wide.m0, []
    with np.errstate(all="ignore"):
        for w in _pieces(wide.resets, wide.q.shape[-2], chunk):
            c = SimpleNamespace(g=wide.at(w), size=w.stop - w.start, S=S, s=s, m=m)
            if w.start and wide.resets[..., w.start].any():
                c.S, c.s, c.m = programs.rested(wide.resets[..., w.start], S, s, m)
            _within(c, sums, weights, scale, inter)
            y.append(_outputs(c, floor))
            S, s, m = _next(c, end)
    return np.concatenate(y, axis=-2), S, s, m


def _pieces(resets, l: int, chunk: int):
    """Windows of at most `chunk` steps; one ends before any reset."""
    starts, begins = [], resets.reshape(-1, l).any(0) if l else []
    for t in range(l):
        if not starts or begins[t] or t - starts[-1] >= chunk:
            starts.append(t)
    return [slice(*pair) for pair in zip(starts, [*starts[1:], l], strict=True)]


def _within(c, sums, weights, scale, inter):
    c.F = np.cumsum(c.g.log_f, axis=-1) if sums is None else sums(c)
    past = np.tril(np.ones((c.size, c.size), bool))
    c.D = c.F[..., :, None] - c.F[..., None, :] + c.g.i[..., None, :]
    c.D = np.where(past, c.D, -np.inf) if weights is None else weights(c)
    c.before = c.F + c.m[..., None]
    c.rows = np.maximum(c.D.max(-1), c.before) if scale is None else scale(c)
    c.inter = c.before - c.rows if inter is None else inter(c)


def _outputs(c, floor):
    w = np.exp(c.D - c.rows[..., None]) * (c.g.q @ np.swapaxes(c.g.k, -1, -2))
    first = np.exp(c.inter)[..., None]
    num = w @ c.g.v + first * (c.g.q @ c.S)
    a = w.sum(-1) + first[..., 0] * (c.g.q @ c.s[..., None])[..., 0]
    return programs.divided(num, a, c.rows if floor is None else floor(c))


def _next(c, end):
    """The state after the chunk."""
    logs, last = c.F[..., -1:] - c.F + c.g.i, c.F[..., -1] + c.m
    m = np.maximum(logs.max(-1), last)
    told = SimpleNamespace(keys=np.exp(logs - m[..., None]), decay=np.exp(last - m), m=m, c=c)
    if end is not None:
        end(told)
    k = told.keys[..., None] * c.g.k
    S = told.decay[..., None, None] * c.S + np.swapaxes(k, -1, -2) @ c.g.v
    return S, told.decay[..., None] * c.s + k.sum(-2), told.m


def _in_chunks(op):
    """Turn wrong(right, given, chunk) into a program of an operator."""

    def adapt(wrong):
        def program(right, *args, chunk, eps=0.0):
            del right, eps
            return form(op, lambda g: wrong(by_chunks, g, chunk))(*args)

        return program

    return adapt


def _but_for(**places):
    return lambda right, g, chunk: right(g, chunk, **places)


def _of(**changes):
    """A change of what is added up for the next state."""

    def end(told):
        for name, change in changes.items():
            setattr(told, name, change(told))

    return _but_for(end=end)


def _masked(c, D, k=0):
    return np.where(np.tril(np.ones((c.size, c.size), bool), k), D, -np.inf)


def _tail_lost(right, g, chunk):
    """Zeros for the outputs of a last chunk that is not whole."""
    y, *state = right(g, chunk)
    l = g.q.shape[-2]
    return np.where(np.arange(l)[:, None] < (l // chunk * chunk or l), y, 0), *state


def _padded(right, g, chunk):
    """The last chunk padded by steps whose forget gate is ½, as of a logit of 0."""
    y, S, s, m = right(g, chunk)
    return y, S, s, m + np.log(0.5) * (-g.q.shape[-2] % chunk)


def _of_end(right, g, chunk):
    """e^{−m} with the m of the chunk's end for all its rows."""
    return right(g, chunk, floor=lambda c: c.rows[..., -1:] + 0 * c.rows)


CHUNKS = InEach(in_any_form(_in_chunks))
CHUNKS.plant(
    (PLAIN + STATEFUL + PACKED, "scale_from_zero", "m from 0 in each chunk, S in the units before",
     _of(m=lambda t: 0 * t.m)),
    (PLAIN + STATEFUL + PACKED, "state_in_old_units",
     "the state read times e^{F_i}, not e^{F_i + m − m_i}", _but_for(inter=lambda c: c.F)),
    (PLAIN, "floor_of_chunk_end", "e^{−m} with the m of the chunk's end", _of_end),
    (PLAIN, "floor_of_one", "max(|sᵀ q|, 1) in units of e^m", _but_for(floor=lambda c: 0 * c.rows)),
    (PLAIN, "input_gate_of_row", "i_i for i_j in the weight of j at i", _but_for(
        weights=lambda c: _masked(c, c.D - c.g.i[..., None, :] + c.g.i[..., :, None]))),
    (PLAIN, "own_gate_twice", "the weight of j at i also decays by log_f_j", _but_for(
        weights=lambda c: _masked(c, c.D + c.g.log_f[..., None, :]))),
    (PLAIN, "sums_of_step_before", "the sums of log_f without this step's", _but_for(
        sums=lambda c: np.cumsum(c.g.log_f, axis=-1) - c.g.log_f)),
    (PLAIN + STATEFUL + PACKED, "diagonal_masked", "step i does not see itself", _but_for(
        weights=lambda c: _masked(c, c.D, -1))),
    (PLAIN, "mask_one_late", "step i sees step i + 1 of its chunk", _but_for(
        weights=lambda c: np.where(np.tril(np.ones((c.size, c.size), bool), 1), c.F[..., :, None]
                                   - c.F[..., None, :] + c.g.i[..., None, :], -np.inf))),
    (PLAIN + STATEFUL + PACKED, "carry_undecayed",
     "the state before a chunk does not decay in it", _of(decay=lambda t: np.exp(t.c.m - t.m))),
    (PLAIN, "keys_undecayed_to_end", "keys in the next state without the decays to the chunk's end",
     _of(keys=lambda t: np.exp(t.c.g.i - t.m[..., None]))),
    (PLAIN, "keys_without_input_gate", "keys in the next state without e^i",
     _of(keys=lambda t: t.keys * np.exp(-t.c.g.i))),
    (PLAIN, "carry_lost", "each chunk begins at rest", _of(
        keys=lambda t: 0 * t.keys, decay=lambda t: 0 * t.decay)),
    (PLAIN, "tail_lost", "zeros for a last chunk that is not whole", _tail_lost),
)  # fmt: skip
FORMULA = InEach(in_any_form(programs.in_form))
FORMULA.plant(
    (PLAIN + STATEFUL + PACKED, "modulus_missing", "max(sᵀ q, e^{−m}): no modulus",
     programs.but_for(divide=lambda num, a, m: num / np.maximum(a, np.exp(-m))[..., None])),
    (PLAIN, "S_in_bfloat16", "S kept in bfloat16",
     programs.but_for(keep=lambda S, s, m: (bfloat16(S), s, m))),
    (PLAIN, "forget_gate_in_float16", "log_f rounded to float16", {"log_f": float16}),
)  # fmt: skip
STATE = InEach(_in_chunks)
STATE.plant(
    (STATEFUL, "padded_last_state", "the last state decays by the steps that pad the last chunk",
     _padded),
    (STATEFUL, "last_scale_zero", "zero for the last m, beside S in its units",
     lambda right, g, chunk: (*right(g, chunk)[:3], 0 * g.m0)),
    by="state",
)  # fmt: skip
OF_FORMS = InEach(programs.in_form)
OF_FORMS.plant(*lasts(core=2), of=STATEFUL, by="state")
OF_FORMS.plant(*starts("S0", core=2), of=STATEFUL)
OF_FORMS.plant(
    *(row for row in RESETS if row[0].removeprefix("reset_") in
      ("ignored", "late", "early", "at_block", "on_grid_16", "first_only")),
    of=PACKED,
)  # fmt: skip


def _every_other(chunk):
    """The cotangent that comes from the chunk after, lost for each second one."""

    def back(now):
        kept = now.t % (2 * chunk) != chunk
        return now.dS * kept, now.ds * kept

    return programs.but_for(back=back)


GRADIENTS = InEach(in_sequences(programs.in_gradient_form))
GRADIENTS.plant(
    *((PLAIN + STATEFUL + PACKED + SEQUENCES, *row) for row in (
        ("carry_constant",
         "the carry taken as a constant: no gradient from one step to the one before",
         programs.but_for(back=lambda now: (0 * now.dS, 0 * now.ds))),
        ("normaliser_constant", "the denominator taken as a constant",
         programs.but_for(denominator=lambda dd, now: 0 * dd)),
    )),
    (PLAIN, "cotangents_of_every_other_chunk", "state cotangents of each second chunk of 16 lost, "
     "as if states of larger chunks were stored", _every_other(16)),
    (STATEFUL, "ds0_missing", "ds0 = 0", {"s0": lambda g: 0 * g}),
    (STATEFUL, "ds_dropped", "the last s has no gradient", {"ds": lambda g: 0 * g}),
    by="gradient",
)  # fmt: skip
USUAL = Planting(PLAIN[0], "float32")
USUAL.usual()
_ANYWHERE = {bug.name for bug in USUAL.bugs}
# shortcuts of nearly equal gates show in `mlstm`, the same function
USUAL.bugs = [bug for bug in USUAL.bugs if not bug.name.endswith("_of_first")]
BUGS = [bug for p in (USUAL, CHUNKS, FORMULA, STATE, OF_FORMS, GRADIENTS) for bug in p.bugs]
BUGS += [bug for bug in planted_in(XLSTM_CHUNKED, "float32") if bug.name not in _ANYWHERE]
