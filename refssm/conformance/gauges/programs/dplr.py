"""Programs of the DPLR kernels: at the nodes, by Woodbury's identity, and over time, dense.

Eigenvectors are no program of this list: for HiPPO-LegS they err by the kernel itself. Steps by
Woodbury's identity are none either: for HiPPO-LegT with 256 states they err 260 times as much.
"""

from functools import partial

import numpy as np

from refssm._numerics.powers import doublings
from refssm._numerics.roots import roots_of_unity, turned
from refssm.conformance.gauges.programs.arithmetic import neighbour, product, seed_of, times
from refssm.dplr.aliased import DPLR_KERNEL_ALIASED, resolved
from refssm.dplr.kernel import DPLR_KERNEL, near_poles
from refssm.dplr.pairs import DPLR_KERNEL_ALIASED_REAL, DPLR_KERNEL_REAL, both_halves
from refssm.dplr.system import (
    around_the_circle,
    bilinear,
    corrected,
    denominators,
    inverse_transform,
)


def _type(*arguments):
    return np.result_type(*arguments)


def at_nodes(w, P, Q, B, C, dt, *, l):
    """2 C̃ (D + (1 + z) P Qᴴ)⁻¹ B, C̃ = C (I − Ā^l) by doubling; beside a pole Σ_k C (z Ā)^k B̄."""
    if l == 0:
        return None
    below, above = around_the_circle(l, w, P, Q, B, C, dt)
    D = denominators(below, above, w, dt)
    summed = near_poles(D, w, dt).any(-1)
    nodes = np.flatnonzero(summed.any(tuple(range(summed.ndim - 1))))
    C_tilde, sums = _doubled(*bilinear(w, P, Q, B, dt), C, nodes, l)
    D, above = np.where(summed[..., None], 1, D), np.where(summed, 0, above)
    solved = corrected(D, above, P, Q, B[..., None, :])
    spectrum = 2 * (C_tilde[..., None, :] * solved).sum(-1)
    spectrum[..., nodes] = (C[..., None, :] * sums).sum(-1)
    return inverse_transform(spectrum, _type(w, P, Q, B, C, dt))


def _doubled(E, b, C, nodes, l):
    """C (I − A^l), and Σ_{k<l} (z A)^k b at the nodes, from E = I − A."""
    z = roots_of_unity(l, np.finfo(E.dtype).dtype.type)
    powers, b = E, b[..., None, :]
    shape = np.broadcast_shapes(E.shape[:-2], b.shape[:-2])
    sums = np.zeros((*shape, len(nodes), b.shape[-1]), np.result_type(E, b, z)) + b
    for m, odd in doublings(l):
        turn = z[nodes * m % l][:, None]
        sums = sums + turn * (sums - product(sums, powers.swapaxes(-1, -2)))
        powers = 2 * powers - product(powers, powers)
        if odd:
            sums = b + z[nodes][:, None] * (sums - product(sums, E.swapaxes(-1, -2)))
            powers = powers + E - product(powers, E)
    return times(powers.swapaxes(-1, -2), C), sums


def doubled(w, P, Q, B, C, dt, *, l):
    """C X with X = (x, Ā x, …): the columns from m to 2m are Ā^m times those before."""
    E, x = bilinear(w, P, Q, B, dt)
    power, X = np.eye(w.shape[-1], dtype=w.real.dtype) - E, x[..., None]
    while X.shape[-1] < l:
        X = np.concatenate([X, product(power, X)], axis=-1)
        power = product(power, power)
    return (C[..., None] * X[..., :l]).sum(-2).astype(_type(w, P, Q, B, C, dt))


def doubled_beside_one(w, P, Q, B, C, dt, *, l):
    """The same with I − Ā^m in place of Ā^m: slow modes keep their digits."""
    E, x = bilinear(w, P, Q, B, dt)
    X = x[..., None]
    while X.shape[-1] < l:
        X = np.concatenate([X, X - product(E, X)], axis=-1)
        E = 2 * E - product(E, E)
    return (C[..., None] * X[..., :l]).sum(-2).astype(_type(w, P, Q, B, C, dt))


