"""The stages of a delta rule by chunks, with a gate for each key [kimi2025linear, §3.1].

As `stages`, but G has a sum for each key, so that decays cannot be taken out of the product of two
keys: L_ij = β_i Σ_n k_in k_jn e^{G_in − G_jn}. Pairs are made row by row, for an array of all of
them would have l² n entries. `chunk_gates` and `chunk_inverse` are the same.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.contraction import einsum
from refssm.domains import (
    betas,
    gate_sums_of_keys,
    inverses_of_chunks,
    keys,
    queries,
    real_signals,
    real_states,
    values_of_chunks,
    writes_of_states,
)
from refssm.linear_attention.stages import (
    lower_times,
    states_back,
    states_of,
    writes_back,
    writes_of,
)


def _row(g, i):
    """e^{G_i − G_j} for j ≤ i."""
    return np.exp(g[..., i : i + 1, :] - g[..., : i + 1, :])


def _paired(q, k, g):
    """The matrix P_ij = Σ_n q_in k_jn e^{G_in − G_jn} for i ≥ j, else 0."""
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], g.shape[:-2])
    l, kind = k.shape[-2], np.result_type(q, k, g)
    rows = [np.zeros_like(k, shape=(*batch, 0, l), dtype=kind)]
    for i in range(l):
        P = einsum("...jn,...n->...j", _row(g, i) * k[..., : i + 1, :], q[..., i, :])
        later = np.zeros_like(P, shape=(*batch, l - i - 1))
        rows.append(np.concatenate([P, later], axis=-1)[..., None, :])
    return np.concatenate(rows, axis=-2)


def _paired_back(dP, q, k, g):
    """The cotangents of q, k and G through P; dP is 0 above the diagonal."""
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in (dP, q, k, g)))
    kind = np.result_type(dP, q, k, g)
    dk = np.zeros_like(k, shape=(*batch, *k.shape[-2:]), dtype=kind)
    dq, dg = [dk[..., :0, :]], np.zeros_like(dk)
    for i in range(k.shape[-2]):
        decays, d = _row(g, i), dP[..., i, : i + 1, None]
        of_query = decays * k[..., : i + 1, :]
        dq.append((d * of_query).sum(-2)[..., None, :])
        dk[..., : i + 1, :] += d * (decays * q[..., i, None, :])
        through = (d * of_query * q[..., i, None, :])[..., :i, :]  # a step and itself: no decay
        dg[..., i, :] += through.sum(-2)
        dg[..., :i, :] = dg[..., :i, :] - through
    return np.concatenate([np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in dq], -2), dk, dg


def chunk_products_keyed(k, g, beta):
    """L_ij = β_i Σ_n k_in k_jn e^{G_in − G_jn} for i > j, else 0: what step i takes of step j.

    Signature ``(l,n),(l,n),(l)->(l,l)``: as `chunk_products`, with the sums `g` of the gates of
    each key; types, units and errors are the same. Source: [kimi2025linear, §3.1].

    >>> import refssm
    >>> k = [[1.0, 1.0], [0.5, 0.5]]
    >>> L = refssm.chunk_products_keyed(k, [[0.0, 0.0], [0.0, -1e4]], [1.0, 2.0])
    >>> L.tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    return np.tril(beta[..., :, None] * _paired(k, k, g), -1)


def chunk_products_keyed_vjp(dL, k, g, beta):
    """With A_ij = Σ_n k_in k_jn e^{G_in − G_jn} and D_ij = β_i dL_ij, i > j: dβ_i = Σ_j A_ij dL_ij;
    a pair gives D_ij e^{G_in − G_jn} k_jn to dk_in, the same with k_in to dk_jn, and D_ij k_in
    k_jn e^{G_in − G_jn} to dG_in and, with the other sign, to dG_jn.

    Returns `(dk, dg, dbeta)`, shaped like the arguments.
    """
    dL = np.tril(dL, -1)
    dbeta = (dL * _paired(k, k, g)).sum(-1)
    later, earlier, dg = _paired_back(beta[..., :, None] * dL, k, k, g)
    return unbroadcast_each((later + earlier, dg, dbeta), (k, g, beta))


