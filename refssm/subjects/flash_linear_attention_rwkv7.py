# pyright: reportMissingImports=false
"""flash-linear-attention's DPLR and RWKV-7: naive functions, and Triton kernels in the interpreter.

Its own tests compare the kernels with the naive functions. Queries are multiplied by 1/√n in the
naive functions, and by `scale` in the kernels: 1/√n here, but 1 in `chunk_rwkv7`. Sizes of kernels
are cut: the interpreter is slow.
"""

from functools import partial
from typing import Any

from refssm.adapters import scaled
from refssm.subjects.clones import module
from refssm.subjects.triton_interpreter import few, tensors_in_loops
from refssm.testing import implements

AXES = {"q": "b g 1 l n", "k": "b g 1 l n", "v": "b g h l p", "S0": "b g h n p"}
AXES |= dict.fromkeys(("log_g", "a", "b"), "b g h l n")
FEW: dict[str, int] = {"b": 1, "g": 1, "h": 2, "n": 5, "p": 5}
some, more = few(AXES, **FEW, l=12), few(AXES, **FEW, l=35)
short = few(AXES, b=2, g=2, h=2, n=16, p=16, l=70)
PLAIN: dict[str, Any] = {"framework": "torch", "vjp": True, "dtypes": ("float32",)}
DECLARED: dict[str, Any] = {**PLAIN, "adapters": (scaled(),)}
NAIVE = "b g l n, b g l n, b (g h) l p" + 3 * ", b (g h) l n"
KERNEL = "b l g n, b l g n, b l (g h) p" + 3 * ", b l (g h) n"
FIRST, LAST, STATE = "b (g h) l p", "b l (g h) p", "b (g h) n p"


def _of_language(language, name: str, *args, **named):
    """A function of Triton's language as it is while the interpreter runs."""
    return getattr(language, name)(*args, **named)


def fla(dotted: str):
    """A module of theirs; it stays, because its functions import others when they are called."""
    return module("flash-linear-attention", f"fla.ops.{dotted}", stays=True)


dplr, naive = fla("generalized_delta_rule.dplr"), fla("generalized_delta_rule.dplr.naive")
rwkv7 = fla("rwkv7")
KERNELS = "chunk_A_fwd chunk_A_bwd chunk_h_fwd chunk_h_bwd chunk_o_fwd wy_fast_fwd wy_fast_bwd"
for name in KERNELS.split():
    kernels = fla(f"generalized_delta_rule.dplr.{name}")
    tensors_in_loops(kernels)
    if hasattr(kernels, "gather"):  # the interpreter knows it as a member of `language` only
        vars(kernels)["gather"] = partial(_of_language, kernels.tl, "gather")


def of_heads(q, k, v, axis: int):
    """Queries and keys of a group, for each head of its values."""
    return (x.repeat_interleave(v.shape[axis] // x.shape[axis], axis) for x in (q, k))


@implements("delta_dplr", layout=f"{NAIVE} -> {FIRST}", only=short, **DECLARED)
def dplr_recurrence(q, k, v, log_g, a, b):
    """dplr_recurrence."""
    q, k = of_heads(q, k, v, 1)
    return naive.dplr_recurrence(q, k, v, a, b, log_g)[0]


@implements(
    "delta_dplr_stateful", layout=f"{NAIVE}, {STATE} -> {FIRST}, {STATE}", only=short, **DECLARED
)
def dplr_recurrence_stateful(q, k, v, log_g, a, b, S0):
    """dplr_recurrence from a state."""
    q, k = of_heads(q, k, v, 1)
    return naive.dplr_recurrence(q, k, v, a, b, log_g, S0)


def whole_chunks(x):
    """A small case up to its last whole chunk, of 64 steps at most."""
    x = {**short(x), "chunk": x["chunk"]}
    chunk = min(x["chunk"], 64)
    l = x["v"].shape[-2] // chunk * chunk
    rows = ("q", "k", "v", "log_g", "a", "b")
    return {**x, **{name: x[name][..., :l, :] for name in rows}, "chunk": chunk} if l else None


@implements("delta_dplr_chunked", layout=f"{NAIVE} -> {FIRST}", only=whole_chunks, **DECLARED)
def dplr_chunkwise(q, k, v, log_g, a, b, *, chunk):
    """dplr_chunkwise."""
    q, k = of_heads(q, k, v, 1)
    return naive.dplr_chunkwise(q, k, v, a, b, log_g, chunk_size=chunk)[0]


@implements(
    "delta_dplr_chunked_stateful",
    layout=f"{NAIVE}, {STATE} -> {FIRST}, {STATE}",
    only=whole_chunks,
    **DECLARED,
)
def dplr_chunkwise_stateful(q, k, v, log_g, a, b, S0, *, chunk):
    """dplr_chunkwise from a state."""
    q, k = of_heads(q, k, v, 1)
    return naive.dplr_chunkwise(q, k, v, a, b, log_g, S0, chunk_size=chunk)


FORWARD: dict[str, Any] = {**DECLARED, "vjp": False}  # they say that gradients are not for these


@implements("delta_dplr", layout=f"{KERNEL} -> {LAST}", only=some, **FORWARD)
def fused_recurrent_rwkv7(q, k, v, log_g, a, b):
    """fused_recurrent_rwkv7, with its default scale."""
    q, k = of_heads(q, k, v, 2)
    return rwkv7.fused_recurrent_rwkv7(q, log_g, k, v, a, b)[0]


@implements(
    "delta_dplr_stateful", layout=f"{KERNEL}, {STATE} -> {LAST}, {STATE}", only=some, **FORWARD
)
def fused_recurrent_rwkv7_stateful(q, k, v, log_g, a, b, S0):
    """fused_recurrent_rwkv7 from a state, with its default scale."""
    q, k = of_heads(q, k, v, 2)
    return rwkv7.fused_recurrent_rwkv7(q, log_g, k, v, a, b, None, S0, True)


def in_chunks_of_16(x):
    """A smaller case in chunks of 16, the default."""
    return {**more(x), "chunk": 16}


@implements("delta_dplr_chunked", layout=f"{KERNEL} -> {LAST}", only=in_chunks_of_16, **PLAIN)
def chunk_rwkv7(q, k, v, log_g, a, b, *, chunk):
    """chunk_rwkv7, with its default scale and chunks."""
    del chunk
    q, k = of_heads(q, k, v, 2)
    return rwkv7.chunk_rwkv7(q, log_g, k, v, a, b)[0]


@implements(
    "delta_dplr_chunked_stateful",
    layout=f"{KERNEL}, {STATE} -> {LAST}, {STATE}",
    only=in_chunks_of_16,
    **PLAIN,
)
def chunk_rwkv7_stateful(q, k, v, log_g, a, b, S0, *, chunk):
    """chunk_rwkv7 from a state, with its default scale and chunks."""
    del chunk
    q, k = of_heads(q, k, v, 2)
    state = {"initial_state": S0, "output_final_state": True}
    return rwkv7.chunk_rwkv7(q, log_g, k, v, a, b, **state)
