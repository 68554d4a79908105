"""Numba mirrors of refssm.selective_scan.selective and .packed: one kernel for each direction."""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import begun, in_kind_of
from refssm.jit._compiling.mirror import mirror
from refssm.jit.selective_scan.kernels import at_rest, pulled_back, scan
from refssm.scan.blocks import no_resets
from refssm.selective_scan import (
    SELECTIVE_SCAN,
    SELECTIVE_SCAN_PACKED,
    SELECTIVE_SCAN_STATEFUL,
    SELECTIVE_STEP,
)


@mirror(SELECTIVE_SCAN)
def selective_scan(u, dt, A, B, C):
    return scan(u, dt, A, B, C, at_rest(A), begun(u.shape[-1]))[0]


@mirror(SELECTIVE_SCAN)
def selective_scan_vjp(dy, u, dt, A, B, C):
    return selective_back(dy, u, dt, A, B, C, begun(u.shape[-1]))


def selective_back(dy, u, dt, A, B, C, resets):
    """Gradients of a scan from rest."""
    *gradients, _ = pulled_back(dy, at_rest(A), u, dt, A, B, C, at_rest(A), resets)
    return unbroadcast_each(gradients, (u, dt, A, B, C))


@mirror(SELECTIVE_SCAN_STATEFUL)
def selective_scan_stateful(u, dt, A, B, C, x0):
    y, x = scan(u, dt, A, B, C, x0, no_resets(u.shape[-1]))
    return y, in_kind_of(x, u, dt, A, B, x0)


@mirror(SELECTIVE_SCAN_STATEFUL)
def selective_scan_stateful_vjp(dy, dx, u, dt, A, B, C, x0):
    gradients = pulled_back(dy, dx, u, dt, A, B, C, x0, no_resets(u.shape[-1]))
    return unbroadcast_each(gradients, (u, dt, A, B, C, x0))


@mirror(SELECTIVE_SCAN_PACKED)
def selective_scan_packed(u, dt, A, B, C, resets):
    return scan(u, dt, A, B, C, at_rest(A), resets | begun(u.shape[-1]))[0]


@mirror(SELECTIVE_SCAN_PACKED)
def selective_scan_packed_vjp(dy, u, dt, A, B, C, resets):
    return *selective_back(dy, u, dt, A, B, C, resets | begun(u.shape[-1])), None


@mirror(SELECTIVE_STEP)
def selective_step(u, dt, A, B, C, x):
    """A scan of length 1."""
    arguments = u[..., None], dt[..., None], A, B[..., None, :], C[..., None, :]
    y, x_next = scan(*arguments, x, no_resets(1))
    return y[..., 0], in_kind_of(x_next, u, dt, A, B, x)


@mirror(SELECTIVE_STEP)
def selective_step_vjp(dy, dx_next, u, dt, A, B, C, x):
    arguments = u[..., None], dt[..., None], A, B[..., None, :], C[..., None, :]
    gradients = pulled_back(dy[..., None], dx_next, *arguments, x, no_resets(1))
    du, ddt, dA, dB, dC, dx = unbroadcast_each(gradients, (*arguments, x))
    return du[..., 0], ddt[..., 0], dA, dB[..., 0, :], dC[..., 0, :], dx
