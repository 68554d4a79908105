"""Programs of the gradients of DPLR kernels: through the states over time, or through the nodes."""

from functools import partial

import numpy as np
from numpy.fft import fft

from refssm.conformance.gauges.programs.arithmetic import adjoint, product, seed_of, times
from refssm.conformance.gauges.programs.dplr import rounded_nodes
from refssm.conformance.gauges.programs.krylov import columns
from refssm.conformance.gauges.programs.measured import SINGLE
from refssm.conformance.gauges.programs.pieces import in_pieces
from refssm.dplr.aliased import DPLR_KERNEL_ALIASED, resolved
from refssm.dplr.kernel import DPLR_KERNEL
from refssm.dplr.pairs import (
    DPLR_KERNEL_ALIASED_REAL,
    DPLR_KERNEL_REAL,
    both_halves,
    of_stored,
)
from refssm.dplr.system import around_the_circle, bilinear, corrected, denominators

LARGEST = 128  # states; products without BLAS take seconds above it

# States x_k and costates g_k = Āᴴ g_{k+1} + C* dk_k, (…, n, l), with Ā = I − E


def stepped(E, x, driven):
    """One step after the other."""
    A, l = _matrix(E), driven.shape[-1]
    X, G = [x], [driven[..., l - 1]]
    for k in range(1, l):
        X.append(times(A, X[-1]))
        G.append(times(adjoint(A), G[-1]) + driven[..., l - 1 - k])
    return np.stack(X, axis=-1), np.stack(G[::-1], axis=-1)


def _matrix(E):
    return np.eye(E.shape[-1], dtype=E.real.dtype) - E


def doubled(E, x, driven):
    """Twice as many states with each square of Ā; sums of twice as many terms for the costates."""
    A = _matrix(E)
    G, power, shift = driven, adjoint(A), 1
    while shift < driven.shape[-1]:
        ahead = np.concatenate([G[..., shift:], np.zeros_like(G[..., :shift])], axis=-1)
        G, power, shift = G + product(power, ahead), product(power, power), 2 * shift
    return columns(A, x, driven.shape[-1]), G


def through_time(over_time):
    """T = M⁻ᴴ dB̄,  d(dt A) = ½ (M⁻ᴴ dĀ (I + Ā)ᴴ + T B̄ᴴ),  M = I − ½dt A, by Woodbury's identity."""

    def vjp(dk, w, P, Q, B, C, dt, *, l):
        if l == 0 or w.shape[-1] > LARGEST:
            return None
        E, b = bilinear(w, P, Q, B, dt)
        I, h = np.eye(w.shape[-1], dtype=w.real.dtype), dt[..., None]
        batch = np.broadcast_shapes(E.shape[:-2], b.shape[:-1], C.shape[:-1], dk.shape[:-1])
        b = np.broadcast_to(b, (*batch, b.shape[-1]))
        X, G = over_time(E, b, C.conj()[..., None] * dk[..., None, :])
        dA_bar = product(G[..., 1:], adjoint(X[..., :-1]))
        A = w[..., None] * I - product(P, adjoint(Q))
        D = (1 - h * w / 2).conj()[..., None, :]
        S = corrected(D, h / 2, Q, P, dA_bar.mT).mT
        T = corrected(D, h / 2, Q, P, G[..., None, :, 0])[..., 0, :]
        dF = (product(S, adjoint(2 * I - E)) + T[..., :, None] * b.conj()[..., None, :]) / 2
        dA = h[..., None] * dF
        ddt = (A.conj() * dF).sum((-1, -2)) + (B.conj() * T).sum(-1)
        dw = np.diagonal(dA, axis1=-2, axis2=-1)
        dC = (dk[..., None, :] * X.conj()).sum(-1)
        return dw, -product(dA, Q), -product(adjoint(dA), P), h * T, dC, ddt

    return vjp


def transposed(vjp):
    """The gradients of K_k = Bᵀ (Āᵀ)^k (1 − ½dt Aᵀ)⁻¹ dt C: B and C, P and Q* change places."""

    def swapped(dk, w, P, Q, B, C, dt, *, l):
        found = vjp(dk, w, Q.conj(), P.conj(), C, B, dt, l=l)
        if found is None:
            return None
        dw, dQ, dP, dC, dB, ddt = found
        return dw, dP.conj(), dQ.conj(), dB, dC, ddt

    return swapped


def spread(vjp):
    """The same with the roundings of a transform in dk: log2(2l) root mean squares in each lag.

    Kernels are right in norm over time. So is what a program at the nodes makes of a dk that has
    late lags only, where the kernel's derivatives are smaller than at first. A transform and back
    is no such program: for one lag of 2^k it may be exact.
    """

    def program(dk, *system, l):
        if l == 0:
            return None
        signs = np.random.default_rng(seed_of(dk)).choice([-1, 1], dk.shape)
        size = np.sqrt((np.abs(dk) ** 2).mean(-1, keepdims=True)) * np.log2(2 * l)
        return vjp((dk + SINGLE * size * signs).astype(dk.dtype), *system, l=l)

    return program


