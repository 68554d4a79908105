"""The stages of a delta rule by chunks, with one gate a head: each is an operator of its own.

One chunk has l steps; G_i is the sum of log_g from its first step to step i, S the state before it.

    L = tril(β_i (k_i·k_j) e^{G_i − G_j}, −1),    X = (I + L)⁻¹,
    W = X β (e^G K),    U = X β V,    V' = U − W S,
    S' = e^{G_end} S + (e^{G_end − G} K)ᵀ V',    Y = (e^G Q) S + tril((q_i·k_j) e^{G_i − G_j}) V'

A kernel author judges one stage alone: `chunk_gates` makes G, `chunk_products` L, `chunk_inverse`
X, `chunk_writes` W and U, `chunk_states` S and V' of all chunks, `chunk_outputs` Y. Chunks are a
leading axis, but in `chunk_states`, which goes from chunk to chunk. `chunked` has the whole call:
it adds log_g from step to step, because differences of sums lose digits, and solves for V' itself
[yang2024gated, §3.3]. `stages_keyed` has the stages with a gate for each key.
"""

import numpy as np

from refssm._declaration.contract import TRIANGULAR
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each, with_batch
from refssm._numerics.contraction import einsum
from refssm._numerics.triangular import unit_lower_inverse
from refssm.domains import (
    betas,
    gate_sums,
    inverses_of_chunks,
    keys,
    log_gates,
    products_of_keys,
    queries,
    real_signals,
    real_states,
    values_of_chunks,
    writes_of_states,
)


def chunk_gates(log_g):
    """G_i = Σ_{j≤i} log_g_j: the gates of a chunk, added from its first step on.

    Signature ``(l)->(l)``: `log_g` the natural logarithms of the gates of `l` steps, time last;
    leading axes broadcast: chunks and heads, and keys if each has a gate. float32, float64 or
    longdouble; the result has the same type. Real, without a unit.

    Raises ValueError if `log_g` has no axis, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [yang2024gated, §3.3].

    >>> import refssm
    >>> refssm.chunk_gates([0.0, -1.0, -0.5]).tolist()
    [0.0, -1.0, -1.5]
    """
    return np.cumsum(log_g, axis=-1)


def chunk_gates_vjp(dg, log_g):
    """dlog_g_j = Σ_{i≥j} dg_i.

    Returns `(dlog_g,)`, shaped like the argument.
    """
    kind = np.result_type(dg, log_g)
    return (unbroadcast(np.flip(np.cumsum(np.flip(dg, -1), axis=-1, dtype=kind), -1), log_g),)


CHUNK_GATES = Operator(
    reference=chunk_gates,
    signature="(l)->(l)",
    inputs={"log_g": log_gates},
    outputs=("g",),
    batch="b h c",
    traits=frozenset({"causal", "linear:log_g"}),
    citation="yang2024gated, §3.3",
    tags=("chunk_local_cumsum", "cumulative gates of a chunk"),
)
chunk_gates = CHUNK_GATES.checked(chunk_gates)
chunk_gates_vjp = CHUNK_GATES.checked_vjp(chunk_gates_vjp)


def decays_between(g):
    """e^{G_i − G_j} for i ≥ j, else 0: never above 1, and no e^{−G_j} that overflows."""
    seen = np.tri(g.shape[-1], dtype=bool)
    spans = g[..., :, None] - g[..., None, :]
    return np.where(seen, np.exp(np.where(seen, spans, 0)), 0)


def of_later_and_earlier(T):
    """The cotangent of G from T_ij, that of the exponent G_i − G_j times its weight, i > j."""
    return T.sum(-1) - T.sum(-2)


