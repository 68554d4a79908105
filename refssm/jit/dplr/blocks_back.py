"""Gradients of DPLR kernels in blocks: blocks.py backwards, product by product and step by step.

With D_ac = d_{aq+c}, the derivatives of Σ_k d_k K_k are, X̄ that by X:

    H̄ = D X, and back through the heads η_a = H̄_a + (I − E) η_{a+1};   Ē = −Σ_a H_aᵀ η_{a+1}
    X̄ = Dᵀ H, and back through the places;   C̄ = η_0
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm.jit._compiling.gufunc import compiled
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import apart
from refssm.jit._vectors.tables import (
    add,
    add_grown,
    add_product,
    add_without,
    crossed,
    dot,
    table,
    turned,
    zeros,
)
from refssm.jit.dplr.blocks import (
    FACTORS,
    HEADS,
    PLACES,
    decayed,
    divided,
    headed,
    lost,
    walked,
    whole,
)


@part
def _cut(d, q, count):
    """D."""
    apart()
    found = zeros(count, q)
    for k in range(d.size):
        found[2 * (k // q), k % q], found[2 * (k // q) + 1, k % q] = d[k].real, d[k].imag
    return found


@part
def _unwalked(S, r, first, last, X, G, found):
    """Back through `walked`: G is X̄ and is overwritten."""
    apart()
    count = last - first
    for k in range(G.shape[0] // 2 - 1, count - 1, -1):
        before = k - count
        add_product(found, G, k, X, before)
        add_grown(G, before, S, G, k)
        for i in range(FACTORS, FACTORS + r):
            add(found, i, -dot(S, i + r, X, before), G, k)
            through = -dot(S, i, G, k)
            add(found, i + r, through, X, before)
            add(G, before, through, S, i + r)
    for k in range(count):
        add(found, first + k, 1 + 0j, G, k)


@part
def _undecayed(S, r, Y, G, found):
    """Back through `decayed`: G is Ȳ and is overwritten."""
    apart()
    last = Y.shape[0] // 2 - r
    for k in range(r, last + r):
        add_product(found, G, k - r, Y, k)
        add_grown(G, k, S, G, k - r)
    for k in range(r):
        add(found, FACTORS + r + k, 1 + 0j, G, last + k)


@part
def _unheaded(E, H, eta, n, count, found):
    """Back through `headed`: H̄ becomes η, and then row a of it η_{a+1}; returns Ē."""
    apart()
    back = turned(E, n)
    for a in range(count - 2, -1, -1):
        add_without(eta, a, eta, a + 1, back, n)
    for a in range(min(1, count)):
        add(found, a + HEADS, 1 + 0j, eta, a)
    for k in range(2 * count):
        for i in range(n):
            eta[k, i] = -eta[k + 2, i] if k < 2 * count - 2 else 0.0
    return crossed(H, n, eta)


@part
def _unpowered(S, r, E_bar, X, Y, n, q, found):
    """Back through `whole`."""
    apart()
    slope = lost(S, q - 1)
    for i in range(n):
        re, im, a, b = E_bar[2 * i, i], E_bar[2 * i + 1, i], 1 - slope[0, i], -slope[1, i]
        found[0, i] -= q * (re * a - im * b)
        found[1, i] -= q * (re * b + im * a)
    _undecayed(S, r, Y, crossed(turned(X, n), r * q, E_bar), found)
    u, G = np.intp(FACTORS), crossed(turned(Y, n), r * q, turned(E_bar, n))
    _unwalked(S, r, u, u + r, X, G, found)


@compiled(["(c16[:], c16[:,:], c16[:,:])"], "(l),(i,n)->(i,n)")
def multiplied_back(d, system, gradient):
    """The derivatives of Σ_k d_k K_k by the rows of a system."""
    q, count = divided(d.size)
    n, r, S, D = system.shape[1], (system.shape[0] - FACTORS) // 2, table(system), _cut(d, q, count)
    b, u = np.intp(PLACES), np.intp(FACTORS)
    found, X = zeros(system.shape[0], n), walked(S, r, b, u, q)
    W, Y, E = X, X, X
    if count > 1:
        W, Y = walked(S, r, u, u + r, q), decayed(S, r, q)
        E = whole(S, W, Y, n, q)
    H = headed(S, E, n, count)
    E_bar = _unheaded(E, H, crossed(turned(D, q), count, X), n, count, found)
    if count > 1:
        _unpowered(S, r, E_bar, W, Y, n, q, found)
    _unwalked(S, r, b, u, X, crossed(D, q, H), found)
    for i in range(gradient.shape[0]):
        for k in range(n):
            gradient[i, k] = complex(found[2 * i, k], found[2 * i + 1, k])
