"""Numba mirrors of refssm.dplr.kernel and of its pairs: blocks of q ≈ √l steps, and back.

    K_{aq+c} = (C Ā^{aq}) (Ā^c B̄),   heads × places
    Ā = I + diag e − U V,   e = dt w R,   U = dt R P,   V = (I_r + ½dt QᴴRP)⁻¹ QᴴR
    E = I − Ā^q = I − (I + diag e)^q + Σ_{k<q} (Ā^k U) (V (I + diag e)^{q−1−k})

Places are steps of rank r, each head is the one before it times Ā^q, and Ā^q is one product of
matrices instead of log₂ q. Nothing is divided, so poles at nodes are no special case.

A system is one table (`tables.py`): the rows e, C, B̄, then U and V.

Gradients go back through the blocks, product by product and step by step. With D_ac = d_{aq+c}, the
derivatives of Σ_k d_k K_k are, X̄ that by X:

    H̄ = D X, and back through the heads η_a = H̄_a + (I − E) η_{a+1};   Ē = −Σ_a H_aᵀ η_{a+1}
    X̄ = Dᵀ H, and back through the places;   C̄ = η_0
"""

from inspect import unwrap

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.elimination import eliminated
from refssm.dplr import DPLR_KERNEL, DPLR_KERNEL_REAL
from refssm.dplr.pairs import both_halves, of_stored
from refssm.dplr.system import inverse
from refssm.jit._compiling.gufunc import compiled
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import apart
from refssm.jit._vectors.tables import (
    FUSED,
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
from refssm.jit.dplr.nodes import narrow, wide
from refssm.jit.vandermonde import divided

HEADS, PLACES, FACTORS = 1, 2, 3  # rows of a system; row 0 is e


@part
def walked(S, r, first, last, q):
    """Ā^k X in group k, for some rows X of the system."""
    apart()
    count = last - first
    X = zeros(count * q, S.shape[1])
    for k in range(count):
        add(X, k, 1 + 0j, S, first + k)
    for k in range(count, count * q):
        add_grown(X, k, S, X, k - count)
        for i in range(r):
            add(X, k, -dot(S, FACTORS + r + i, X, k - count), S, FACTORS + i)
    return X


@part
def decayed(S, r, q):
    """V (I + diag e)^{q−1−k} in group k."""
    apart()
    Y = zeros(r * q, S.shape[1])
    for k in range(r):
        add(Y, r * (q - 1) + k, 1 + 0j, S, FACTORS + r + k)
    for k in range(r * (q - 1) - 1, -1, -1):
        add_grown(Y, k, S, Y, k + r)
    return Y


@part(fastmath=FUSED)
def lost(S, q):
    """1 − (1 + e)^q, without cancellation."""
    apart()
    found = zeros(1, S.shape[1])
    for _ in range(q):
        for n in range(S.shape[1]):
            re, im, a, b = S[0, n], S[1, n], 1 - found[0, n], -found[1, n]
            found[0, n] -= re * a - im * b
            found[1, n] -= re * b + im * a
    return found


@part
def whole(S, X, Y, n, q):
    """E from U and V after all steps."""
    apart()
    E, diagonal = crossed(X, n, Y), lost(S, q)
    for i in range(n):
        E[2 * i, i] += diagonal[0, i]
        E[2 * i + 1, i] += diagonal[1, i]
    return E


@part
def headed(S, E, n, count):
    """C Ā^{aq}."""
    apart()
    H = zeros(count, S.shape[1])
    for a in range(count):
        if a:
            add_without(H, a, H, a - 1, E, n)
        else:
            add(H, a, 1 + 0j, S, a + HEADS)
    return H


@compiled(
    [f"(c16[:,:], {t}[:], {t}[:])" for t in ("c8", "c16")],
    "(i,n),(l)->(l)",
)
def multiplied(system, length, K):
    """K_k = C Ā^k B̄."""
    q, count = divided(K.size)
    n, r, S = system.shape[1], (system.shape[0] - FACTORS) // 2, table(system)
    b, u = np.intp(PLACES), np.intp(FACTORS)
    X = walked(S, r, b, u, q)
    E = X
    if count > 1:
        E = whole(S, walked(S, r, u, u + r, q), decayed(S, r, q), n, q)
    found = crossed(turned(headed(S, E, n, count), n), count, turned(X, n))
    for a in range(count):
        for c in range(min(q, K.size - a * q)):
            K[a * q + c] = complex(found[2 * a, c], found[2 * a + 1, c])


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


def _system(R, RP, V, w, B, C, h):
    """The rows e, C, B̄, U and V."""
    e, B_bar = h * w * R, h * (R * B - h / 2 * (RP @ (V @ B[..., None]))[..., 0])
    parts = [x[..., None, :] for x in (e, C, B_bar)] + [(h[..., None] * RP).mT, V]
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in parts))
    parts = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in parts]
    return np.concatenate(parts, axis=-2, dtype=np.complex128)


