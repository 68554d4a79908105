"""Mirrors of refssm.hippo.memory: states by log₂ l rounds of matrix products, no loop over time."""

from __future__ import annotations

from math import prod

from refssm.hippo import HIPPO_PROJECT, HIPPO_PROJECT_LEGS
from refssm_gpu._algebra.exponential import exponential_held
from refssm_gpu._algebra.parts import adjoint, along, batch_of, conj
from refssm_gpu._algebra.recurrence import driven
from refssm_gpu._launching.arrays import Array, folded, namespace, unbroadcast
from refssm_gpu._launching.checked import mirror
from refssm_gpu.discretize import discretize_zoh_vjp as _checked_zoh_vjp
from refssm_gpu.discretize.blocks import scaled
from refssm_gpu.hippo.halves import Halves

_zoh_vjp = _checked_zoh_vjp.__wrapped__  # without its checks


@mirror(HIPPO_PROJECT)
def hippo_project(A, B, u, dt):
    A_bar, B_bar = _held(A, B, dt)
    x = driven(A_bar, B_bar[..., None, :] * u[..., :, None])
    return along(x, batch_of((A, B, u, dt), (2, 1, 1, 0)), 2)


def _held(A: Array, B: Array, dt: Array) -> tuple[Array, Array]:
    """e^{dt A} and dt φ₁(dt A) B."""
    A_bar, B_bar = exponential_held(scaled(A, dt), (dt[..., None] * B)[..., None])
    return A_bar, B_bar[..., 0]


@mirror(HIPPO_PROJECT)
def hippo_project_vjp(dx, A, B, u, dt):
    """Gradients are summed before the exponential's."""
    xp, (A_bar, B_bar) = namespace(dx), _held(A, B, dt)
    x = driven(A_bar, B_bar[..., None, :] * u[..., :, None])
    g = xp.flip(driven(adjoint(A_bar), xp.flip(dx, axis=-2)), axis=-2)
    over_time = xp.matrix_transpose(g)  # (…, n, l)
    dA_bar = over_time[..., 1:] @ conj(x)[..., :-1, :]
    dB_bar = over_time @ conj(u)[..., None]
    du = (g @ conj(B_bar)[..., None])[..., 0]
    batch = batch_of((A, B, dt), (2, 1, 0))
    dA_bar, dB_bar = (folded(d, (*batch, *d.shape[-2:])) for d in (dA_bar, dB_bar))
    dA, dB, ddt = _zoh_vjp(dA_bar, dB_bar, A, B[..., None], dt)
    return dA, dB[..., 0], unbroadcast(du, u), ddt


@mirror(HIPPO_PROJECT_LEGS)
def hippo_project_legs(u, *, n):
    """States of halves joined, see `halves`."""
    xp, (*batch, l) = namespace(u), u.shape
    if not l * n:
        return xp.zeros((*u.shape, n), dtype=u.dtype)
    pieces = xp.matrix_transpose(xp.reshape(u, (prod(batch), l)))[:, None, :]
    c = Halves(u, n).states(pieces)  # (l, n, members of the batch)
    return xp.reshape(xp.permute_dims(c, (2, 0, 1)), (*u.shape, n))


@mirror(HIPPO_PROJECT_LEGS)
def hippo_project_legs_vjp(dc, u, *, n):
    """The joining, backwards."""
    xp, (*batch, l) = namespace(u), u.shape
    if not l * n:
        return (xp.zeros_like(u),)
    members = xp.reshape(dc, (prod(batch), l, n))
    du = Halves(u, n).back(xp.permute_dims(members, (1, 2, 0)), 1)[:, 0, :]
    return (unbroadcast(xp.reshape(xp.matrix_transpose(du), u.shape), u),)