def chunk_products(k, g, beta):
    """L_ij = β_i (k_i·k_j) e^{G_i − G_j} for i > j, else 0: what step i takes of step j.

    Signature ``(l,n),(l),(l)->(l,l)``: `k` the keys of a chunk, `g` the sums G of its gates'
    logarithms as `chunk_gates` makes them, not increasing; `beta` the rates; leading axes
    broadcast: chunks and heads. float32, float64 or longdouble; the result has their
    ``np.result_type``. All arguments are real and have no unit. The diagonal and all above is 0.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [yang2024gated, §3.3].

    >>> import refssm
    >>> refssm.chunk_products([[1.0], [0.5]], [0.0, 0.0], [1.0, 2.0]).tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    return np.tril(beta[..., :, None] * (_pairs(k, k) * decays_between(g)), -1)


def chunk_products_vjp(dL, k, g, beta):
    """With A_ij = (k_i·k_j) e^{G_i − G_j}, D_ij = β_i e^{G_i − G_j} dL_ij and T = L ∘ dL, i > j:
    dk = D k + Dᵀ k,  dG_i = Σ_j T_ij − Σ_j T_ji,  dβ_i = Σ_j A_ij dL_ij.

    Returns `(dk, dg, dbeta)`, shaped like the arguments.
    """
    E, dL = decays_between(g), np.tril(dL, -1)
    through = dL * (_pairs(k, k) * E)
    D = beta[..., :, None] * (E * dL)
    dk = _weighed(D, k) + _weighed(np.swapaxes(D, -1, -2), k)
    dg = of_later_and_earlier(beta[..., :, None] * through)
    return unbroadcast_each((dk, dg, through.sum(-1)), (k, g, beta))


def _pairs(q, k):
    """q_i·k_j."""
    return einsum("...in,...jn->...ij", q, k)


def _weighed(M, x):
    """M x, for rows x_j."""
    return einsum("...ij,...jp->...ip", M, x)


def lower_times(M, x):
    """M x for rows x_j with j ≤ i: no step sees what is NaN in a later one."""
    rows = [einsum("...j,...jp->...p", M[..., i, : i + 1], x[..., : i + 1, :])
            for i in range(x.shape[-2])]  # fmt: skip
    return np.stack(rows, axis=-2) if rows else _weighed(M, x)


CHUNK_PRODUCTS = Operator(
    reference=chunk_products,
    signature="(l,n),(l),(l)->(l,l)",
    inputs={"k": keys, "g": gate_sums, "beta": betas},
    outputs=("L",),
    batch="b h c, b h c, b h c",
    traits=frozenset({"matrix-product", "linear:beta"}),
    citation="yang2024gated, §3.3",
    tags=("chunk_scaled_dot_kkt_fwd", "scaled k kᵀ of a chunk"),
)
chunk_products = CHUNK_PRODUCTS.checked(chunk_products)
chunk_products_vjp = CHUNK_PRODUCTS.checked_vjp(chunk_products_vjp)


def chunk_inverse(L):
    """X = (I + L)⁻¹ of the part of L below its diagonal.

    Signature ``(l,l)->(l,l)``: `L` as `chunk_products` makes it; what is on the diagonal and above
    is not read, so its gradient is 0. X is 1 on its diagonal and 0 above it. Leading axes
    broadcast: chunks and heads. float32, float64 or longdouble; the result has the same type. Real,
    without a unit. For keys with ‖k‖ ≤ 1 and β‖k‖² ≤ 2 no entry of X is above 2 in modulus.

    Raises ValueError if L is not square, TypeError for other types. NaN and infinity propagate
    without warnings, and may spread over the matrix. Source: [yang2024delta, §3.2].

    >>> import refssm
    >>> refssm.chunk_inverse([[0.0, 0.0], [0.5, 0.0]]).tolist()
    [[1.0, 0.0], [-0.5, 1.0]]
    """
    return unit_lower_inverse(L)


def chunk_inverse_vjp(dX, L):
    """dL = −Xᵀ dX Xᵀ below the diagonal, else 0.

    Returns `(dL,)`, shaped like the argument.
    """
    turned = np.swapaxes(unit_lower_inverse(L), -1, -2)
    return (unbroadcast(-np.tril(turned @ dX @ turned, -1), L),)


CHUNK_INVERSE = Operator(
    reference=chunk_inverse,
    signature="(l,l)->(l,l)",
    inputs={"L": products_of_keys},
    outputs=("X",),
    batch="b h c",
    contract=TRIANGULAR,
    citation="yang2024delta, §3.2",
    tags=("solve_tril", "inverse of I + tril(k kᵀ)", "UT transform"),
)
chunk_inverse = CHUNK_INVERSE.checked(chunk_inverse)
chunk_inverse_vjp = CHUNK_INVERSE.checked_vjp(chunk_inverse_vjp)


def chunk_writes(k, v, g, beta, X):
    """W = X β (e^G K),  U = X β V: what the steps of a chunk take from S, and what they write.

    Signature ``(l,n),(l,p),(l),(l),(l,l)->(l,n),(l,p)``: `k` the keys of a chunk, `v` its values,
    `g` the sums of its gates' logarithms, `beta` the rates, `X` the inverse that `chunk_inverse`
    makes: what is above its diagonal is not read, so its gradient is 0. Leading axes broadcast:
    chunks and heads. float32, float64 or longdouble; the results have their ``np.result_type``. All
    arguments are real. Units: U has that of `v`, the others have none.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [yang2024gated, §3.3].

    >>> import refssm
    >>> one, X = [[1.0], [1.0]], [[1.0, 0.0], [-0.5, 1.0]]
    >>> W, U = refssm.chunk_writes(one, [[1.0], [2.0]], [0.0, 0.0], [1.0, 0.5], X)
    >>> W.ravel(), U.ravel()
    (array([1., 0.]), array([1. , 0.5]))
    """
    return writes_of(np.exp(g)[..., None], k, v, beta, X)


def chunk_writes_vjp(dW, dU, k, v, g, beta, X):
    """With dC = Xᵀ dW and dB = Xᵀ dU:  dk = β e^G dC,  dv = β dB,  dG_i = β_i e^{G_i} dC_i·k_i,
    dβ_i = e^{G_i} dC_i·k_i + dB_i·v_i,  dX = dW (β e^G K)ᵀ + dU (β V)ᵀ up to the diagonal.

    Returns `(dk, dv, dg, dbeta, dX)`, shaped like the arguments.
    """
    dk, dv, dg, dbeta, dX = writes_back(dW, dU, np.exp(g)[..., None], k, v, beta, X)
    return unbroadcast_each((dk, dv, dg.sum(-1), dbeta, dX), (k, v, g, beta, X))


def writes_of(E, k, v, beta, X):
    """W and U for E = e^G, which has an axis of keys."""
    beta, kind = beta[..., None], np.result_type(E, k, v, beta, X)
    W, U = (lower_times(X, beta * rows).astype(kind) for rows in (E * k, v))
    batch = np.broadcast_shapes(W.shape[:-2], U.shape[:-2])
    return with_batch(W, 2, batch), with_batch(U, 2, batch)


def writes_back(dW, dU, E, k, v, beta, X):
    """The cotangents of k, v, G of each key, β and X."""
    X, rate = np.tril(X), beta[..., None]
    dC, dB = (_weighed(np.swapaxes(X, -1, -2), d) for d in (dW, dU))
    decayed = E * k
    dX = np.tril(_pairs(dW, rate * decayed) + _pairs(dU, rate * v))
    through = dC * decayed
    dbeta = through.sum(-1) + (dB * v).sum(-1)
    return rate * (E * dC), rate * dB, rate * through, dbeta, dX


CHUNK_WRITES = Operator(
    reference=chunk_writes,
    signature="(l,n),(l,p),(l),(l),(l,l)->(l,n),(l,p)",
    inputs={"k": keys, "v": real_signals, "g": gate_sums, "beta": betas, "X": inverses_of_chunks},
    outputs=("W", "U"),
    batch="b h c, b h c, b h c, b h c, b h c",
    traits=frozenset({"matrix-product", "linear:X", "linear:beta", "linear:v->U", "linear:k->W"}),
    citation="yang2024gated, §3.3",
    tags=("recompute_w_u_fwd", "w and u of a chunk", "WY representation"),
)
chunk_writes = CHUNK_WRITES.checked(chunk_writes)
chunk_writes_vjp = CHUNK_WRITES.checked_vjp(chunk_writes_vjp)


def chunk_states(k, w, u, g, S):
    """V' = U − W S,  S ← e^{G_end} S + (e^{G_end − G} K)ᵀ V': the states before the chunks, the
    new values, and the last state.

    Signature ``(m,l,n),(m,l,n),(m,l,p),(m,l),(n,p)->(m,n,p),(m,l,p),(n,p)``: of each of `m` chunks
    `k` are the keys, `w` and `u` what `chunk_writes` makes, `g` the sums of the gates' logarithms;
    `S` is the state before the first chunk; leading axes broadcast: heads. float32, float64 or
    longdouble; the results have their ``np.result_type``. All arguments are real. Units: `k`, `w`
    and `g` have none, the others have those of the values.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [yang2024gated, §3.3].

    >>> import refssm
    >>> one = [[[1.0]], [[1.0]]]
    >>> states, new, last = refssm.chunk_states(one, one, one, [[0.0], [0.0]], [[4.0]])
    >>> states.ravel(), new.ravel(), last
    (array([4., 1.]), array([-3.,  0.]), array([[1.]]))
    """
    return states_of(k, w, u, g[..., None], S)


def chunk_states_vjp(dstates, dnew, dlast, k, w, u, g, S):
    """From the last chunk to the first, with dS of the state after it and K̃ = e^{G_end − G} K:
    dV' ← dV' + K̃ dS,  du = dV',  dw = −dV' Sᵀ,  dk = e^{G_end − G} (V' dSᵀ),
    dG_i = −Σ_n K̃_in (V' dSᵀ)_in,  dG_end also e^{G_end} Σ S ∘ dS − Σ_i dG_i,
    dS ← e^{G_end} dS − Wᵀ dV' + dstates.

    Returns `(dk, dw, du, dg, dS)`, shaped like the arguments.
    """
    dk, dw, du, dg, dS = states_back(dstates, dnew, dlast, k, w, u, g[..., None], S)
    return unbroadcast_each((dk, dw, du, dg.sum(-1), dS), (k, w, u, g, S))


def _decays_to_end(g):
    """e^{G_end} as (…, n, 1) and e^{G_end − G} as (…, l, n), of one chunk; n may be 1."""
    end = g[..., -1:, :] if g.shape[-2] else np.zeros_like(g, shape=(*g.shape[:-2], 1, g.shape[-1]))
    return np.swapaxes(np.exp(end), -1, -2), np.exp(end - g)


def _run(k, w, u, g, S):
    """S with all leading axes, the states before the chunks, and the new values."""
    leading = (x.shape[:-3] for x in (k, w, u, g))
    batch, kind = np.broadcast_shapes(*leading, S.shape[:-2]), np.result_type(k, w, u, g, S)
    S, before, new = with_batch(S.astype(kind), 2, batch), [], []
    for c in range(k.shape[-3]):
        whole, to_end = _decays_to_end(g[..., c, :, :])
        before.append(S)
        new.append(u[..., c, :, :] - _weighed(w[..., c, :, :], S))
        S = whole * S + einsum("...jn,...jp->...np", to_end * k[..., c, :, :], new[-1])
    return S, before, new


def states_of(k, w, u, g, S):
    """The three outputs for G with an axis of keys."""
    last, before, new = _run(k, w, u, g, S)
    if not before:
        none = np.zeros_like(last, shape=(*last.shape[:-2], 0, *last.shape[-2:]))
        return none, np.zeros_like(none, shape=(*last.shape[:-2], *u.shape[-3:])), last
    return np.stack(before, axis=-3), np.stack(new, axis=-3), last


def states_back(dstates, dnew, dS, k, w, u, g, S):
    """The cotangents of k, w, u, G of each key, and S."""
    _, before, new = _run(k, w, u, g, S)
    found = []
    for c in range(k.shape[-3] - 1, -1, -1):
        whole, to_end = _decays_to_end(g[..., c, :, :])
        kept, written = before[c], new[c]
        decayed = to_end * k[..., c, :, :]
        dv = dnew[..., c, :, :] + _weighed(decayed, dS)
        of_keys = einsum("...jp,...np->...jn", written, dS)
        through = decayed * of_keys
        carried = np.swapaxes(whole * (kept * dS).sum(-1, keepdims=True), -1, -2)
        dw = -einsum("...jp,...np->...jn", dv, kept)
        earlier = through[..., :-1, :]  # the last step has the exponent G_end − G_end
        ended = carried + earlier.sum(-2, keepdims=True)
        dg = np.concatenate([-earlier, ended], axis=-2)[..., : k.shape[-2], :]
        found.append((to_end * of_keys, dw, dv, dg))
        dS = whole * dS - einsum("...jn,...jp->...np", w[..., c, :, :], dv)
        dS = dS + dstates[..., c, :, :]
    if not found:
        return (*(np.zeros_like(x) for x in (k, w, u, g)), dS)
    joined = [np.stack(parts[::-1], axis=-3) for parts in zip(*found, strict=True)]
    return *joined, dS


CHUNK_STATES = Operator(
    reference=chunk_states,
    signature="(m,l,n),(m,l,n),(m,l,p),(m,l),(n,p)->(m,n,p),(m,l,p),(n,p)",
    inputs={
        "k": keys,
        "w": writes_of_states,
        "u": values_of_chunks,
        "g": gate_sums,
        "S": real_states,
    },
    outputs=("states", "new", "last"),
    batch="b h, b h, b h, b h, b h",
    traits=frozenset({"causal", "linear:u,S"}),
    citation="yang2024gated, §3.3",
    tags=("chunk_gated_delta_rule_fwd_h", "states before the chunks of a delta rule"),
)
chunk_states = CHUNK_STATES.checked(chunk_states)
chunk_states_vjp = CHUNK_STATES.checked_vjp(chunk_states_vjp)


def chunk_outputs(q, k, v, g, S):
    """Y = (e^G Q) S + P V with P_ij = (q_i·k_j) e^{G_i − G_j}, i ≥ j: what queries read.

    Signature ``(l,n),(l,n),(l,p),(l),(n,p)->(l,p)``: `q` the queries of a chunk, scaled before, `k`
    its keys, `v` the new values that `chunk_states` makes, `g` the sums of its gates' logarithms,
    `S` the state before it; leading axes broadcast: chunks and heads. float32, float64 or
    longdouble; the result has their ``np.result_type``. All arguments are real. Units: `k` and `g`
    have none, the result has those of q·v.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [yang2024gated, §3.3].

    >>> import refssm
    >>> one = [[1.0], [1.0]]
    >>> refssm.chunk_outputs(one, one, [[1.0], [2.0]], [0.0, 0.0], [[4.0]]).ravel()
    array([5., 7.])
    """
    P = _pairs(q, k) * decays_between(g)
    return _weighed(np.exp(g)[..., None] * q, S) + lower_times(P, v)


def chunk_outputs_vjp(dy, q, k, v, g, S):
    """With D_ij = e^{G_i − G_j} dy_i·v_j, i ≥ j, and T_ij = (q_i·k_j) D_ij, i > j:
    dq = D k + e^G (dY Sᵀ),  dk = Dᵀ q,  dv = Pᵀ dY,  dS = (e^G Q)ᵀ dY,
    dG_i = Σ_j T_ij − Σ_j T_ji + e^{G_i} q_i·(dY Sᵀ)_i.

    Returns `(dq, dk, dv, dg, dS)`, shaped like the arguments.
    """
    E, decays, scores = np.exp(g)[..., None], decays_between(g), _pairs(q, k)
    D = np.tril(decays * _pairs(dy, v))
    read = E * einsum("...ip,...np->...in", dy, S)
    dq, dk = _weighed(D, k) + read, _weighed(np.swapaxes(D, -1, -2), q)
    dv = _weighed(np.swapaxes(np.tril(scores * decays), -1, -2), dy)
    dg = of_later_and_earlier(np.tril(scores * D, -1)) + (q * read).sum(-1)
    dS = einsum("...in,...ip->...np", E * q, dy)
    return unbroadcast_each((dq, dk, dv, dg, dS), (q, k, v, g, S))


CHUNK_OUTPUTS = Operator(
    reference=chunk_outputs,
    signature="(l,n),(l,n),(l,p),(l),(n,p)->(l,p)",
    inputs={"q": queries, "k": keys, "v": real_signals, "g": gate_sums, "S": real_states},
    batch="b h c, b h c, b h c, b h c, b h c",
    traits=frozenset({"causal", "matrix-product", "quadratic", "linear:q", "linear:v,S"}),
    citation="yang2024gated, §3.3",
    tags=("chunk_fwd_o", "outputs of a chunk"),
)
chunk_outputs = CHUNK_OUTPUTS.checked(chunk_outputs)
chunk_outputs_vjp = CHUNK_OUTPUTS.checked_vjp(chunk_outputs_vjp)
