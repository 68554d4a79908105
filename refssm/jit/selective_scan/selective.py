"""Numba mirrors of refssm.selective_scan.selective: one kernel for each direction."""

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import in_kind_of, started
from refssm.jit._compiling.mirror import mirror
from refssm.jit.selective_scan.kernels import at_rest, pulled_back, scan
from refssm.selective_scan.selective import SELECTIVE


def _run(arguments, x0, resets):
    u, dt, A, B, C = arguments
    y, x = scan(u, dt, A, B, C, *started(at_rest(A), x0, resets, u.shape[-1]))
    return y, in_kind_of(x, u, dt, A, B, x0)


def _back(cotangents, arguments, x0, resets):
    u, dt, A, B, C = arguments
    dy, dx = (*cotangents, at_rest(A))[:2]
    x0, resets = started(at_rest(A), x0, resets, u.shape[-1])
    gradients = pulled_back(dy, dx, u, dt, A, B, C, x0, resets)
    return unbroadcast_each(gradients, (u, dt, A, B, C, x0))


(
    (selective_scan, selective_scan_vjp),
    (selective_scan_stateful, selective_scan_stateful_vjp),
    (selective_scan_packed, selective_scan_packed_vjp),
    (selective_scan_packed_stateful, selective_scan_packed_stateful_vjp),
    (selective_scan_states, selective_scan_states_vjp),
    (selective_scan_reversed, selective_scan_reversed_vjp),
    (selective_step, selective_step_vjp),
) = SELECTIVE.mirrors(_run, _back, mirror)
