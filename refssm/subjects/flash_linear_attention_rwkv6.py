# pyright: reportMissingImports=false
"""flash-linear-attention's RWKV-6: naive functions, and Triton kernels in Triton's interpreter.

Its own tests compare the kernels with the naive functions. The scale of r is 1 here. Receptances
and keys have a head for each of the values. Sizes of kernels are cut: the interpreter is slow.
"""

from typing import Any

from refssm.subjects.clones import module
from refssm.subjects.triton_interpreter import few, tensors_in_loops
from refssm.testing import implements

AXES = {"r": "b g 1 l n", "k": "b g 1 l n", "v": "b g h l p", "log_w": "b g h l n"}
AXES |= {"u": "g h n", "S0": "b g h n p"}
FEW: dict[str, int] = {"b": 2, "g": 1, "h": 2, "n": 9, "p": 9}
some, more = few(AXES, **FEW, l=20), few(AXES, **FEW, l=70)
DECLARED: dict[str, Any] = {"framework": "torch", "vjp": True, "dtypes": ("float32",)}
NAIVE = "b g l n, b g l n, b (g h) l p, b (g h) l n, (g h) n"
KERNEL = "b l g n, b l g n, b l (g h) p, b l (g h) n, (g h) n"
FIRST, LAST, STATE = "b (g h) l p", "b l (g h) p", "b (g h) n p"


def fla(dotted: str):
    """A module of theirs; it stays, because its functions import others when they are called."""
    return module("flash-linear-attention", f"fla.ops.rwkv6{dotted}", stays=True)


kernels, recurrent, chunks = fla(""), fla(".recurrent_naive"), fla(".chunk_naive")
tensors_in_loops(fla(".chunk"))
tensors_in_loops(module("flash-linear-attention", "fla.ops.common.chunk_h", stays=True))


def of_heads(r, k, v, axis: int):
    """Receptances and keys of a group, for each head of its values."""
    return (x.repeat_interleave(v.shape[axis] // x.shape[axis], axis) for x in (r, k))


@implements("rwkv6", layout=f"{NAIVE} -> {FIRST}", **DECLARED)
def naive_recurrent_rwkv6(r, k, v, log_w, u):
    """naive_recurrent_rwkv6."""
    r, k = of_heads(r, k, v, 1)
    return recurrent.naive_recurrent_rwkv6(r, k, v, log_w, u, 1.0)[0]


@implements("rwkv6_stateful", layout=f"{NAIVE}, {STATE} -> {FIRST}, {STATE}", **DECLARED)
def naive_recurrent_rwkv6_stateful(r, k, v, log_w, u, S0):
    """naive_recurrent_rwkv6 from a state."""
    r, k = of_heads(r, k, v, 1)
    return recurrent.naive_recurrent_rwkv6(r, k, v, log_w, u, 1.0, S0, True)


def whole_chunks(x):
    """The case up to its last whole chunk."""
    chunk = min(x["chunk"], 64)
    l = x["r"].shape[-2] // chunk * chunk
    cut = {name: x[name][..., :l, :] for name in ("r", "k", "v", "log_w")}
    return {**x, **cut, "chunk": chunk} if l else None


@implements("rwkv6_chunked", layout=f"{NAIVE} -> {FIRST}", only=whole_chunks, **DECLARED)
def naive_chunk_rwkv6(r, k, v, log_w, u, *, chunk):
    """naive_chunk_rwkv6."""
    r, k = of_heads(r, k, v, 1)
    return chunks.naive_chunk_rwkv6(r, k, v, log_w, u, chunk)


@implements("rwkv6", layout=f"{KERNEL} -> {LAST}", only=some, **DECLARED)
def fused_recurrent_rwkv6(r, k, v, log_w, u):
    """fused_recurrent_rwkv6."""
    r, k = of_heads(r, k, v, 2)
    return kernels.fused_recurrent_rwkv6(r, k, v, log_w, u, 1.0)[0]


@implements("rwkv6_stateful", layout=f"{KERNEL}, {STATE} -> {LAST}, {STATE}", only=some, **DECLARED)
def fused_recurrent_rwkv6_stateful(r, k, v, log_w, u, S0):
    """fused_recurrent_rwkv6 from a state."""
    r, k = of_heads(r, k, v, 2)
    return kernels.fused_recurrent_rwkv6(r, k, v, log_w, u, 1.0, S0, True)


def in_chunks(x):
    """A smaller case in chunks of 16, 32 or 64 steps."""
    return {**more(x), "chunk": min(max(16, 1 << (x["chunk"] - 1).bit_length()), 64)}


@implements("rwkv6_chunked", layout=f"{KERNEL} -> {LAST}", only=in_chunks, **DECLARED)
def chunk_rwkv6(r, k, v, log_w, u, *, chunk):
    """chunk_rwkv6."""
    r, k = of_heads(r, k, v, 2)
    return kernels.chunk_rwkv6(r, k, v, log_w, u, 1.0, chunk_size=chunk)[0]


@implements(
    "rwkv6_chunked_stateful", layout=f"{KERNEL}, {STATE} -> {LAST}, {STATE}", only=in_chunks,
    **DECLARED,
)  # fmt: skip
def chunk_rwkv6_stateful(r, k, v, log_w, u, S0, *, chunk):
    """chunk_rwkv6 from a state."""
    r, k = of_heads(r, k, v, 2)
    return kernels.chunk_rwkv6(r, k, v, log_w, u, 1.0, S0, True, chunk_size=chunk)
