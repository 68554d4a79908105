"""Numba mirrors of refssm.selective_scan.mamba and .mamba_packed: the kernels of selective_scan.

Real scans compute softplus, skip and gate in the kernel; around complex ones NumPy does. The
gradients use the ungated outputs of the adjoint, which computes the states again anyway.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.jit._compiling.gufunc import begun, in_kind_of
from refssm.jit._compiling.mirror import mirror
from refssm.jit.selective_scan.kernels import at_rest, gated_back, gated_scan
from refssm.scan.blocks import no_resets
from refssm.selective_scan import MAMBA_SCAN, MAMBA_SCAN_PACKED, MAMBA_SCAN_STATEFUL, MAMBA_STEP


def _gated(arguments, x0, resets):
    """All outputs, and the last state."""
    u, dt, A, B, _, _, _, dt_bias = arguments
    y, x = gated_scan(*arguments, x0, resets)
    x = with_batch(x, 1, y.shape[:-1])  # D and z may have more axes
    return y, in_kind_of(x, u, dt, A, B, dt_bias, x0)


def _gated_back(dy, dx, arguments, x0, resets):
    """Gradients from the gated outputs and the last state, for the arguments and x0."""
    gradients = gated_back(dy, dx, *arguments, x0, resets)
    return unbroadcast_each(gradients, (*arguments, x0))


@mirror(MAMBA_SCAN)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    return _gated((u, dt, A, B, C, D, z, dt_bias), at_rest(A), begun(u.shape[-1]))[0]


@mirror(MAMBA_SCAN)
def mamba_scan_vjp(dy, u, dt, A, B, C, D, z, dt_bias):
    arguments, rest = (u, dt, A, B, C, D, z, dt_bias), at_rest(A)
    return _gated_back(dy, rest, arguments, rest, begun(u.shape[-1]))[:-1]


@mirror(MAMBA_SCAN_STATEFUL)
def mamba_scan_stateful(u, dt, A, B, C, D, z, dt_bias, x0):
    return _gated((u, dt, A, B, C, D, z, dt_bias), x0, no_resets(u.shape[-1]))


@mirror(MAMBA_SCAN_STATEFUL)
def mamba_scan_stateful_vjp(dy, dx, u, dt, A, B, C, D, z, dt_bias, x0):
    arguments = u, dt, A, B, C, D, z, dt_bias
    return _gated_back(dy, dx, arguments, x0, no_resets(u.shape[-1]))


@mirror(MAMBA_SCAN_PACKED)
def mamba_scan_packed(u, dt, A, B, C, D, z, dt_bias, resets):
    resets = resets | begun(u.shape[-1])
    return _gated((u, dt, A, B, C, D, z, dt_bias), at_rest(A), resets)[0]


@mirror(MAMBA_SCAN_PACKED)
def mamba_scan_packed_vjp(dy, u, dt, A, B, C, D, z, dt_bias, resets):
    arguments, rest = (u, dt, A, B, C, D, z, dt_bias), at_rest(A)
    resets = resets | begun(u.shape[-1])
    return *_gated_back(dy, rest, arguments, rest, resets)[:-1], None


def _one_step(u, dt, A, B, C, D, z, dt_bias):
    """The arguments of a scan of length 1."""
    return (
        u[..., None],
        dt[..., None],
        A,
        B[..., None, :],
        C[..., None, :],
        D,
        z[..., None],
        dt_bias,
    )


@mirror(MAMBA_STEP)
def mamba_step(u, dt, A, B, C, D, z, dt_bias, x):
    """A scan of length 1."""
    y, x_next = _gated(_one_step(u, dt, A, B, C, D, z, dt_bias), x, no_resets(1))
    return y[..., 0], x_next


@mirror(MAMBA_STEP)
def mamba_step_vjp(dy, dx_next, u, dt, A, B, C, D, z, dt_bias, x):
    arguments = _one_step(u, dt, A, B, C, D, z, dt_bias)
    gradients = _gated_back(dy[..., None], dx_next, arguments, x, no_resets(1))
    du, ddt, dA, dB, dC, dD, dz, ddt_bias, dx = gradients
    dB, dC = dB[..., 0, :], dC[..., 0, :]
    return du[..., 0], ddt[..., 0], dA, dB, dC, dD, dz[..., 0], ddt_bias, dx
