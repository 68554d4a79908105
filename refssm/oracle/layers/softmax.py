"""Oracles of softmax attention, query by query, over the list of all keys and values so far."""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp

from refssm.oracle.layers.attention import _merged
from refssm.oracle.layers.systems import _product, _zeros


def attention_layer(u, W_q, W_k, W_v, bias, W_out):
    """From rest: no place of the cache holds a step."""
    t = len(bias[0])
    K, V = ([[_zeros(len(W_g[0])) for _ in range(t)] for W_g in W] for W in (W_k, W_v))
    return attention_layer_stateful(u, W_q, W_k, W_v, bias, W_out, K, V, _zeros(t))[0]


def attention_layer_stateful(u, W_q, W_k, W_v, bias, W_out, K0, V0, seen0):
    """The new key and value at the end of the cache, the oldest dropped; then the weighted mean."""
    K, V, seen, out = K0, V0, seen0, []
    for row in u:
        q, k, v = ([_product(row, M) for M in W] for W in (W_q, W_k, W_v))
        K, V = ([[*of_head[1:], new] for of_head, new in zip(cache, added, strict=True)]
                for cache, added in ((K, k), (V, v)))  # fmt: skip
        seen = [*seen[1:], mp.mpf(1)]
        heads = zip(q, K, V, bias, strict=True)
        out.append(_merged([_softmax_mean(*of_head, seen) for of_head in heads], W_out))
    return out, K, V, seen


def _softmax_mean(q, keys, values, bias, seen):
    """Σ_j e^{s_j} v_j/Σ_j e^{s_j}, s_j = q · k_j/√n + bias of the distance."""
    scores = [mp.fdot(q, k) / mp.sqrt(len(q)) + b
              for k, b in zip(keys, reversed(bias), strict=True)]  # fmt: skip
    weights = [s * mp.exp(score) for s, score in zip(seen, scores, strict=True)]
    total = mp.fsum(weights)
    return [mp.fdot(weights, column) / total for column in zip(*values, strict=True)]


def bigbird_layer(u, W_q, W_k, W_v, reads, W_out):
    """From rest: no place of the cache holds a step."""
    t = len(reads)
    K, V = ([[_zeros(len(W_g[0])) for _ in range(t)] for W_g in W] for W in (W_k, W_v))
    return bigbird_layer_stateful(u, W_q, W_k, W_v, reads, W_out, K, V, _zeros(t))[0]


def bigbird_layer_stateful(u, W_q, W_k, W_v, reads, W_out, K0, V0, seen0):
    """As `attention_layer_stateful`, without bias; of the cache only what the step's row reads."""
    K, V, seen, out, t = K0, V0, seen0, [], len(reads)
    for row in u:
        q, k, v = ([_product(row, M) for M in W] for W in (W_q, W_k, W_v))
        K, V = ([[*of_head[1:], new] for of_head, new in zip(cache, added, strict=True)]
                for cache, added in ((K, k), (V, v)))  # fmt: skip
        mine = reads[min(sum(s != 0 for s in seen), t - 1)]
        seen = [*seen[1:], mp.mpf(1)]
        # the oldest place first: distance t − 1 − j of place j
        there = [s if j == t - 1 or mine[t - 1 - j] != 0 else mp.mpf(0)
                 for j, s in enumerate(seen)]  # fmt: skip
        heads = zip(q, K, V, strict=True)
        out.append(_merged([_softmax_mean(*of_head, _zeros(t), there) for of_head in heads], W_out))
    return out, K, V, seen
