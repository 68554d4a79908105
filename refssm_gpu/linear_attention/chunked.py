"""Mirrors of refssm.linear_attention.chunked in plain array code: rows of chunks of CHUNK steps.

A row is a few matrix products for all heads at once. The weights e^{G_i − G_j} are products of
decays: w ← e^{log_g_i} w, and 1 for step i itself. Chunks are always of CHUNK steps, so `chunk`
changes nothing. What a sequence does not see is selected, not multiplied by 0, and no row reads a
later step: NaN passes neither.
"""

from typing import NamedTuple

from refssm.linear_attention.chunked import CHUNKED
from refssm.linear_attention.rwkv6_chunked import RWKV6_BY_CHUNKS
from refssm.linear_attention.sweep import gates_keys
from refssm_gpu._algebra.parts import along, batch_of
from refssm_gpu._launching.arrays import Array, namespace, unbroadcast
from refssm_gpu._launching.checked import mirror
from refssm_gpu.linear_attention.reads_first import ReadsBefore

CHUNK = 64


class _Steps(NamedTuple):
    """The arguments, with all leading axes; `log_g` has an axis of keys, of length 1 or n."""

    q: Array
    k: Array
    v: Array
    log_g: Array
    beta: Array | None
    resets: Array


class _SeenByRow(NamedTuple):
    """What a step sees: the state before the chunk, then the steps up to itself."""

    weights: Array  # (…, 1 + i + 1, n or 1)
    seen: Array  # (…, 1 + i + 1, 1)
    keys: Array  # (…, i + 1, n): e^{G_i − G_j} k_j


def _rows(c: _Steps) -> list[_SeenByRow]:
    """The rows of a chunk."""
    xp, rows = namespace(c.k), []
    weights = xp.ones_like(c.log_g[..., :1, :])
    seen = xp.ones_like(c.resets[..., :1, None])
    for i in range(c.k.shape[-2]):
        begins = c.resets[..., i, None, None]
        seen = seen & ~begins
        decayed = xp.where(seen, xp.exp(c.log_g[..., i, None, :]) * weights, 0.0)
        weights = xp.concat([decayed, xp.ones_like(decayed[..., :1, :])], axis=-2)
        seen = xp.concat([seen, xp.ones_like(begins)], axis=-2)
        keys = xp.where(seen[..., 1:, :], weights[..., 1:, :] * c.k[..., : i + 1, :], 0.0)
        rows.append(_SeenByRow(weights, seen, keys))
    return rows


def _started(row: _SeenByRow, S: Array) -> Array:
    """e^{G_i} S, or 0."""
    xp = namespace(S)
    kept = xp.where(row.seen[..., :1, :], S, 0.0)
    return xp.matrix_transpose(row.weights[..., :1, :]) * kept


def _written(row: _SeenByRow, u: Array) -> Array:
    """What the steps of the same sequence have written."""
    return namespace(u).where(row.seen[..., 1 : 1 + u.shape[-2], :], u, 0.0)


def _read(S: Array, x: Array) -> Array:
    """Sᵀ x."""
    return (x[..., None, :] @ S)[..., 0, :]


def _weighed(keys: Array, x: Array) -> Array:
    """keys_j · x, for each j."""
    return (keys @ x[..., None])[..., 0]


def _chunk(c: _Steps, rows: list[_SeenByRow], S: Array):
    """The outputs, the errors and the writings of all steps, and the state after the last."""
    xp, y, z, u = namespace(S), [], [], c.v[..., :0, :]
    for i, row in enumerate(rows):
        before, error = _started(row, S), c.v[..., i, :]
        if c.beta is not None:
            error = error - _read(before, c.k[..., i, :])
            error = error - _read(_written(row, u), _weighed(row.keys[..., :i, :], c.k[..., i, :]))
        z.append(error)
        new = error if c.beta is None else c.beta[..., i, None] * error
        u = xp.concat([u, new[..., None, :]], axis=-2)
        P = _weighed(row.keys, c.q[..., i, :])
        y.append(_read(before, c.q[..., i, :]) + _read(_written(row, u), P))
    row = rows[-1]
    S = _started(row, S) + xp.matrix_transpose(row.keys) @ _written(row, u)
    return xp.stack(y, axis=-2), xp.stack(z, axis=-2), u, S


class _Sums:
    """Cotangents to which rows add."""

    def __init__(self, c: _Steps, dS: Array):
        xp = namespace(dS)
        self.u, self.k, self.log_g = xp.zeros_like(c.v), xp.zeros_like(c.k), xp.zeros_like(c.log_g)
        self.S = dS


