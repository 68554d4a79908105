# pyright: reportMissingImports=false
"""RecurrentGemma's `linear_scan` in JAX by its Pallas kernel (LINEAR_PALLAS), interpreted."""

import jax
from jax.experimental.pallas import tpu

from refssm.subjects.clones import module
from refssm.testing import implements

scan = module("recurrentgemma", "recurrentgemma.jax.scan")
complex_lib = scan.complex_lib

STEPS = 48  # three blocks of the kernel, which is interpreted


def few_steps(x):
    """The case cut to its first steps."""
    return {**x, "a": x["a"][..., :STEPS, :], "b": x["b"][..., :STEPS, :]}


DECLARED = {
    "framework": "jax",
    "ftz": True,
    "only": few_steps,
    "dtypes": ("float32", "complex64"),
}


def pairs(x):
    """Complex numbers as the pairs that the kernel takes; real ones as they are."""
    return complex_lib.Complex(x.real, x.imag) if jax.numpy.iscomplexobj(x) else x


@jax.jit
def scanned(*arguments):
    """linear_scan of arguments of one type; its kernel needs a last axis of a multiple of 128."""
    dtype = jax.numpy.result_type(*arguments)
    a, b, *h0 = (pairs(v.astype(dtype)) for v in arguments)
    options = {
        "scan_type": scan.common.ScanType.LINEAR_PALLAS,
        "pallas_pad_last_dim_to_128": True,
    }
    y, _ = scan.linear_scan(b, a, *h0, **options)
    return y.real + 1j * y.imag if isinstance(y, complex_lib.Complex) else y


@jax.jit
def gradient(dx, *arguments):
    """JAX's gradient of the kernel, in refssm's convention."""
    _, pull_back = jax.vjp(scanned, *arguments)
    return [g.conj() for g in pull_back(dx.conj())]


@implements("linear_scan", layout="b l n, b l n -> b l n", **DECLARED)
def linear_scan(a, b):
    """linear_scan from rest."""
    with tpu.force_tpu_interpret_mode():
        return scanned(a, b)


def linear_scan_vjp(dx, a, b):
    """Its hand-written gradient, by the same kernel backwards."""
    with tpu.force_tpu_interpret_mode():
        return gradient(dx, a, b)


@implements("linear_scan_from", layout="b l n, b l n, b n -> b l n", **DECLARED)
def linear_scan_from(a, b, x0):
    """linear_scan from a state."""
    with tpu.force_tpu_interpret_mode():
        return scanned(a, b, x0)


def linear_scan_from_vjp(dx, a, b, x0):
    """Its hand-written gradient, by the same kernel backwards."""
    with tpu.force_tpu_interpret_mode():
        return gradient(dx, a, b, x0)
