"""Planted bugs of the stages of a chunk: masks, rates, decays, ends of chunks, carries."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.linear_attention.stage_programs import (
    KEYED,
    STAGES,
    but_for,
    decays,
    of_outputs,
    of_products,
    of_states,
    of_writes,
)
from refssm.conformance.planted.linear_attention.triangular import inverse
from refssm.conformance.planted.planting import Planting, instead, of_each_result

GATES, PRODUCTS, INVERSE, WRITES, STATES, OUTPUTS = (Planting(op, "float32") for op in STAGES)
OF_KEYS = tuple(Planting(op, "float32") for op in KEYED)
PLANTINGS = GATES, PRODUCTS, INVERSE, WRITES, STATES, OUTPUTS, *OF_KEYS
for _planting in PLANTINGS:
    _planting.usual()

GATES.plant(
    ("without_own", "G up to the step before",
     lambda right, log_g: right(log_g) - log_g),
    ("from_the_end", "sums from the last step on",
     lambda right, log_g: np.flip(right(np.flip(log_g, -1)), -1)),
    ("not_added", "log_g itself", lambda right, log_g: log_g.copy()),
    ("product", "the product of the gates", lambda right, log_g: np.exp(right(log_g))),
    ("base_two", "sums in base 2, as for exp2",
     lambda right, log_g: right(log_g) / log_g.dtype.type(np.log(2))),
    ("positive", "−G", lambda right, log_g: -right(log_g)),
    ("clipped", "sums clipped to −50", lambda right, log_g: np.maximum(right(log_g), -50)),
    ("steps_in_bfloat16", "log_g rounded to bfloat16", {"log_g": bfloat16}),
    ("sums_in_float16", "sums rounded to float16", of_each_result(float16)),
    ("begins_at_64", "sums begin anew at step 64", lambda right, log_g: np.concatenate(
        [right(log_g[..., w:w + 64]) for w in range(0, log_g.shape[-1], 64)], -1)),
    ("over_the_batch", "sums over the members of a batch, too",
     lambda right, log_g: np.cumsum(right(log_g), 0) if log_g.ndim > 1 else right(log_g)),
    ("slow_lost", "log_g above −1e-3 taken for 0",
     {"log_g": lambda x: np.where(x > -1e-3, 0, x).astype(x.dtype)}),
)  # fmt: skip
GATES.plant(
    ("from_the_start", "sums from the first step on",
     lambda right, dg, log_g: (np.cumsum(dg, -1),)),
    ("not_added", "dg itself", lambda right, dg, log_g: (dg.copy(),)),
    ("later_only", "Σ over i > j", lambda right, dg, log_g: (right(dg, log_g)[0] - dg,)),
    by="gradient",
)  # fmt: skip


def turned(g):
    """e^{G_j − G_i}, clipped so that it stays finite."""
    spans = g[..., None, :, :] - g[..., :, None, :]
    return np.exp(np.minimum(spans, 80)).astype(g.dtype)


def divided(g):
    """e^{G_i} · e^{−G_j}: infinite for j after decays of −88."""
    return np.exp(g)[..., :, None, :] * np.exp(-g)[..., None, :, :]


def clipped(g):
    """e^{G_i} · e^{min(−G_j, 80)}: finite and wrong after strong decays."""
    return np.exp(g)[..., :, None, :] * np.exp(np.minimum(-g, 80))[..., None, :, :]


def plain(g):
    """A plain triangle."""
    return np.ones_like(decays(g))


def from_start(g):
    """e^{G_i}: the decays from the start of the chunk."""
    return np.broadcast_to(np.exp(g)[..., :, None, :], decays(g).shape)


def own_step_too(g):
    """The decays of step j, too: e^{G_i − G_{j−1}}."""
    before = np.concatenate([np.zeros_like(g[..., :1, :]), g[..., :-1, :]], axis=-2)
    return np.exp(np.minimum(g[..., :, None, :] - before[..., None, :, :], 0))


def in_float16(g):
    """The exponents rounded to float16."""
    spans = np.minimum(g[..., :, None, :] - g[..., None, :, :], 0)
    return np.exp(float16(np.maximum(spans, -6e4)))


def _beta_on_columns(b):
    return b[..., None, :]


DECAYS = (
    ("triangle", "a plain triangle for e^{G_i − G_j}", plain),
    ("from_start", "e^{G_i} for e^{G_i − G_j}", from_start),
    ("turned", "e^{G_j − G_i}", turned),
    ("divided", "e^{G_i} · e^{−G_j}: infinite after strong decays", divided),
    ("divided_clipped", "e^{G_i} · e^{−G_j}, the second clipped to e^80", clipped),
    ("own_step_too", "the gate of step j counts, too", own_step_too),
    ("twice", "decays twice", lambda g: decays(g) ** 2),
    ("in_bfloat16", "decays rounded to bfloat16", lambda g: bfloat16(decays(g))),
    ("spans_in_float16", "G_i − G_j rounded to float16", in_float16),
)


def products(planting):
    """Bugs of L, for gates of heads or of keys."""

    def changed(**parts):
        return but_for(planting.op, of_products, **parts)

    planting.plant(
        *((name, what, changed(of_pairs=of)) for name, what, of in DECAYS),
        ("diagonal", "i ≥ j", changed(mask=np.tril)),
        ("above", "the part above the diagonal", changed(
            mask=lambda P: np.swapaxes(np.tril(P, -1), -1, -2))),
        ("symmetric", "both triangles", changed(mask=lambda P: np.tril(P, -1) + np.tril(P, -1).mT)),
        ("sign", "−L", changed(mask=lambda P: -np.tril(P, -1))),
        ("beta_on_columns", "β_j for β_i", changed(rate=_beta_on_columns)),
        ("beta_missing", "no β", changed(rate=lambda b: np.ones_like(b)[..., None])),
        ("beta_on_both", "β_i β_j", changed(rate=lambda b: b[..., :, None] * b[..., None, :])),
        ("beta_in_bfloat16", "β rounded to bfloat16", {"beta": bfloat16}),
        ("keys_normalised", "k / ‖k‖", {"k": _normalised}),
        ("keys_scaled", "k / √n", {"k": lambda k: k / k.dtype.type(np.sqrt(k.shape[-1]))}),
        ("beside_only", "only steps of the same 16", changed(mask=_of_blocks)),
    )  # fmt: skip
    planting.plant(
        ("masked_by_product", "0 · NaN above the diagonal", _masked_by_product), by="nan"
    )
    planting.plant(
        ("dk_of_rows", "dk without the part of columns", {"k": lambda d: d / 2}),
        ("dg_missing", "dg = 0", {"g": np.zeros_like}),
        ("dg_sign", "dg with the other sign", {"g": np.negative}),
        ("dbeta_with_beta", "dβ times β", lambda right, dL, k, g, beta: (
            *right(dL, k, g, beta)[:2], _like(right(dL, k, g, beta)[2] * beta, beta))),
        ("dL_unmasked", "the diagonal of dL counts in dk", _diagonal_in_dk),
        by="gradient",
    )  # fmt: skip


def _normalised(x):
    return x / np.sqrt((x**2).sum(-1, keepdims=True) + x.dtype.type(1e-6))


def _of_blocks(P):
    """The part below the diagonal, within blocks of 16."""
    block = np.arange(P.shape[-1]) // 16
    return np.tril(P, -1) * (block[:, None] == block)


def _masked_by_product(right, k, g, beta):
    L = right(k, g, beta)
    above = np.triu(np.ones(L.shape[-2:], L.dtype))
    return L + 0 * (above * (k.sum(-1)[..., :, None] + 0 * L))


def _of_first_key(g):
    return np.broadcast_to(g[..., :1], g.shape).copy()


def _mean(g):
    return np.broadcast_to(g.mean(-1, keepdims=True), g.shape).astype(g.dtype)


def _like(gradient, x):
    """A gradient of the shape of its argument: cases of gradients may broadcast."""
    while gradient.ndim > x.ndim:
        gradient = gradient.sum(0)
    axes = tuple(i for i, n in enumerate(x.shape) if n == 1 != gradient.shape[i])
    return gradient.sum(axes, keepdims=True) if axes else gradient


def _diagonal_in_dk(right, dL, k, g, beta):
    dk, dg, dbeta = right(dL, k, g, beta)
    d = beta * np.diagonal(dL, axis1=-2, axis2=-1)
    return dk + _like(2 * d[..., None] * k, k), dg, dbeta


products(PRODUCTS)


def _strict(L):
    return np.tril(L, -1)


def _eye(L):
    return np.eye(L.shape[-1], dtype=L.dtype)


def _neumann(terms):
    """(I − L)(I + L²)(I + L⁴)…, with so many factors, or as many as are needed."""

    def program(L):
        power, X = -_strict(L), _eye(L) - _strict(L)
        count = max(int(np.ceil(np.log2(max(L.shape[-1], 2)))), 1)
        for _ in range(count - 1 if terms is None else terms):
            power = power @ power
            X = X + X @ power
        return X

    return instead(program)


def _newton(steps_missing):
    """X ← X (2 I − (I + L) X) from I − L, some steps fewer than the length needs."""

    def program(L):
        M, X = _eye(L) + _strict(L), _eye(L) - _strict(L)
        count = max(int(np.ceil(np.log2(max(L.shape[-1], 2)))) - 1 - steps_missing, 0)
        for _ in range(count):
            X = X @ (2 * _eye(L) - M @ X)
        return X

    return instead(program)


def _blocks_alone(L):
    """The inverses of the diagonal blocks of 16, and what is between two neighbours."""
    X = np.zeros_like(L)
    for start in range(0, L.shape[-1], 16):
        w, past = slice(start, start + 16), slice(max(start - 16, 0), start)
        X[..., w, w] = inverse(_strict(L[..., w, w]))
        X[..., w, past] = -X[..., w, w] @ L[..., w, past] @ X[..., past, past]
    return X


def _merged_without(side):
    """Halves merged without the inverse on one side."""

    def program(L):
        X, half = inverse(_strict(L)), L.shape[-1] // 2
        first, second = X[..., :half, :half], X[..., half:, half:]
        between = L[..., half:, :half]
        X[..., half:, :half] = -(between @ first if side == "left" else second @ between)
        return X

    return instead(program)


INVERSE.plant(
    ("sign", "(I − L)⁻¹", lambda right, L: right(-L)),
    ("transposed", "the inverse transposed", lambda right, L: right(L).mT.copy()),
    ("not_inverted", "I + L", instead(lambda L: _eye(L) + _strict(L))),
    ("first_order", "I − L", instead(lambda L: _eye(L) - _strict(L))),
    ("second_order", "I − L + L²", instead(
        lambda L: _eye(L) - _strict(L) + _strict(L) @ _strict(L))),
    ("without_identity", "the inverse without its diagonal", instead(
        lambda L: inverse(_strict(L)) - _eye(L))),
    ("neumann", "(I − L)(I + L²)(I + L⁴)…: powers that are far larger than the inverse",
     _neumann(None)),
    ("neumann_cut", "(I − L)(I + L²)(I + L⁴)", _neumann(2)),
    ("newton_step_missing", "one step of Newton's method too few", _newton(1)),
    ("blocks_alone", "blocks of 16, of which only neighbours are joined", instead(_blocks_alone)),
    ("merged_without_left", "halves joined without the inverse of the second",
     _merged_without("left")),
    ("merged_without_right", "halves joined without the inverse of the first",
     _merged_without("right")),
    ("in_float16", "the inverse in float16", instead(lambda L: float16(inverse(float16(L))))),
    ("last_row_missing", "the last row left as that of I", lambda right, L: np.concatenate(
        [right(L)[..., :-1, :], np.broadcast_to(_eye(L)[-1:], (*L.shape[:-2], 1, L.shape[-1]))],
        axis=-2)),
)  # fmt: skip
INVERSE.plant(
    ("sign", "Xᵀ dX Xᵀ", {"L": np.negative}),
    ("untransposed", "−X dX X", lambda right, dX, L: (
        -np.tril(inverse(_strict(L)) @ dX @ inverse(_strict(L)), -1),)),
    ("unmasked", "also on the diagonal", lambda right, dX, L: (
        -np.tril(inverse(_strict(L)).mT @ dX @ inverse(_strict(L)).mT),)),
    ("one_side", "−Xᵀ dX", lambda right, dX, L: (
        -np.tril(inverse(_strict(L)).mT @ dX, -1),)),
    by="gradient",
)  # fmt: skip


def writes(planting):
    """Bugs of W and U."""

    def changed(**parts):
        return but_for(planting.op, of_writes, **parts)

    planting.plant(
        ("W_undecayed", "W without decays", changed(keys=lambda k, g: k)),
        ("W_decayed_twice", "e^{2G} for e^G", changed(keys=lambda k, g: np.exp(2 * g) * k)),
        ("W_decayed_after", "e^G on the rows of W", changed(
            keys=lambda k, g: k, W_after=lambda W, g: np.exp(g) * W)),
        ("W_growing", "e^{−G}", changed(keys=lambda k, g: np.exp(np.minimum(-g, 80)) * k)),
        ("W_to_end", "e^{G_end − G} for e^G", changed(
            keys=lambda k, g: np.exp(g[..., -1:, :] - g) * k)),
        ("W_without_own", "decays up to the step before", changed(keys=_decayed_before)),
        ("beta_missing_in_W", "W without β", changed(rate_of_W=np.ones_like)),
        ("beta_missing_in_U", "U without β", changed(rate_of_U=np.ones_like)),
        ("beta_twice_in_U", "β² in U", changed(rate_of_U=lambda b: b * b)),
        ("beta_on_rows", "β on the rows of U and W", _beta_on_rows),
        ("X_transposed", "Xᵀ for X", changed(of_X=lambda X: np.tril(X).mT)),
        ("X_strict", "X without its diagonal", changed(of_X=lambda X: np.tril(X, -1))),
        ("X_unused", "I for X", changed(of_X=lambda X: 0 * X + np.eye(X.shape[-1], dtype=X.dtype))),
        ("X_in_bfloat16", "X rounded to bfloat16", {"X": bfloat16}),
        ("decays_in_float16", "e^G rounded to float16", changed(
            keys=lambda k, g: float16(np.exp(g)) * k)),
        ("U_decayed", "e^G V in U", changed(values=lambda v, g: np.exp(g[..., :1]) * v)),
        ("U_of_squares", "v² for v", {"v": np.square}),
    )  # fmt: skip
    planting.plant(
        ("dX_unmasked", "dX above the diagonal, too", _dX_unmasked),
        ("dX_of_U", "dX without the part of W", lambda right, dW, dU, *arrays: (
            *right(dW, dU, *arrays)[:-1], right(0 * dW, dU, *arrays)[-1])),
        ("dbeta_of_U", "dβ without the part of W", lambda right, dW, dU, *arrays: _third(
            right(dW, dU, *arrays), right(0 * dW, dU, *arrays))),
        ("dg_missing", "dg = 0", {"g": np.zeros_like}),
        ("dv_without_beta", "dv without β", lambda right, dW, dU, k, v, g, beta, X: (
            right(dW, dU, k, v, g, beta, X)[0],
            right(dW, dU, k, v, g, np.ones_like(beta), X)[1],
            *right(dW, dU, k, v, g, beta, X)[2:])),
        by="gradient",
    )  # fmt: skip


def _third(gradients, others):
    """The gradients with another fourth one."""
    return *gradients[:3], others[3], gradients[4]


def _decayed_before(k, g):
    before = np.concatenate([np.zeros_like(g[..., :1, :]), g[..., :-1, :]], axis=-2)
    return np.exp(before) * k


def _beta_on_rows(right, k, v, g, beta, X):
    W, U = right(k, v, g, np.ones_like(beta), X)
    return beta[..., None] * W, beta[..., None] * U


def _dX_unmasked(right, dW, dU, k, v, g, beta, X):
    *others, dX = right(dW, dU, k, v, g, beta, X)
    full = dU @ (beta[..., None] * v).mT
    return *others, dX + _like(np.triu(full, 1), X)


writes(WRITES)


def states(planting):
    """Bugs from chunk to chunk."""

    def changed(**parts):
        return but_for(planting.op, of_states, **parts)

    planting.plant(
        ("W_S_missing", "U for U − W S", changed(new=lambda u, w, S: u + 0 * (w @ S))),
        ("W_S_added", "U + W S", changed(new=lambda u, w, S: u + w @ S)),
        ("new_not_shown", "U returned as the new values", changed(shown=lambda v, u: u + 0 * v)),
        ("carry_undecayed", "the state without the chunk's decay", changed(carry=lambda S, end: S)),
        ("carry_decayed_twice", "e^{2 G_end}", changed(
            carry=lambda S, end: np.exp(2 * end).mT * S)),
        ("keys_undecayed", "keys without the decays to the end", changed(
            keys=lambda k, g, end: k)),
        ("keys_from_start", "e^G for e^{G_end − G}", changed(
            keys=lambda k, g, end: np.exp(g) * k)),
        ("keys_divided", "e^{G_end} · e^{−G}: infinite after strong decays", changed(
            keys=lambda k, g, end: np.exp(end) * (np.exp(-g) * k))),
        ("end_of_first_chunk", "G_end of the first chunk for all", changed(
            end=lambda g, c: g[..., 0, -1:, :])),
        ("end_of_next_chunk", "G_end of the next chunk", changed(
            end=lambda g, c: g[..., min(c + 1, g.shape[-3] - 1), -1:, :])),
        ("states_after", "the states after the chunks", changed(kept=lambda before, S: S)),
        ("from_rest", "S not used", changed(start=lambda S, S0, c: S if c else 0 * S)),
        ("carry_lost", "each chunk begins with S", changed(start=lambda S, S0, c: S0)),
        ("state_in_bfloat16", "the state kept in bfloat16", changed(keep=bfloat16)),
        ("w_in_bfloat16", "w rounded to bfloat16", {"w": bfloat16}),
        ("transposed_where_square", "the state as values × keys where n = p", changed(
            keep=lambda S: S.mT if S.shape[-1] == S.shape[-2] else S)),
        ("last_before", "the state before the last chunk returned as the last", _last_before),
    )  # fmt: skip
    planting.plant(
        ("detached", "no gradient from the last state and later chunks to earlier ones", _detached),
        ("du_of_outputs", "du without the part through the states",
         lambda right, dstates, dnew, dlast, *arrays: (
             *right(dstates, dnew, dlast, *arrays)[:2], _like(dnew + 0, arrays[2]),
             *right(dstates, dnew, dlast, *arrays)[3:])),
        ("dw_sign", "dw with the other sign", {"w": np.negative}),
        ("dg_missing", "dg = 0", {"g": np.zeros_like}),
        ("dstates_dropped", "dstates left out", {"dstates": np.zeros_like}),
        ("dlast_dropped", "dlast left out", {"dlast": np.zeros_like}),
        by="gradient",
    )  # fmt: skip


def _last_before(right, *arrays):
    before, new, last = right(*arrays)
    return before, new, before[..., -1, :, :].copy() if before.shape[-3] else last


def _detached(right, dstates, dnew, dlast, k, w, u, g, S):
    """Each chunk alone, from its state."""
    before, *_ = (STAGES[4] if k.ndim > g.ndim else KEYED[2]).reference(k, w, u, g, S)
    m, found = k.shape[-3], []
    for c in range(m):
        now = slice(c, c + 1)
        cut = (dstates[..., now, :, :], dnew[..., now, :, :], dlast if c == m - 1 else 0 * dlast)
        gates = g[..., now, :] if k.ndim > g.ndim else g[..., now, :, :]
        given = (*(x[..., now, :, :] for x in (k, w, u)), gates, before[..., c, :, :])
        found.append(right(*cut, *given))
    axes = -3, -3, -3, -2 if k.ndim > g.ndim else -3
    joined = [
        np.concatenate(x, axis)
        for x, axis in zip([*zip(*found, strict=True)][:4], axes, strict=True)
    ]
    return *joined, _like(found[0][4], S)


states(STATES)


def outputs(planting):
    """Bugs of what queries read."""

    def changed(**parts):
        return but_for(planting.op, of_outputs, **parts)

    planting.plant(
        *((name, what, changed(of_pairs=of)) for name, what, of in DECAYS),
        ("own_step_missing", "i > j", changed(mask=lambda P: np.tril(P, -1))),
        ("later_seen", "no mask", changed(mask=lambda P: P + np.triu(np.ones_like(P), 1) * 1e-3)),
        ("transposed_P", "Pᵀ", changed(mask=lambda P: np.tril(P).mT)),
        ("queries_undecayed", "the state read without decays", changed(queries=lambda q, g: q)),
        ("queries_decayed_to_end", "e^{G_end − G} for e^G", changed(
            queries=lambda q, g: np.exp(g[..., -1:, :] - g) * q)),
        ("queries_decayed_before", "decays up to the step before", changed(
            queries=_decayed_before)),
        ("state_missing", "S not read", changed(state=lambda S: 0 * S)),
        ("state_in_bfloat16", "S rounded to bfloat16", {"S": bfloat16}),
        ("scaled", "q / √n", {"q": lambda q: q / q.dtype.type(np.sqrt(q.shape[-1]))}),
        ("values_in_bfloat16", "new values rounded to bfloat16", {"v": bfloat16}),
        ("transposed_where_square", "S as values × keys where n = p", changed(
            state=lambda S: S.mT if S.shape[-1] == S.shape[-2] else S)),
    )  # fmt: skip
    planting.plant(
        ("dv_sign", "dv with the other sign", {"v": np.negative}),
        ("dS_missing", "dS = 0", {"S": np.zeros_like}),
        ("dg_missing", "dg = 0", {"g": np.zeros_like}),
        ("dg_without_state", "dg without the part of the state",
         lambda right, dy, q, k, v, g, S: (
             *right(dy, q, k, v, g, S)[:3], right(dy, q, k, v, g, 0 * S)[3],
             right(dy, q, k, v, g, S)[4])),
        ("dq_of_state", "dq without the part of the chunk", lambda right, dy, q, k, v, g, S: (
            right(dy, q, k, 0 * v, g, S)[0], *right(dy, q, k, v, g, S)[1:])),
        by="gradient",
    )  # fmt: skip


outputs(OUTPUTS)
for _planting, _plant in zip(OF_KEYS, (products, writes, states, outputs), strict=True):
    _plant(_planting)
    _planting.plant(
        ("gate_of_first_key", "the gates of the first key for all", {"g": _of_first_key}),
        ("mean_gate", "the mean of the gates for all keys", {"g": _mean}),
    )
BUGS = [bug for planting in PLANTINGS for bug in planting.bugs]