def _chunk_back(c: _Steps, rows: list[_SeenByRow], S: Array, dy: Array, dS: Array):
    """The gradients of a chunk, and of the state before it."""
    xp, sums = namespace(S), _Sums(c, dS)
    _, z, u, _ = _chunk(c, rows, S)
    _through_last(rows[-1], u, S, dS, sums)
    dq, dv, dbeta = [], [], []
    for i in range(len(rows) - 1, -1, -1):
        given = rows[i], c.q[..., i, :], dy[..., i, :]
        dq.append(_through_row(*given, u[..., : i + 1, :], S, sums))
        dz = du = sums.u[..., i, :] + 0.0
        if c.beta is not None:
            dbeta.append(xp.sum(du * z[..., i, :], axis=-1))
            dz = c.beta[..., i, None] * du
            given = rows[i], c.k[..., i, :], -dz
            sums.k[..., i, :] += _through_row(*given, u[..., :i, :], S, sums)
        dv.append(dz)
    dq, dv = (xp.stack(x[::-1], axis=-2) for x in (dq, dv))
    found = {"q": dq, "k": sums.k, "v": dv, "log_g": sums.log_g}
    return found | ({"beta": xp.stack(dbeta[::-1], axis=-1)} if dbeta else {}), sums.S


def _through_row(
    row: _SeenByRow, x: Array, cotangent: Array, u: Array, S: Array, sums: _Sums
) -> Array:
    """The cotangent of a reader x of the state and of the writings u; adds the others."""
    xp, count = namespace(S), u.shape[-2]
    of_state = _weighed(_started(row, S), cotangent)
    sums.S = sums.S + _started(row, x[..., :, None] * cotangent[..., None, :])
    carried = (x * of_state)[..., None, :]
    if not count:
        _to_gates(row, carried, sums)
        return of_state
    keys, seen = row.keys[..., :count, :], row.seen[..., 1 : 1 + count, :]
    P = _weighed(keys, x)[..., None]
    dP = _weighed(_written(row, u), cotangent)[..., None]
    sums.u[..., :count, :] += xp.where(seen, P * cotangent[..., None, :], 0.0)
    of_keys = xp.where(seen, dP * x[..., None, :], 0.0)
    sums.k[..., :count, :] += row.weights[..., 1 : 1 + count, :] * of_keys
    _to_gates(row, xp.concat([carried, keys * of_keys], axis=-2), sums)
    return of_state + _read(keys, dP[..., 0])


def _through_last(row: _SeenByRow, u: Array, S: Array, dS: Array, sums: _Sums) -> None:
    """Back through the state after the chunk."""
    xp = namespace(S)
    sums.S = _started(row, dS)
    of_keys = _written(row, u) @ xp.matrix_transpose(dS)
    sums.u += row.keys @ dS
    sums.k += xp.where(row.seen[..., 1:, :], row.weights[..., 1:, :] * of_keys, 0.0)
    carried = xp.sum(_started(row, S) * dS, axis=-1)[..., None, :]
    _to_gates(row, xp.concat([carried, row.keys * of_keys], axis=-2), sums)


def _to_gates(row: _SeenByRow, through: Array, sums: _Sums) -> None:
    """Add to each log_g_t the sum of `through`_j over j < t."""
    xp, count = namespace(through), row.keys.shape[-2]
    if sums.log_g.shape[-1] == 1:
        through = xp.sum(through, axis=-1, keepdims=True)
    through = xp.where(row.seen[..., : through.shape[-2], :], through, 0.0)
    sums.log_g[..., :count, :] += xp.cumulative_sum(through, axis=-2)[..., :count, :]


