"""Numba mirrors of refssm.selective_scan.selective and .packed: one kernel for each direction."""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

from refssm._declaration.operator import COMPILED_TYPES
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import begun, in_kind_of
from refssm.jit.selective_scan.kernels import at_rest, pulled_back, scan
from refssm.scan.blocks import no_resets
from refssm.selective_scan import (
    SELECTIVE_SCAN,
    SELECTIVE_SCAN_PACKED,
    SELECTIVE_SCAN_STATEFUL,
    SELECTIVE_STEP,
)


def selective_scan(u, dt, A, B, C):
    """Mirror of refssm.selective_scan."""
    return scan(u, dt, A, B, C, at_rest(A), begun(u.shape[-1]))[0]


def selective_scan_vjp(dy, u, dt, A, B, C):
    """Mirror of refssm.selective_scan_vjp."""
    return selective_back(dy, u, dt, A, B, C, begun(u.shape[-1]))


def selective_back(dy, u, dt, A, B, C, resets):
    """Gradients of a scan from rest."""
    *gradients, _ = pulled_back(dy, at_rest(A), u, dt, A, B, C, at_rest(A), resets)
    return unbroadcast_each(gradients, (u, dt, A, B, C))


def selective_scan_stateful(u, dt, A, B, C, x0):
    """Mirror of refssm.selective_scan_stateful."""
    y, x = scan(u, dt, A, B, C, x0, no_resets(u.shape[-1]))
    return y, in_kind_of(x, u, dt, A, B, x0)


def selective_scan_stateful_vjp(dy, dx, u, dt, A, B, C, x0):
    """Mirror of refssm.selective_scan_stateful_vjp."""
    gradients = pulled_back(dy, dx, u, dt, A, B, C, x0, no_resets(u.shape[-1]))
    return unbroadcast_each(gradients, (u, dt, A, B, C, x0))


def selective_scan_packed(u, dt, A, B, C, resets):
    """Mirror of refssm.selective_scan_packed."""
    return scan(u, dt, A, B, C, at_rest(A), resets | begun(u.shape[-1]))[0]


def selective_scan_packed_vjp(dy, u, dt, A, B, C, resets):
    """Mirror of refssm.selective_scan_packed_vjp."""
    return *selective_back(dy, u, dt, A, B, C, resets | begun(u.shape[-1])), None


def selective_step(u, dt, A, B, C, x):
    """Mirror of refssm.selective_step: a scan of length 1."""
    arguments = u[..., None], dt[..., None], A, B[..., None, :], C[..., None, :]
    y, x_next = scan(*arguments, x, no_resets(1))
    return y[..., 0], in_kind_of(x_next, u, dt, A, B, x)


def selective_step_vjp(dy, dx_next, u, dt, A, B, C, x):
    """Mirror of refssm.selective_step_vjp."""
    arguments = u[..., None], dt[..., None], A, B[..., None, :], C[..., None, :]
    gradients = pulled_back(dy[..., None], dx_next, *arguments, x, no_resets(1))
    du, ddt, dA, dB, dC, dx = unbroadcast_each(gradients, (*arguments, x))
    return du[..., 0], ddt[..., 0], dA, dB[..., 0, :], dC[..., 0, :], dx


selective_scan = SELECTIVE_SCAN.checked(selective_scan, COMPILED_TYPES)
selective_scan_vjp = SELECTIVE_SCAN.checked_vjp(selective_scan_vjp, COMPILED_TYPES)
selective_scan_stateful = SELECTIVE_SCAN_STATEFUL.checked(selective_scan_stateful, COMPILED_TYPES)
selective_scan_stateful_vjp = SELECTIVE_SCAN_STATEFUL.checked_vjp(
    selective_scan_stateful_vjp, COMPILED_TYPES
)
selective_scan_packed = SELECTIVE_SCAN_PACKED.checked(selective_scan_packed, COMPILED_TYPES)
selective_scan_packed_vjp = SELECTIVE_SCAN_PACKED.checked_vjp(
    selective_scan_packed_vjp, COMPILED_TYPES
)
selective_step = SELECTIVE_STEP.checked(selective_step, COMPILED_TYPES)
selective_step_vjp = SELECTIVE_STEP.checked_vjp(selective_step_vjp, COMPILED_TYPES)