@mirror(DPLR_KERNEL)
def dplr_kernel(w, P, Q, B, C, dt, *, l):
    """Without the transform; in double precision, rounded once."""
    dtype = np.result_type(w, P, Q, B, C, dt)
    w, P, Q, B, C, dt = wide(w, P, Q, B, C, dt)
    h = dt[..., None]
    system = _system(*inverse(w, P, Q, h), w, B, C, h)
    K = multiplied(system, np.empty(int(l), np.result_type(dtype, np.complex64)))
    return K if dtype.kind == "c" else K.real.copy()


@mirror(DPLR_KERNEL)
def dplr_kernel_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Back through the blocks, then through the bilinear map."""
    arguments = w, P, Q, B, C, dt
    w, P, Q, B, C, dt = wide(*arguments)
    h = dt[..., None]
    factors = inverse(w, P, Q, h)
    given = multiplied_back(dk.conj().astype(np.complex128), _system(*factors, w, B, C, h))
    gradients = _through_map(given, *factors, w, P, Q, B, h)
    return unbroadcast_each(narrow(gradients, dk, *arguments), arguments)


def _through_map(given, R, RP, V, w, P, Q, B, h):
    """dw, dP, dQ, dB, dC and ddt from the derivatives by the rows of a system.

    With G = I_r + ½dt QᴴRP and V = G⁻¹QᴴR. `of_X` is the derivative by X, without conjugates.
    """
    r, h_ = P.shape[-1], h[..., None]
    of_e, of_C, of_B_bar = (given[..., i, :] for i in (0, HEADS, PLACES))
    of_U, of_V = given[..., FACTORS : FACTORS + r, :].mT, given[..., FACTORS + r :, :]
    VB, QR = V @ B[..., None], Q.conj().mT * R[..., None, :]
    of_VB = -h * h / 2 * (RP.mT @ of_B_bar[..., None])[..., 0]
    G = np.eye(r) + h_ / 2 * (QR @ P)
    of_QR = eliminated(G.mT, of_V + of_VB[..., None] * B[..., None, :])
    of_G = -of_QR @ V.mT
    of_QR = of_QR + h_ / 2 * of_G @ P.mT
    of_RP = h_ * (of_U - h_ / 2 * of_B_bar[..., None] * VB.mT)
    of_B = h * R * of_B_bar + (V.mT @ of_VB[..., None])[..., 0]
    of_P = h_ / 2 * QR.mT @ of_G + R[..., None] * of_RP
    of_R = h * B * of_B_bar + (P * of_RP).sum(-1) + (Q.conj().mT * of_QR).sum(-2)
    of_rates = R * R * (of_e + of_R / 2)  # by dt w
    of_dt = (w * of_rates + of_B_bar * (R * B - h * (RP @ VB)[..., 0])).sum(-1)
    of_dt = of_dt + (RP * of_U).sum((-1, -2)) + (QR @ P * of_G).sum((-1, -2)) / 2
    of_Q = (R[..., None, :] * of_QR).mT  # by Q*
    conjugated = (x.conj() for x in (h * of_rates, of_P, of_Q.conj(), of_B, of_C, of_dt))
    return tuple(conjugated)


_whole, _whole_vjp = unwrap(dplr_kernel), unwrap(dplr_kernel_vjp)  # arguments are checked


@mirror(DPLR_KERNEL_REAL)
def dplr_kernel_real(w, P, Q, B, C, dt, *, l):
    """Blocks of the whole system, both halves of its pairs."""
    return _whole(*both_halves(w, P, Q, B, C), dt, l=l).real.copy()


@mirror(DPLR_KERNEL_REAL)
def dplr_kernel_real_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Back through the blocks of the whole system."""
    return of_stored(*_whole_vjp(dk, *both_halves(w, P, Q, B, C), dt, l=l))