CHUNK_PRODUCTS_KEYED = Operator(
    reference=chunk_products_keyed,
    signature="(l,n),(l,n),(l)->(l,l)",
    inputs={"k": keys, "g": gate_sums_of_keys, "beta": betas},
    outputs=("L",),
    batch="b h c, b h c, b h c",
    traits=frozenset({"matrix-product", "linear:beta"}),
    citation="kimi2025linear, §3.1",
    tags=("k kᵀ of a chunk of KDA", "k kᵀ of a chunk with a gate for each key"),
)
chunk_products_keyed = CHUNK_PRODUCTS_KEYED.checked(chunk_products_keyed)
chunk_products_keyed_vjp = CHUNK_PRODUCTS_KEYED.checked_vjp(chunk_products_keyed_vjp)


def chunk_writes_keyed(k, v, g, beta, X):
    """W = X β (e^G ∘ K),  U = X β V: what the steps take from S, and what they write.

    Signature ``(l,n),(l,p),(l,n),(l),(l,l)->(l,n),(l,p)``: as `chunk_writes`, with the sums `g` of
    the gates of each key; types, units and errors are the same. Source: [kimi2025linear, §3.1].

    >>> import refssm
    >>> W, U = refssm.chunk_writes_keyed([[1.0, 1.0]], [[3.0]], [[0.0, -1e4]], [1.0], [[1.0]])
    >>> W.tolist(), U.tolist()
    ([[1.0, 0.0]], [[3.0]])
    """
    return writes_of(np.exp(g), k, v, beta, X)


def chunk_writes_keyed_vjp(dW, dU, k, v, g, beta, X):
    """With dC = Xᵀ dW and dB = Xᵀ dU:  dk = β e^G dC,  dv = β dB,  dG = β e^G dC ∘ k,
    dβ_i = Σ_n e^{G_in} dC_in k_in + dB_i·v_i,  dX = dW (β e^G K)ᵀ + dU (β V)ᵀ up to the diagonal.

    Returns `(dk, dv, dg, dbeta, dX)`, shaped like the arguments.
    """
    gradients = writes_back(dW, dU, np.exp(g), k, v, beta, X)
    return unbroadcast_each(gradients, (k, v, g, beta, X))


CHUNK_WRITES_KEYED = Operator(
    reference=chunk_writes_keyed,
    signature="(l,n),(l,p),(l,n),(l),(l,l)->(l,n),(l,p)",
    inputs={
        "k": keys,
        "v": real_signals,
        "g": gate_sums_of_keys,
        "beta": betas,
        "X": inverses_of_chunks,
    },
    outputs=("W", "U"),
    batch="b h c, b h c, b h c, b h c, b h c",
    traits=frozenset({"matrix-product", "linear:X", "linear:beta", "linear:v->U", "linear:k->W"}),
    citation="kimi2025linear, §3.1",
    tags=("recompute_w_u_fwd kda", "w and u of a chunk with a gate for each key"),
)
chunk_writes_keyed = CHUNK_WRITES_KEYED.checked(chunk_writes_keyed)
chunk_writes_keyed_vjp = CHUNK_WRITES_KEYED.checked_vjp(chunk_writes_keyed_vjp)


def chunk_states_keyed(k, w, u, g, S):
    """V' = U − W S,  S ← diag(e^{G_end}) S + (e^{G_end − G} ∘ K)ᵀ V': the states before the chunks,
    the new values, and the last state.

    Signature ``(m,l,n),(m,l,n),(m,l,p),(m,l,n),(n,p)->(m,n,p),(m,l,p),(n,p)``: as `chunk_states`,
    with the sums `g` of the gates of each key; types, units and errors are the same. Source:
    [kimi2025linear, §3.1].

    >>> import refssm
    >>> one = [[[1.0, 1.0]]]
    >>> states, new, last = refssm.chunk_states_keyed(
    ...     one, one, [[[8.0]]], [[[0.0, -1e4]]], [[4.0], [1.0]])
    >>> states.ravel(), new.ravel(), last.ravel()
    (array([4., 1.]), array([3.]), array([7., 3.]))
    """
    return states_of(k, w, u, g, S)


