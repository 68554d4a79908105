"""Numba mirrors of refssm.selective_scan.mamba: the kernels of selective_scan.

Real scans compute softplus, skip and gate in the kernel; around complex ones NumPy does. The
gradients use the ungated outputs of the adjoint, which computes the states again anyway.
"""

from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.jit._compiling.gufunc import in_kind_of, started
from refssm.jit._compiling.mirror import mirror
from refssm.jit.selective_scan.kernels import at_rest, gated_back, gated_scan
from refssm.selective_scan.mamba import MAMBA


def _run(arguments, x0, resets):
    u, dt, A, B, _, _, _, dt_bias = arguments
    given = [*arguments, *started(at_rest(A), x0, resets, u.shape[-1])]
    y, x = gated_scan(*given)
    x = with_batch(x, 1, y.shape[:-1])  # D and z may have more axes
    return y, in_kind_of(x, u, dt, A, B, dt_bias, x0)


def _back(cotangents, arguments, x0, resets):
    u, _, A, *_ = arguments
    dy, dx = (*cotangents, at_rest(A))[:2]
    x0, resets = started(at_rest(A), x0, resets, u.shape[-1])
    given = [dy, dx, *arguments, x0, resets]
    return unbroadcast_each(gated_back(*given), (*arguments, x0))


(
    (mamba_scan, mamba_scan_vjp),
    (mamba_scan_stateful, mamba_scan_stateful_vjp),
    (mamba_scan_packed, mamba_scan_packed_vjp),
    (mamba_scan_packed_stateful, mamba_scan_packed_stateful_vjp),
    (mamba_scan_states, mamba_scan_states_vjp),
    (mamba_scan_reversed, mamba_scan_reversed_vjp),
    (mamba_step, mamba_step_vjp),
) = MAMBA.mirrors(_run, _back, mirror)
