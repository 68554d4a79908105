# pyright: reportMissingImports=false
"""S5's own JAX code: apply_ssm, discretizations, S5SSM with the paper's gate, initial systems."""

from functools import partial

import jax
import jax.numpy as jnp
from flax.linen import gelu

from refssm.subjects.clones import module
from refssm.testing import implements

jnp.DeviceArray = jax.Array  # pyright: ignore[reportAttributeAccessIssue]  # S5SSM is annotated so
s5 = module("S5", "s5.ssm")
del jnp.DeviceArray  # pyright: ignore[reportAttributeAccessIssue]
init = module("S5", "s5.ssm_init")

DECLARED = {"framework": "jax", "ftz": True, "vjp": True}
SSM = "n, n m, p n, p m, b l m -> b l p"
LAYER = "b l h, n, n, n h, h n, h, h h, h -> b l h"
RULE = "n, n m, n -> n, n m"


@partial(jax.jit, static_argnames=("conj_sym", "bidirectional"))
def _applied(a, B, C, D, u, *, conj_sym, bidirectional):
    """apply_ssm of each signal, and D u, which it leaves to its caller."""
    return jax.vmap(lambda u: s5.apply_ssm(a, B, C, u, conj_sym, bidirectional))(u) + u @ D.T


@implements("diagonal_ssm_real", layout=SSM, kinds="complex", **DECLARED)
def diagonal_ssm_real(a, B, C, D, u):
    """apply_ssm(…, conj_sym=True)."""
    return _applied(a, B, C, D, u, conj_sym=True, bidirectional=False)


@implements("discretize_diagonal_zoh", layout=RULE, **DECLARED)
@jax.jit
def discretize_diagonal_zoh(w, B, dt):
    """(1/Λ)(e^{ΔΛ} − 1) B̃."""
    return s5.discretize_zoh(w, B, dt)


@implements("discretize_diagonal_bilinear", layout=RULE, **DECLARED)
@jax.jit
def discretize_diagonal_bilinear(w, B, dt):
    """Uses (1 − ½ΔΛ)⁻¹ as a factor."""
    return s5.discretize_bilinear(w, B, dt)


@partial(jax.jit, static_argnames="bidirectional")
def _layer(u, w, log_dt, B, C, D, W, b, *, bidirectional=False):
    """S5SSM of each signal, and g σ(g W + b) with the exact GELU."""
    n, h = B.shape
    start = jnp.ones(n), jnp.ones(n), jnp.ones((2 * n, n)), jnp.ones((n, 2 * n))
    rest = "complex_normal", "zoh", 1e-3, 1e-1
    ssm = s5.S5SSM(*start, h, n, *rest, bidirectional=bidirectional)
    B, C = (jnp.stack([part.real, part.imag], -1) for part in (B, C))
    parameters = {"Lambda_re": w.real, "Lambda_im": w.imag, "log_step": log_dt[:, None]}
    bound = {"params": {**parameters, "B": B, "C": C, "D": D}}
    g = gelu(jax.vmap(lambda u: ssm.apply(bound, u))(u), approximate=False)
    return g * jax.nn.sigmoid(g @ W + b)


@implements("s5_layer", layout=LAYER, **DECLARED)
def s5_layer(u, w, log_dt, B, C, D, W, b):
    """S5SSM and the gate."""
    return _layer(u, w, log_dt, B, C, D, W, b)


@implements("s5_bidirectional_layer", layout=LAYER.replace("h n", "h 2n", 1), **DECLARED)
def s5_bidirectional_layer(u, w, log_dt, B, C, D, W, b):
    """S5SSM(bidirectional=True) and the gate."""
    return _layer(u, w, log_dt, B, C, D, W, b, bidirectional=True)


@implements("hippo_legs", framework="jax", ftz=True)
def hippo_legs(*, n):
    """make_NPLR_HiPPO: its matrix, and B."""
    A, _, B = init.make_NPLR_HiPPO(n)
    return A, B


@implements("nplr_legs", framework="jax", ftz=True)
def nplr_legs(*, n):
    """make_DPLR_HiPPO."""
    w, P, B, V, _ = init.make_DPLR_HiPPO(n)
    return w, P[:, None], B, V