def chunk_states_keyed_vjp(dstates, dnew, dlast, k, w, u, g, S):
    """From the last chunk to the first, with dS of the state after it and K̃ = e^{G_end − G} ∘ K:
    dV' ← dV' + K̃ dS,  du = dV',  dw = −dV' Sᵀ,  dk = e^{G_end − G} ∘ (V' dSᵀ),
    dG = −K̃ ∘ (V' dSᵀ),  dG_end also e^{G_end} Σ_p S ∘ dS − Σ_i dG_i,
    dS ← diag(e^{G_end}) dS − Wᵀ dV' + dstates.

    Returns `(dk, dw, du, dg, dS)`, shaped like the arguments.
    """
    gradients = states_back(dstates, dnew, dlast, k, w, u, g, S)
    return unbroadcast_each(gradients, (k, w, u, g, S))


CHUNK_STATES_KEYED = Operator(
    reference=chunk_states_keyed,
    signature="(m,l,n),(m,l,n),(m,l,p),(m,l,n),(n,p)->(m,n,p),(m,l,p),(n,p)",
    inputs={
        "k": keys,
        "w": writes_of_states,
        "u": values_of_chunks,
        "g": gate_sums_of_keys,
        "S": real_states,
    },
    outputs=("states", "new", "last"),
    batch="b h, b h, b h, b h, b h",
    traits=frozenset({"causal", "linear:u,S"}),
    citation="kimi2025linear, §3.1",
    tags=("chunk_gated_delta_rule_fwd_h gk", "states before the chunks of KDA"),
)
chunk_states_keyed = CHUNK_STATES_KEYED.checked(chunk_states_keyed)
chunk_states_keyed_vjp = CHUNK_STATES_KEYED.checked_vjp(chunk_states_keyed_vjp)


def chunk_outputs_keyed(q, k, v, g, S):
    """Y = (e^G ∘ Q) S + P V with P_ij = Σ_n q_in k_jn e^{G_in − G_jn}, i ≥ j: what queries read.

    Signature ``(l,n),(l,n),(l,p),(l,n),(n,p)->(l,p)``: as `chunk_outputs`, with the sums `g` of the
    gates of each key; types, units and errors are the same. Source: [kimi2025linear, §3.1].

    >>> import refssm
    >>> one = [[1.0, 1.0]]
    >>> refssm.chunk_outputs_keyed(one, one, [[3.0]], [[0.0, -1e4]], [[4.0], [5.0]]).ravel()
    array([10.])
    """
    E = np.exp(g)
    return einsum("...in,...np->...ip", E * q, S) + lower_times(_paired(q, k, g), v)


def chunk_outputs_keyed_vjp(dy, q, k, v, g, S):
    """With D_ij = dy_i·v_j, i ≥ j: dv = Pᵀ dY,  dS = (e^G ∘ Q)ᵀ dY,  dq_i = Σ_jn D_ij e^{G_in −
    G_jn} k_jn + e^{G_i} ∘ (S dy_i),  dk_jn = Σ_i D_ij e^{G_in − G_jn} q_in; a pair i > j gives
    D_ij q_in k_jn e^{G_in − G_jn} to dG_in and, with the other sign, to dG_jn.

    Returns `(dq, dk, dv, dg, dS)`, shaped like the arguments.
    """
    E, D = np.exp(g), np.tril(einsum("...ip,...jp->...ij", dy, v))
    read = E * einsum("...ip,...np->...in", dy, S)
    dq, dk, dg = _paired_back(D, q, k, g)
    dv = einsum("...ij,...ip->...jp", _paired(q, k, g), dy)
    dS = einsum("...in,...ip->...np", E * q, dy)
    return unbroadcast_each((dq + read, dk, dv, dg + q * read, dS), (q, k, v, g, S))


CHUNK_OUTPUTS_KEYED = Operator(
    reference=chunk_outputs_keyed,
    signature="(l,n),(l,n),(l,p),(l,n),(n,p)->(l,p)",
    inputs={
        "q": queries,
        "k": keys,
        "v": real_signals,
        "g": gate_sums_of_keys,
        "S": real_states,
    },
    batch="b h c, b h c, b h c, b h c, b h c",
    traits=frozenset({"causal", "matrix-product", "quadratic", "linear:q", "linear:v,S"}),
    citation="kimi2025linear, §3.1",
    tags=("outputs of a chunk of KDA", "outputs of a chunk with a gate for each key"),
)
chunk_outputs_keyed = CHUNK_OUTPUTS_KEYED.checked(chunk_outputs_keyed)
chunk_outputs_keyed_vjp = CHUNK_OUTPUTS_KEYED.checked_vjp(chunk_outputs_keyed_vjp)
