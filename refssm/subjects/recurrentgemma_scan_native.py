# pyright: reportMissingImports=false
"""RecurrentGemma's `linear_scan` in JAX by `jax.lax.scan` (LINEAR_NATIVE)."""

import jax
import jax.numpy as jnp

from refssm.subjects.clones import module
from refssm.testing import implements

scan = module("recurrentgemma", "recurrentgemma.jax.scan")

DECLARED = {
    "framework": "jax",
    "vjp": True,
    "ftz": True,
    "dtypes": ("float32", "float64", "complex64", "complex128"),
}


@jax.jit
def scanned(*arguments):
    """linear_scan of arguments of one type, in which it accumulates."""
    dtype = jnp.result_type(*arguments)
    a, b, *h0 = (v.astype(dtype) for v in arguments)
    options = {"scan_type": scan.common.ScanType.LINEAR_NATIVE}
    return scan.linear_scan(b, a, *h0, acc_float_dtype=jnp.finfo(dtype).dtype, **options)


@implements("linear_scan", layout="b l n, b l n -> b l n", **DECLARED)
def linear_scan(a, b):
    """linear_scan from rest."""
    return scanned(a, b)[0]


@implements("linear_scan_from", layout="b l n, b l n, b n -> b l n", **DECLARED)
def linear_scan_from(a, b, x0):
    """linear_scan from a state."""
    return scanned(a, b, x0)[0]


@implements("linear_step", layout="b n, b n, b n -> b n", **DECLARED)
def linear_step(a, b, x):
    """linear_scan of one token, its sampling mode; the last state."""
    return scanned(a[:, None], b[:, None], x)[1]