def dense_steps(w, P, Q, B, C, dt, *, l):
    """C x_k over time, x_{k+1} = Ā x_k with a dense Ā."""
    E, x = bilinear(w, P, Q, B, dt)
    A_bar = np.eye(w.shape[-1], dtype=w.real.dtype) - E
    return _over_time(A_bar, x, C, l, _type(w, P, Q, B, C, dt))


def _over_time(A_bar, x, C, l, dtype):
    batch = np.broadcast_shapes(x.shape[:-1], C.shape[:-1])
    K = np.zeros((*batch, l), dtype)
    for k in range(l):
        K[..., k] = (C * x).sum(-1)
        x = times(A_bar, x)
    return K


def through_nodes(w, P, Q, B, C, dt, *, l, nodes=around_the_circle):
    """2 C (D + (1 + z) P Qᴴ)⁻¹ B: the kernel with time wrapped around."""
    below, above = nodes(l, w, P, Q, B, C, dt)
    solved = resolved(denominators(below, above, w, dt), above, P, Q, B)
    return inverse_transform(2 * (C[..., None, :] * solved).sum(-1), _type(w, P, Q, B, C, dt))


def rounded_nodes(l, *arguments):
    """1 − z and 1 + z with z = e^(−2πij/l) rounded, as in S4: beside −1 few digits of 1 + z stay.

    A fast mode, 1 ≪ |w| dt, has its pole there; its kernel errs by u/|1 + z| or more.
    """
    cosine, sine = turned(np.arange(l), l, np.float64)
    rng = np.random.default_rng(seed_of(*arguments))
    z = neighbour(cosine - 1j * sine, np.finfo(np.result_type(*arguments)).dtype, rng)
    return 1 - z, 1 + z


def halves_of_inputs(w, P, Q, B, C, dt, *, l):
    """The kernel of every other input alone, plus that of the rest, with the states reversed."""
    back = np.s_[..., ::-1]
    state = (w[back], P[..., ::-1, :], Q[..., ::-1, :])
    even, odd = (through_nodes(*state, half[back], C[back], dt, l=l) for half in _halves(B))
    return even + odd


def halves_of_outputs(w, P, Q, B, C, dt, *, l):
    """The kernel of every other entry of C, plus that of the rest."""
    even, odd = (through_nodes(w, P, Q, B, half, dt, l=l) for half in _halves(C))
    return even + odd


def _if_any(program):
    """The same program for kernels that have entries."""
    return lambda *arrays, l: program(*arrays, l=l) if l else None


def _halves(x):
    """x at even places and 0 elsewhere, then at odd places."""
    even = np.arange(x.shape[-1]) % 2 == 0
    return [np.where(of, x, 0) for of in (even, ~even)]


def _of_pairs(programs):
    """The programs of both halves of every conjugate pair."""
    return {name: _of_pair(program) for name, program in programs.items()}


def _of_pair(program):
    def real(w, P, Q, B, C, dt, *, l):
        K = program(*both_halves(w, P, Q, B, C), dt, l=l)
        return None if K is None else K.real

    return real


_AGAIN_ALIASED = {"rounded_nodes": _if_any(partial(through_nodes, nodes=rounded_nodes))}
_WHOLE = {"at_nodes": at_nodes, "dense_steps": dense_steps, "doubled": doubled}
_ALIASED = {
    "through_nodes": _if_any(through_nodes),
    "halves_of_inputs": _if_any(halves_of_inputs),
    "halves_of_outputs": _if_any(halves_of_outputs),
}
# of few slow pairs, powers of Ā err 20 times as much as the other programs
_OF_PAIRS = {"at_nodes": at_nodes, "dense_steps": dense_steps, "beside_one": doubled_beside_one}
AGAIN_OUTPUTS = {
    DPLR_KERNEL_ALIASED.name: _AGAIN_ALIASED,
    DPLR_KERNEL_REAL.name: _of_pairs({"doubled": doubled}),
    DPLR_KERNEL_ALIASED_REAL.name: _of_pairs(_AGAIN_ALIASED),
}
OUTPUTS = {
    DPLR_KERNEL.name: _WHOLE,
    DPLR_KERNEL_ALIASED.name: _ALIASED,
    DPLR_KERNEL_REAL.name: _of_pairs(_OF_PAIRS),
    DPLR_KERNEL_ALIASED_REAL.name: _of_pairs(_ALIASED),
}
