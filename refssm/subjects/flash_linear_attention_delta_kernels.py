# pyright: reportMissingImports=false
"""flash-linear-attention's Triton kernels of delta rules, in Triton's interpreter.

Queries are multiplied by `scale`, n^-1/2 here. Keys and queries have a head for each group, `g`
and `beta` one for each head of the values. Sizes are cut, because the interpreter is slow.
"""

from typing import Any

from refssm.adapters import scaled
from refssm.subjects.clones import module
from refssm.subjects.triton_interpreter import few, tensors_in_loops
from refssm.testing import implements

AXES = {
    "q": "b g 1 l n",
    "k": "b g 1 l n",
    "v": "b g h l p",
    "beta": "b g h l",
    "S0": "b g h n p",
}
FEW: dict[str, int] = {"b": 2, "g": 1, "h": 2, "n": 9, "p": 9}  # 9 values: two blocks of 8
BY_HEAD, BY_KEY = ({**AXES, "log_g": of} for of in ("b g h l", "b g h l n"))
by_head, by_key = few(BY_HEAD, **FEW, l=20), few(BY_KEY, **FEW, l=20)
DECLARED: dict[str, Any] = {
    "framework": "torch",
    "vjp": True,
    "dtypes": ("float32",),
    "adapters": (scaled(),),
}
QUERIES, VALUES, HEADS = "b l g n, b l g n", "b l (g h) p", "b l (g h)"
PLAIN = f"{QUERIES}, {VALUES}, {HEADS}"
GATED = f"{QUERIES}, {VALUES}, {HEADS}, {HEADS}"
KEYED = f"{QUERIES}, {VALUES}, {HEADS} n, {HEADS}"
STATE = "b (g h) n p"


def fla(name: str):
    """A package of kernels; it stays, because its functions import others when they are called."""
    return module("flash-linear-attention", f"fla.ops.{name}", stays=True)


delta, gated, kda = fla("delta_rule"), fla("gated_delta_rule"), fla("kda")
for name in ("common.chunk_delta_h", "common.chunk_o", "kda.chunk_intra"):
    tensors_in_loops(fla(name))


