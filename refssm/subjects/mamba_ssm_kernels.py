# pyright: reportMissingImports=false
"""mamba-ssm's selective scan: its CUDA extension, with the gradient that it computes itself.

Its chunked scan is not here: it multiplies steps by dt and decays by e^{dt A}, where ours takes the
logarithms of the decays; with dt = 1 it would do other work.
"""

from mamba_ssm.ops.selective_scan_interface import selective_scan_fn

from refssm.testing import implements

SCANNED = "b d l, b d l, d n, b n l, b n l"
DECLARED = {
    "framework": "torch",
    "device": "cuda",
    "vjp": True,
    "ftz": True,  # its setup.py compiles with --use_fast_math
    "dtypes": ("float32",),
}


@implements("selective_scan", layout=f"{SCANNED} -> b d l", **DECLARED)
def selective_scan(u, dt, A, B, C):
    """selective_scan_fn."""
    _check(u)
    return selective_scan_fn(u, dt, A, B, C)


@implements("mamba_scan", layout=f"{SCANNED}, d, b d l, d -> b d l", **DECLARED)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """selective_scan_fn with bias, softplus, skip connection and gate."""
    _check(u)
    return selective_scan_fn(u, dt, A, B, C, D, z, dt_bias, delta_softplus=True)


def _check(u):
    if 0 in u.shape:
        raise NotImplementedError("a launch of no blocks")
