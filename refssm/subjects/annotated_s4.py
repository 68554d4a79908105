# pyright: reportMissingImports=false
"""annotated-s4: its kernels, dense recurrence, discretization and convolution, for tutorials."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from refssm.subjects.clones import module
from refssm.testing import implements

s4 = module("annotated-s4", "s4.s4")
s4d = module("annotated-s4", "s4.s4d")
dss = module("annotated-s4", "s4.dss")
DECLARED = {"framework": "jax", "ftz": True, "vjp": True}


@implements("cauchy_kernel", layout="n, n, l -> l", **DECLARED)
def cauchy_kernel(v, w, z):
    """cauchy(v, omega, lambd)."""
    return s4.cauchy(v, z, w)


def short(x):
    """The case with at most 33 steps: K_conv unrolls one power of Ā for each."""
    return {**x, "l": min(x["l"], 33)} if x["l"] else None


@implements("krylov_kernel", only=short, layout="n n, n, n -> l", **DECLARED)
@partial(jax.jit, static_argnames="l")
def krylov_kernel(A, B, C, *, l):
    """K_conv(Ab, Bb, Cb, L)."""
    return s4.K_conv(A, B[:, None], C[None], l)


@implements("discretize_bilinear", layout="n n, n m,  -> n n, n m", **DECLARED)
@jax.jit
def discretize_bilinear(A, B, dt):
    """discretize(A, B, C, step)."""
    return s4.discretize(A, B, None, dt)[:2]


@implements("dense_scan_from", layout="n n, l n, n -> l n", **DECLARED)
@jax.jit
def dense_scan_from(A, b, x0):
    """scan_SSM with B̄ = C̄ = I."""
    kind = jnp.result_type(A, b, x0)
    I = jnp.eye(len(A), dtype=kind)
    return s4.scan_SSM(A, I, I, b, x0.astype(kind))[1]


@implements("causal_convolution", layout="l, l -> l", dtypes=("float32", "float64"), **DECLARED)
@jax.jit
def causal_convolution(u, k):
    """causal_convolution(u, K)."""
    return s4.causal_convolution(u, k)


def clipped(x):
    """The case with Re w of at most −1e-4, as S4DLayer clips it."""
    w = x["w"].copy()
    w.real = np.minimum(w.real, -1e-4)
    return {**x, "w": w}


S4D = {**DECLARED, "only": clipped, "layout": "n, n, n,  -> l"}


@implements("diagonal_kernel_zoh_real", **S4D)
@partial(jax.jit, static_argnames="l")
def s4d_kernel(w, B, C, dt, *, l):
    """s4d_kernel(C, A, L, step), by powers of Ā; it returns Re Σ, so 2 C B is passed for C."""
    return s4d.s4d_kernel(2 * C * B, w, l, dt)


@implements("diagonal_kernel_zoh_real", **S4D)
def s4d_kernel_zoh(w, B, C, dt, *, l):
    """s4d_kernel_zoh(C, A, L, step), one sum; it returns Re Σ, so 2 C B is passed for C."""
    return s4d.s4d_kernel_zoh(2 * C * B, w, l, dt)


def of_rank_1(x):
    """The case with the first column of P and Q, and at most 64 steps: each length is compiled."""
    if not x["l"] or not x["P"].shape[-1]:
        return None
    return {**x, "P": x["P"][..., :1], "Q": x["Q"][..., :1], "l": min(x["l"], 64)}


@implements(
    "dplr_kernel_aliased_real",
    kinds="complex",
    only=of_rank_1,
    layout="n, n r, n r, n, n, -> l",
    **DECLARED,
)
@partial(jax.jit, static_argnames="l")
def dplr_kernel_aliased_real(w, P, Q, B, C, dt, *, l):
    """kernel_DPLR(Lambda, P, Q, B, C, step, L) of all modes, both of each conjugate pair."""
    w, p, q, b, c = (jnp.concatenate([x, x.conj()]) for x in (w, P[:, 0], Q[:, 0], B, C))
    return s4.kernel_DPLR(w, p, q, b, c.conj(), dt, l)


@implements("dss_softmax_kernel", layout="n, n,  -> l", **DECLARED)
@partial(jax.jit, static_argnames="l")
def dss_softmax_kernel(w, C, dt, *, l):
    """dss_kernel(W, Lambda, L, step); it returns the real part: called for C and −iC."""
    real = dss.dss_kernel(C[None], w, l, dt)
    if not jnp.iscomplexobj(w) and not jnp.iscomplexobj(C):
        return real
    return real + 1j * dss.dss_kernel(-1j * C[None], w, l, dt)
