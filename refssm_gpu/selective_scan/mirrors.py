"""CuPy mirrors of selective scans, and of Mamba's: the same, with softplus, skip and gate."""

from refssm.selective_scan import (
    MAMBA_SCAN,
    MAMBA_SCAN_PACKED,
    MAMBA_SCAN_STATEFUL,
    MAMBA_STEP,
    SELECTIVE_SCAN,
    SELECTIVE_SCAN_PACKED,
    SELECTIVE_SCAN_STATEFUL,
    SELECTIVE_STEP,
)
from refssm_gpu._launching.arrays import in_type_of
from refssm_gpu._launching.checked import WITH_HALVES, mirror
from refssm_gpu.selective_scan.kernels import ScanArguments, gradients, scan


@mirror(SELECTIVE_SCAN, WITH_HALVES)
def selective_scan(u, dt, A, B, C):
    """Halves are computed in single precision."""
    return scan(ScanArguments(u, dt, A, B, C), at_rest=True)[0]


@mirror(SELECTIVE_SCAN, WITH_HALVES)
def selective_scan_vjp(dy, u, dt, A, B, C):
    return gradients(ScanArguments(u, dt, A, B, C, dy=dy), at_rest=True)


@mirror(SELECTIVE_SCAN_STATEFUL, WITH_HALVES)
def selective_scan_stateful(u, dt, A, B, C, x0):
    y, x = scan(ScanArguments(u, dt, A, B, C, x0=x0), at_rest=False)
    return y, in_type_of(x, u, dt, A, B, x0)


@mirror(SELECTIVE_SCAN_STATEFUL, WITH_HALVES)
def selective_scan_stateful_vjp(dy, dx, u, dt, A, B, C, x0):
    return gradients(ScanArguments(u, dt, A, B, C, x0=x0, dy=dy), dx, at_rest=False)


@mirror(SELECTIVE_SCAN_PACKED, WITH_HALVES)
def selective_scan_packed(u, dt, A, B, C, resets):
    return scan(ScanArguments(u, dt, A, B, C, resets=resets), at_rest=True)[0]


@mirror(SELECTIVE_SCAN_PACKED, WITH_HALVES)
def selective_scan_packed_vjp(dy, u, dt, A, B, C, resets):
    return *gradients(ScanArguments(u, dt, A, B, C, resets=resets, dy=dy), at_rest=True), None


def _one_step(u, dt, A, B, C, x, dy=None):
    """The arguments of a scan of length 1."""
    u, dt, B, C = u[..., None], dt[..., None], B[..., None, :], C[..., None, :]
    return ScanArguments(u, dt, A, B, C, x0=x, dy=None if dy is None else dy[..., None])


@mirror(SELECTIVE_STEP, WITH_HALVES)
def selective_step(u, dt, A, B, C, x):
    """A scan of length 1."""
    y, x_next = scan(_one_step(u, dt, A, B, C, x), at_rest=False)
    return y[..., 0], in_type_of(x_next, u, dt, A, B, x)


@mirror(SELECTIVE_STEP, WITH_HALVES)
def selective_step_vjp(dy, dx_next, u, dt, A, B, C, x):
    given = _one_step(u, dt, A, B, C, x, dy)
    du, ddt, dA, dB, dC, dx = gradients(given, dx_next, at_rest=False)
    return du[..., 0], ddt[..., 0], dA, dB[..., 0, :], dC[..., 0, :], dx


# ---- Mamba's


@mirror(MAMBA_SCAN, WITH_HALVES)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """Halves are computed in single precision."""
    return scan(ScanArguments(u, dt, A, B, C, D, z, dt_bias), at_rest=True)[0]


@mirror(MAMBA_SCAN, WITH_HALVES)
def mamba_scan_vjp(dy, u, dt, A, B, C, D, z, dt_bias):
    return gradients(ScanArguments(u, dt, A, B, C, D, z, dt_bias, dy=dy), at_rest=True)


@mirror(MAMBA_SCAN_STATEFUL, WITH_HALVES)
def mamba_scan_stateful(u, dt, A, B, C, D, z, dt_bias, x0):
    y, x = scan(ScanArguments(u, dt, A, B, C, D, z, dt_bias, x0), at_rest=False)
    return y, in_type_of(x, u, dt, A, B, dt_bias, x0)


@mirror(MAMBA_SCAN_STATEFUL, WITH_HALVES)
def mamba_scan_stateful_vjp(dy, dx, u, dt, A, B, C, D, z, dt_bias, x0):
    return gradients(ScanArguments(u, dt, A, B, C, D, z, dt_bias, x0, dy=dy), dx, at_rest=False)


@mirror(MAMBA_SCAN_PACKED, WITH_HALVES)
def mamba_scan_packed(u, dt, A, B, C, D, z, dt_bias, resets):
    return scan(ScanArguments(u, dt, A, B, C, D, z, dt_bias, resets=resets), at_rest=True)[0]


@mirror(MAMBA_SCAN_PACKED, WITH_HALVES)
def mamba_scan_packed_vjp(dy, u, dt, A, B, C, D, z, dt_bias, resets):
    given = ScanArguments(u, dt, A, B, C, D, z, dt_bias, resets=resets, dy=dy)
    return *gradients(given, at_rest=True), None


def _one_mamba_step(u, dt, A, B, C, D, z, dt_bias, x, dy=None):
    """The arguments of a scan of length 1."""
    u, dt, z, B, C = u[..., None], dt[..., None], z[..., None], B[..., None, :], C[..., None, :]
    return ScanArguments(u, dt, A, B, C, D, z, dt_bias, x, dy=None if dy is None else dy[..., None])


@mirror(MAMBA_STEP, WITH_HALVES)
def mamba_step(u, dt, A, B, C, D, z, dt_bias, x):
    """A scan of length 1."""
    y, x_next = scan(_one_mamba_step(u, dt, A, B, C, D, z, dt_bias, x), at_rest=False)
    return y[..., 0], in_type_of(x_next, u, dt, A, B, dt_bias, x)


@mirror(MAMBA_STEP, WITH_HALVES)
def mamba_step_vjp(dy, dx_next, u, dt, A, B, C, D, z, dt_bias, x):
    given = _one_mamba_step(u, dt, A, B, C, D, z, dt_bias, x, dy)
    du, ddt, dA, dB, dC, dD, dz, ddt_bias, dx = gradients(given, dx_next, at_rest=False)
    dB, dC = dB[..., 0, :], dC[..., 0, :]
    return du[..., 0], ddt[..., 0], dA, dB, dC, dD, dz[..., 0], ddt_bias, dx
