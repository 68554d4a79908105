"""CuPy mirrors of refssm.selective_scan.mamba and .mamba_packed: the same kernels, with softplus,
skip and gate."""

from refssm.selective_scan import MAMBA_SCAN, MAMBA_SCAN_PACKED, MAMBA_SCAN_STATEFUL, MAMBA_STEP
from refssm_gpu._launching.arrays import in_type_of
from refssm_gpu._launching.checked import WITH_HALVES, checked, checked_vjp
from refssm_gpu.selective_scan.arguments import Given
from refssm_gpu.selective_scan.kernels import gradients, scan


def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """Mirror of refssm.mamba_scan; halves are computed in single precision."""
    return scan(Given(u, dt, A, B, C, D, z, dt_bias), at_rest=True)[0]


def mamba_scan_vjp(dy, u, dt, A, B, C, D, z, dt_bias):
    """Mirror of refssm.mamba_scan_vjp."""
    return gradients(Given(u, dt, A, B, C, D, z, dt_bias, dy=dy), at_rest=True)


def mamba_scan_stateful(u, dt, A, B, C, D, z, dt_bias, x0):
    """Mirror of refssm.mamba_scan_stateful."""
    y, x = scan(Given(u, dt, A, B, C, D, z, dt_bias, x0), at_rest=False)
    return y, in_type_of(x, u, dt, A, B, dt_bias, x0)


def mamba_scan_stateful_vjp(dy, dx, u, dt, A, B, C, D, z, dt_bias, x0):
    """Mirror of refssm.mamba_scan_stateful_vjp."""
    return gradients(Given(u, dt, A, B, C, D, z, dt_bias, x0, dy=dy), dx, at_rest=False)


def mamba_scan_packed(u, dt, A, B, C, D, z, dt_bias, resets):
    """Mirror of refssm.mamba_scan_packed."""
    return scan(Given(u, dt, A, B, C, D, z, dt_bias, resets=resets), at_rest=True)[0]


def mamba_scan_packed_vjp(dy, u, dt, A, B, C, D, z, dt_bias, resets):
    """Mirror of refssm.mamba_scan_packed_vjp."""
    given = Given(u, dt, A, B, C, D, z, dt_bias, resets=resets, dy=dy)
    return *gradients(given, at_rest=True), None


def _one_step(u, dt, A, B, C, D, z, dt_bias, x, dy=None):
    """The arguments of a scan of length 1."""
    u, dt, z, B, C = u[..., None], dt[..., None], z[..., None], B[..., None, :], C[..., None, :]
    return Given(u, dt, A, B, C, D, z, dt_bias, x, dy=None if dy is None else dy[..., None])


def mamba_step(u, dt, A, B, C, D, z, dt_bias, x):
    """Mirror of refssm.mamba_step: a scan of length 1."""
    y, x_next = scan(_one_step(u, dt, A, B, C, D, z, dt_bias, x), at_rest=False)
    return y[..., 0], in_type_of(x_next, u, dt, A, B, dt_bias, x)


def mamba_step_vjp(dy, dx_next, u, dt, A, B, C, D, z, dt_bias, x):
    """Mirror of refssm.mamba_step_vjp."""
    given = _one_step(u, dt, A, B, C, D, z, dt_bias, x, dy)
    du, ddt, dA, dB, dC, dD, dz, ddt_bias, dx = gradients(given, dx_next, at_rest=False)
    dB, dC = dB[..., 0, :], dC[..., 0, :]
    return du[..., 0], ddt[..., 0], dA, dB, dC, dD, dz[..., 0], ddt_bias, dx


mamba_scan_vjp = checked_vjp(MAMBA_SCAN, mamba_scan_vjp, WITH_HALVES)
mamba_scan = checked(MAMBA_SCAN, mamba_scan, WITH_HALVES)
mamba_scan_stateful_vjp = checked_vjp(MAMBA_SCAN_STATEFUL, mamba_scan_stateful_vjp, WITH_HALVES)
mamba_scan_stateful = checked(MAMBA_SCAN_STATEFUL, mamba_scan_stateful, WITH_HALVES)
mamba_scan_packed_vjp = checked_vjp(MAMBA_SCAN_PACKED, mamba_scan_packed_vjp, WITH_HALVES)
mamba_scan_packed = checked(MAMBA_SCAN_PACKED, mamba_scan_packed, WITH_HALVES)
mamba_step_vjp = checked_vjp(MAMBA_STEP, mamba_step_vjp, WITH_HALVES)
mamba_step = checked(MAMBA_STEP, mamba_step, WITH_HALVES)