def of_heads(x, v):
    """Queries or keys of a group, for each head of its values."""
    return x.repeat_interleave(v.shape[2] // x.shape[2], 2)


def in_chunks_of_64(x):
    """A smaller case with up to two chunks of 64 steps."""
    return {**few(BY_HEAD, **FEW, l=70)(x), "chunk": 64}


def by_key_in_chunks_of_64(x):
    """A smaller case with gates of keys; its kernels are the slowest."""
    return {**few(BY_KEY, **{**FEW, "b": 1, "h": 1}, l=70)(x), "chunk": 64}


@implements("delta_rule", layout=f"{PLAIN} -> {VALUES}", only=by_head, **DECLARED)
def fused_recurrent_delta_rule(q, k, v, beta):
    """fused_recurrent_delta_rule."""
    return delta.fused_recurrent_delta_rule(of_heads(q, v), of_heads(k, v), v, beta)[0]


@implements(
    "delta_rule_stateful", layout=f"{PLAIN}, {STATE} -> {VALUES}, {STATE}", only=by_head, **DECLARED
)
def fused_recurrent_delta_rule_stateful(q, k, v, beta, S0):
    """fused_recurrent_delta_rule from a state."""
    q, k = of_heads(q, v), of_heads(k, v)
    return delta.fused_recurrent_delta_rule(q, k, v, beta, None, S0, True)


# it refuses float32; Triton's interpreter has no bfloat16
HALF: dict[str, Any] = {**DECLARED, "dtypes": ("float16",)}


@implements("delta_rule_chunked", layout=f"{PLAIN} -> {VALUES}", only=in_chunks_of_64, **HALF)
def chunk_delta_rule(q, k, v, beta, *, chunk):
    """chunk_delta_rule."""
    del chunk
    return delta.chunk_delta_rule(of_heads(q, v), of_heads(k, v), v, beta)[0]


@implements(
    "delta_rule_chunked_stateful",
    layout=f"{PLAIN}, {STATE} -> {VALUES}, {STATE}",
    only=in_chunks_of_64,
    **HALF,
)
def chunk_delta_rule_stateful(q, k, v, beta, S0, *, chunk):
    """chunk_delta_rule from a state."""
    del chunk
    q, k = of_heads(q, v), of_heads(k, v)
    return delta.chunk_delta_rule(q, k, v, beta, None, S0, True)


FORWARD: dict[str, Any] = {
    **DECLARED,
    "vjp": False,
}  # the backward of these raises NotImplementedError


@implements("gated_delta_rule", layout=f"{GATED} -> {VALUES}", only=by_head, **FORWARD)
def fused_recurrent_gated_delta_rule(q, k, v, log_g, beta):
    """fused_recurrent_gated_delta_rule."""
    return gated.fused_recurrent_gated_delta_rule(q, k, v, log_g, beta=beta)[0]


@implements(
    "gated_delta_rule_stateful",
    layout=f"{GATED}, {STATE} -> {VALUES}, {STATE}",
    only=by_head,
    **FORWARD,
)
def fused_recurrent_gated_delta_rule_stateful(q, k, v, log_g, beta, S0):
    """fused_recurrent_gated_delta_rule from a state."""
    more = {"beta": beta, "initial_state": S0, "output_final_state": True}
    return gated.fused_recurrent_gated_delta_rule(q, k, v, log_g, **more)


@implements(
    "gated_delta_rule_chunked", layout=f"{GATED} -> {VALUES}", only=in_chunks_of_64, **DECLARED
)
def chunk_gated_delta_rule(q, k, v, log_g, beta, *, chunk):
    """chunk_gated_delta_rule."""
    del chunk
    return gated.chunk_gated_delta_rule(q, k, v, log_g, beta)[0]


@implements(
    "gated_delta_rule_chunked_stateful",
    layout=f"{GATED}, {STATE} -> {VALUES}, {STATE}",
    only=in_chunks_of_64,
    **DECLARED,
)
def chunk_gated_delta_rule_stateful(q, k, v, log_g, beta, S0, *, chunk):
    """chunk_gated_delta_rule from a state."""
    del chunk
    more = {"initial_state": S0, "output_final_state": True}
    return gated.chunk_gated_delta_rule(q, k, v, log_g, beta, **more)


@implements("kimi_delta_rule", layout=f"{KEYED} -> {VALUES}", only=by_key, **FORWARD)
def fused_recurrent_kda(q, k, v, log_g, beta):
    """fused_recurrent_kda."""
    return kda.fused_recurrent_kda(q, k, v, log_g, beta)[0]


@implements(
    "kimi_delta_rule_stateful",
    layout=f"{KEYED}, {STATE} -> {VALUES}, {STATE}",
    only=by_key,
    **FORWARD,
)
def fused_recurrent_kda_stateful(q, k, v, log_g, beta, S0):
    """fused_recurrent_kda from a state."""
    more = {"initial_state": S0, "output_final_state": True}
    return kda.fused_recurrent_kda(q, k, v, log_g, beta, **more)


@implements(
    "kimi_delta_rule_chunked",
    layout=f"{KEYED} -> {VALUES}",
    only=by_key_in_chunks_of_64,
    **DECLARED,
)
def chunk_kda(q, k, v, log_g, beta, *, chunk):
    """chunk_kda."""
    del chunk
    return kda.chunk_kda(q, k, v, log_g, beta)[0]


@implements(
    "kimi_delta_rule_chunked_stateful",
    layout=f"{KEYED}, {STATE} -> {VALUES}, {STATE}",
    only=by_key_in_chunks_of_64,
    **DECLARED,
)
def chunk_kda_stateful(q, k, v, log_g, beta, S0, *, chunk):
    """chunk_kda from a state."""
    del chunk
    more = {"initial_state": S0, "output_final_state": True}
    return kda.chunk_kda(q, k, v, log_g, beta, **more)
