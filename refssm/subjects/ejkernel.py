# pyright: reportMissingImports=false
"""ejkernel's recurrent linear attention by XLA, with its own reverse pass.

Its module asks for a type checker that does not import beside a new JAX, so its functions are taken
from the file. Queries are multiplied by `softmax_scale`, here 1.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from refssm.subjects.clones import alone, definitions
from refssm.testing import implements

FOLDER = "ejkernel/kernels/_xla/recurrent"
forward = alone("ejkernel", f"{FOLDER}/_xla_impl_fwd.py")
reverse = alone("ejkernel", f"{FOLDER}/_xla_impl_bwd.py")
theirs = definitions(
    "ejkernel",
    f"{FOLDER}/_interface.py",
    *("_recurrent_core", "_recurrent_fwd", "_recurrent_bwd"),
    partial=partial, jax=jax, jnp=jnp, Array=Array, Float=Float, Int=Int,
    _recurrent_attention_bwd=reverse._recurrent_attention_bwd,
    _recurrent_attention_fwd=forward._recurrent_attention_fwd,
    _recurrent_attention_varlen_fwd=forward._recurrent_attention_varlen_fwd,
)  # fmt: skip
core = theirs._recurrent_core
core.defvjp(theirs._recurrent_fwd, theirs._recurrent_bwd)  # as the file does

H = "(g h)"
LAYOUT = f"b l g n, b l g n, b l {H} p, b l {H} n, b {H} n p -> b l {H} p, b {H} n p"
DECLARED: dict[str, Any] = {"framework": "jax", "vjp": True, "dtypes": ("float32",), "ftz": True}
SHORT = 65  # every new size is compiled


def square(x):
    """As many values as keys, in few steps: without a first state theirs is of keys by keys."""
    n = min(x["k"].shape[-1], x["v"].shape[-1])
    rows = {name: x[name][..., :SHORT, :n] for name in ("q", "k", "v", "log_g")}
    return {**x, **rows, "S0": x["S0"][..., :n, :n]}


def run(q, k, v, S0, **gate):
    """Queries and keys of a group, for each of its heads."""
    q, k = (jnp.repeat(x, v.shape[2] // x.shape[2], axis=2) for x in (q, k))
    gates = {"g": None, "gk": None, **gate}
    return core(q, k, v, gates["g"], None, gates["gk"], None, 1.0, S0, False, None)


@implements("gated_linear_recurrence_stateful", layout=LAYOUT, only=square, **DECLARED)
def recurrent(q, k, v, log_g, S0):
    """recurrent with gk, from a state."""
    return run(q, k, v, S0, gk=log_g)
