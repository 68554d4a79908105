"""Programs of dense scans and their gradients: by steps, doubled, in blocks of time."""

from math import ceil, sqrt

import numpy as np

from refssm.conformance.gauges.programs.arithmetic import adjoint, product, times
from refssm.scan.dense import DENSE_SCAN, DENSE_SCAN_FROM


def doubled(A, b):
    """x_k = Σ_j A^j b_{k−j}: the sums of 2m terms from those of m."""
    x, power, shift = b.mT, A, 1  # time is the last axis
    while shift < b.shape[-2]:
        before = np.concatenate([np.zeros_like(x[..., :shift]), x[..., :-shift]], axis=-1)
        x, power, shift = x + product(power, before), product(power, power), 2 * shift
    return x.mT


def in_blocks(A, b):
    """Blocks of time from rest, side by side; then the state before each block is added."""
    l, n = b.shape[-2:]
    if l == 0:
        return None
    m = max(1, ceil(sqrt(l)))
    count = -(-l // m)
    padded = np.concatenate([b, np.zeros((*b.shape[:-2], count * m - l, n), b.dtype)], axis=-2)
    x = _stepped(A[..., None, :, :], padded.reshape(*b.shape[:-2], count, m, n))
    powers = [A]
    for _ in range(m - 1):
        powers.append(product(A, powers[-1]))
    state, blocks = x[..., 0, -1, :], [x[..., 0, :, :]]
    for j in range(1, count):
        carried = np.stack([times(power, state) for power in powers], axis=-2)
        blocks.append(x[..., j, :, :] + carried)
        state = blocks[-1][..., -1, :]
    return np.concatenate(blocks, axis=-2)[..., :l, :]


def _stepped(A, b):
    x = [b[..., 0, :]]
    for k in range(1, b.shape[-2]):
        x.append(times(A, x[-1]) + b[..., k, :])
    return np.stack(x, axis=-2)


def from_rest(scan):
    """The same scan from a state: A x0 is part of the first input."""

    def scan_from(A, b, x0):
        if b.shape[-2] == 0:
            return None
        return scan(
            A, np.concatenate([b[..., :1, :] + times(A, x0)[..., None, :], b[..., 1:, :]], -2)
        )

    return scan_from


def gradients(scan):
    """g = scan(Aᴴ, dx) backwards;  dA = Σ_{k>0} g_k x_{k−1}ᴴ,  db = g."""

    def vjp(dx, A, b):
        g, x = _costates(scan, dx, A), scan(A, b)
        if x is None or g is None:
            return None
        return product(g[..., 1:, :].mT, x[..., :-1, :].conj()), g

    return vjp


def gradients_from(scan):
    """As `gradients`, with x_{−1} = x0 and dx0 = Aᴴ g_0."""

    def vjp(dx, A, b, x0):
        g, x = _costates(scan, dx, A), from_rest(scan)(A, b, x0)
        if x is None or g is None:
            return None
        before = np.concatenate([x0[..., None, :], x[..., :-1, :]], axis=-2)
        return product(g.mT, before.conj()), g, times(adjoint(A), g[..., 0, :])

    return vjp


def _costates(scan, dx, A):
    g = scan(adjoint(A), np.flip(dx, axis=-2))
    return None if g is None else np.flip(g, axis=-2)


OUTPUTS = {
    DENSE_SCAN.name: {"by_steps": DENSE_SCAN.reference, "doubled": doubled, "in_blocks": in_blocks},
    DENSE_SCAN_FROM.name: {
        "by_steps": DENSE_SCAN_FROM.reference,
        "doubled": from_rest(doubled),
        "in_blocks": from_rest(in_blocks),
    },
}
GRADIENTS = {
    DENSE_SCAN.name: {
        "by_steps": DENSE_SCAN.bare_vjp,
        "doubled": gradients(doubled),
        "in_blocks": gradients(in_blocks),
    },
    DENSE_SCAN_FROM.name: {
        "by_steps": DENSE_SCAN_FROM.bare_vjp,
        "doubled": gradients_from(doubled),
        "in_blocks": gradients_from(in_blocks),
    },
}
