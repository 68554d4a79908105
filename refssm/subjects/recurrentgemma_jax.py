# pyright: reportMissingImports=false
"""RecurrentGemma's `linear_scan` in JAX, by each of its algorithms.

`jax.lax.scan` (LINEAR_NATIVE), `jax.lax.associative_scan` (ASSOCIATIVE_NATIVE), and its Pallas
kernel (LINEAR_PALLAS), interpreted.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.experimental.pallas import tpu

from refssm.subjects.clones import module
from refssm.testing import implements

scan = module("recurrentgemma", "recurrentgemma.jax.scan")
complex_lib = scan.complex_lib

REST, FROM = "b l n, b l n -> b l n", "b l n, b l n, b n -> b l n"
STEP = "b n, b n, b n -> b n"
NATIVE = {
    "framework": "jax",
    "vjp": True,
    "ftz": True,
    "dtypes": ("float32", "float64", "complex64", "complex128"),
}
ASSOCIATIVE = {**NATIVE, "dtypes": ("float32", "complex64")}
STEPS = 48  # three blocks of the Pallas kernel, which is interpreted


@partial(jax.jit, static_argnames="by")
def scanned(*arguments, by="LINEAR_NATIVE"):
    """linear_scan of arguments of one type, in which it accumulates."""
    dtype = jnp.result_type(*arguments)
    a, b, *h0 = (v.astype(dtype) for v in arguments)
    options = {"scan_type": scan.common.ScanType[by]}
    return scan.linear_scan(b, a, *h0, acc_float_dtype=jnp.finfo(dtype).dtype, **options)


@implements("linear_scan", layout=REST, **NATIVE)
def native_scan(a, b):
    """linear_scan by jax.lax.scan, from rest."""
    return scanned(a, b)[0]


@implements("linear_scan_from", layout=FROM, **NATIVE)
def native_scan_from(a, b, x0):
    """linear_scan by jax.lax.scan, from a state."""
    return scanned(a, b, x0)[0]


@implements("linear_step", layout=STEP, **NATIVE)
def native_step(a, b, x):
    """linear_scan by jax.lax.scan of one token, its sampling mode; the last state."""
    return scanned(a[:, None], b[:, None], x)[1]


associative = partial(scanned, by="ASSOCIATIVE_NATIVE")


@implements("linear_scan", layout=REST, **ASSOCIATIVE)
def associative_scan(a, b):
    """linear_scan by jax.lax.associative_scan, from rest."""
    return associative(a, b)[0]


@implements("linear_scan_from", layout=FROM, **ASSOCIATIVE)
def associative_scan_from(a, b, x0):
    """linear_scan by jax.lax.associative_scan, from a state."""
    return associative(a, b, x0)[0]


@implements("linear_step", layout=STEP, **ASSOCIATIVE)
def associative_step(a, b, x):
    """linear_scan by jax.lax.associative_scan of one token; the last state."""
    return associative(a[:, None], b[:, None], x)[1]


def few_steps(x):
    """The case cut to its first steps."""
    return {**x, "a": x["a"][..., :STEPS, :], "b": x["b"][..., :STEPS, :]}


PALLAS = {
    "framework": "jax",
    "ftz": True,
    "only": few_steps,
    "dtypes": ("float32", "complex64"),
}


def pairs(x):
    """Complex numbers as the pairs that the kernel takes; real ones as they are."""
    return complex_lib.Complex(x.real, x.imag) if jnp.iscomplexobj(x) else x


@jax.jit
def by_kernel(*arguments):
    """linear_scan of arguments of one type; its kernel needs a last axis of a multiple of 128."""
    dtype = jnp.result_type(*arguments)
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
    _, pull_back = jax.vjp(by_kernel, *arguments)
    return [g.conj() for g in pull_back(dx.conj())]


@implements("linear_scan", layout=REST, **PALLAS)
def pallas_scan(a, b):
    """linear_scan by the Pallas kernel, from rest."""
    with tpu.force_tpu_interpret_mode():
        return by_kernel(a, b)


def pallas_scan_vjp(dx, a, b):
    """Its hand-written gradient, by the same kernel backwards."""
    with tpu.force_tpu_interpret_mode():
        return gradient(dx, a, b)


@implements("linear_scan_from", layout=FROM, **PALLAS)
def pallas_scan_from(a, b, x0):
    """linear_scan by the Pallas kernel, from a state."""
    with tpu.force_tpu_interpret_mode():
        return by_kernel(a, b, x0)


def pallas_scan_from_vjp(dx, a, b, x0):
    """Its hand-written gradient, by the same kernel backwards."""
    with tpu.force_tpu_interpret_mode():
        return gradient(dx, a, b, x0)
