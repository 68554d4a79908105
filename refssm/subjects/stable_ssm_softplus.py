"""StableSSM's kernel with its parametrisation "softplus"."""

from refssm.adapters import log_dt, neg_softplus
from refssm.subjects.stable_ssm_kernel import KERNEL, kernel
from refssm.testing import implements


@implements("diagonal_kernel_zoh_real", adapters=(log_dt(), neg_softplus("w")), **KERNEL)
def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """STABLESSMKernel(parameterization="softplus").forward."""
    return kernel(w, B, C, dt, l, "softplus")