def through_nodes(dk, w, P, Q, B, C, dt, *, l, nodes=around_the_circle):
    """At every node, X = S⁻¹ B and Y = S⁻ᵀ C with S = D + (1 + z) P Qᴴ, by Woodbury's identity."""
    if l == 0:
        return None
    below, above = nodes(l, w, P, Q, B, C, dt)
    D = denominators(below, above, w, dt)
    X, Y = resolved(D, above, P, Q, B), resolved(D, above, Q.conj(), P.conj(), C)
    ds = 2 * fft(dk)[..., None] / P.real.dtype.type(l)
    through, YX = ds * above.conj()[..., None], (Y * X).conj()
    dP = -np.einsum("...ln,...lr->...nr", through * Y.conj(), _met(Q, X).conj())
    dQ = -np.einsum("...ln,...lr->...nr", through.conj() * X, _met(P.conj(), Y))
    ddt = 2 * (ds[..., 0] * below.conj() * YX.sum(-1)).sum(-1) / (dt * dt)
    dB, dC = (ds * Y.conj()).sum(-2), (ds * X.conj()).sum(-2)
    return (through * YX).sum(-2), dP, dQ, dB, dC, ddt


def at_few_steps(dk, w, P, Q, B, C, dt, *, l):
    """Through dt A and dt B, as a kernel that scales the system first: ddt = ⟨A, d(dt A)⟩ + ….

    For kernels shorter than each of their time constants: K is almost C (−A)⁻¹ B/l, which has no
    dt, and ddt is a sum that cancels, while `through_nodes` multiplies by 1 − z and does not err.
    At one step all of it cancels. In long kernels it errs up to 24 times as much as the others do.
    To each term one rounding of its modulus is added: with one state the terms may cancel exactly
    here, and not in a program that divides by A where this one multiplies.
    """
    low_rank = np.sqrt((np.abs(P) ** 2).sum((-2, -1)) * (np.abs(Q) ** 2).sum((-2, -1)))
    short = (l == 1) | (l * dt * (np.abs(w).max(-1, initial=0) + low_rank) < 1)
    if l == 0 or not short.any():
        return None
    h, one = dt[..., None], np.ones_like(dt)
    scaled = through_nodes(dk, h * w, h[..., None] * P, Q, h * B, C, one, l=l)
    found = through_nodes(dk, w, P, Q, B, C, dt, l=l)
    assert scaled is not None
    assert found is not None
    (*others, ddt), (dw, dP, _, dB, *_) = found, scaled
    terms = [w.conj() * dw, *np.moveaxis(P.conj() * dP, -1, 0), B.conj() * dB]
    cancelled = sum((x + SINGLE * np.abs(x)).sum(-1) for x in terms)
    return *others, np.where(short, cancelled, ddt)


def _met(Q, X):
    """Qᴴ X."""
    return np.einsum("...nr,...ln->...lr", Q.conj(), X)


def _of_pairs(programs):
    """The programs of both halves of every conjugate pair, folded onto the stored half."""
    return {name: _of_pair(vjp) for name, vjp in programs.items()}


def _of_pair(vjp):
    def of_half(dk, w, P, Q, B, C, dt, *, l):
        found = vjp(dk, *both_halves(w, P, Q, B, C), dt, l=l)
        return None if found is None else of_stored(*found)

    return of_half


_BY_STEPS = through_time(stepped)
_WHOLE = {
    "by_steps": _BY_STEPS,
    "transposed": transposed(_BY_STEPS),
    "doubled": through_time(doubled),
    "spread": spread(_BY_STEPS),
}
_ALIASED = {
    "through_nodes": through_nodes,
    "transposed": transposed(through_nodes),
    "at_few_steps": at_few_steps,
    "in_pieces": in_pieces(through_nodes),
}
_AGAIN_ALIASED = {"rounded_nodes": partial(through_nodes, nodes=rounded_nodes)}
AGAIN_GRADIENTS = {
    DPLR_KERNEL_ALIASED.name: _AGAIN_ALIASED,
    DPLR_KERNEL_ALIASED_REAL.name: _of_pairs(_AGAIN_ALIASED),
}
GRADIENTS = {
    DPLR_KERNEL.name: _WHOLE,
    DPLR_KERNEL_ALIASED.name: _ALIASED,
    DPLR_KERNEL_REAL.name: _of_pairs(_WHOLE),
    DPLR_KERNEL_ALIASED_REAL.name: _of_pairs(_ALIASED),
}