class _ByChunks:
    """`run` and `back` of one recurrence."""

    def __init__(self, recurrence):
        self.names, self.keyed = (*recurrence.inputs,), gates_keys(recurrence.operators[0])

    def run(self, arguments, S0, resets, *, chunk=0):
        """All outputs, and the last state."""
        del chunk
        c, S = self._started(arguments, S0, resets)
        y = [c.v[..., :0, :]]
        for piece in _pieces(c):
            more, _, _, S = _chunk(piece, _rows(piece), S)
            y.append(more)
        return namespace(S).concat(y, axis=-2), S

    def back(self, cotangents, arguments, S0, resets, *, chunk=0):
        """Gradients for the arguments and S0."""
        del chunk
        c, start = self._started(arguments, S0, resets)
        xp, pieces, states = namespace(start), _pieces(c), [start]
        dy, dS = (*cotangents, xp.zeros_like(start))[:2]
        dy, dS = along(dy, start.shape[:-2], 2), along(dS, start.shape[:-2], 2)
        for piece in pieces[:-1]:
            states.append(_chunk(piece, _rows(piece), states[-1])[-1])
        found = []
        for i in range(len(pieces) - 1, -1, -1):
            first = i * CHUNK
            window = dy[..., first : first + pieces[i].v.shape[-2], :]
            more, dS = _chunk_back(pieces[i], _rows(pieces[i]), states[i], window, dS)
            found.append(more)
        first = start if S0 is None else S0
        gradients = [self._joined(n, found, x) for n, x in zip(self.names, arguments, strict=True)]
        return *gradients, unbroadcast(dS, first)

    def _joined(self, name, found, argument):
        """The gradient of one argument from those of all chunks, the last first."""
        xp = namespace(argument)
        if not found:
            return xp.zeros_like(argument)
        parts = [more[name] for more in found[::-1]]
        if name == "beta":
            return unbroadcast(xp.concat(parts, axis=-1), argument)
        joined = xp.concat(parts, axis=-2)
        one = name == "log_g" and not self.keyed
        return unbroadcast(joined[..., 0] if one else joined, argument)

    def _started(self, arguments, S0, resets):
        """The arguments and the first state with all leading axes."""
        told = dict(zip(self.names, arguments, strict=True))
        k, v, beta, log_g = told["k"], told["v"], told.get("beta"), told.get("log_g")
        xp = namespace(k)
        log_g = xp.zeros_like(k[..., :1]) if log_g is None else log_g
        log_g = log_g if self.keyed or "log_g" not in told else log_g[..., None]
        resets = xp.zeros((k.shape[-2],), dtype=xp.bool) if resets is None else resets
        S = xp.zeros((k.shape[-1], v.shape[-1]), dtype=v.dtype) if S0 is None else S0
        steps = told["q"], k, v, log_g
        others = [] if beta is None else [beta]
        batch = batch_of((*steps, S, resets, *others), [2] * 5 + [1] * (1 + len(others)))
        full = (along(x, batch, 2) for x in steps)
        beta = None if beta is None else along(beta, batch, 1)
        return _Steps(*full, beta, along(resets, batch, 1)), along(S, batch, 2)


def _pieces(c: _Steps) -> list[_Steps]:
    """The arguments chunk by chunk."""
    pieces, l = [], c.v.shape[-2]
    for first in range(0, l, CHUNK):
        w = slice(first, min(first + CHUNK, l))
        beta = None if c.beta is None else c.beta[..., w]
        q, k, v, log_g = (x[..., w, :] for x in (c.q, c.k, c.v, c.log_g))
        pieces.append(_Steps(q, k, v, log_g, beta, c.resets[..., w]))
    return pieces


def _mirrors(recurrence):
    made = _ByChunks(recurrence)
    return recurrence.mirrors(made.run, made.back, mirror)


GATED_LINEAR, DELTA, GATED_DELTA, KIMI = CHUNKED
(
    (gated_linear_recurrence_chunked, gated_linear_recurrence_chunked_vjp),
    (gated_linear_recurrence_chunked_stateful, gated_linear_recurrence_chunked_stateful_vjp),
    (gated_linear_recurrence_chunked_packed, gated_linear_recurrence_chunked_packed_vjp),
    (
        gated_linear_recurrence_chunked_packed_stateful,
        gated_linear_recurrence_chunked_packed_stateful_vjp,
    ),
) = _mirrors(GATED_LINEAR)
_FIRST = ReadsBefore(_ByChunks(GATED_LINEAR))
(
    (rwkv6_chunked, rwkv6_chunked_vjp),
    (rwkv6_chunked_stateful, rwkv6_chunked_stateful_vjp),
    (rwkv6_chunked_packed, rwkv6_chunked_packed_vjp),
    (rwkv6_chunked_packed_stateful, rwkv6_chunked_packed_stateful_vjp),
) = RWKV6_BY_CHUNKS.mirrors(_FIRST.run, _FIRST.back, mirror)
(
    (delta_rule_chunked, delta_rule_chunked_vjp),
    (delta_rule_chunked_stateful, delta_rule_chunked_stateful_vjp),
    (delta_rule_chunked_packed, delta_rule_chunked_packed_vjp),
    (delta_rule_chunked_packed_stateful, delta_rule_chunked_packed_stateful_vjp),
) = _mirrors(DELTA)
(
    (gated_delta_rule_chunked, gated_delta_rule_chunked_vjp),
    (gated_delta_rule_chunked_stateful, gated_delta_rule_chunked_stateful_vjp),
    (gated_delta_rule_chunked_packed, gated_delta_rule_chunked_packed_vjp),
    (gated_delta_rule_chunked_packed_stateful, gated_delta_rule_chunked_packed_stateful_vjp),
) = _mirrors(GATED_DELTA)
(
    (kimi_delta_rule_chunked, kimi_delta_rule_chunked_vjp),
    (kimi_delta_rule_chunked_stateful, kimi_delta_rule_chunked_stateful_vjp),
    (kimi_delta_rule_chunked_packed, kimi_delta_rule_chunked_packed_vjp),
    (kimi_delta_rule_chunked_packed_stateful, kimi_delta_rule_chunked_packed_stateful_vjp),
) = _mirrors(KIMI)
