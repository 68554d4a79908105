# pyright: reportMissingImports=false
"""flash-linear-attention's naive delta rules, with which its own tests compare kernels.

Queries are divided by √n inside, or with `scale` multiplied by it. Keys and queries have a head for
each group, `g` and `beta` one for each head of the values.
"""

from typing import Any

from refssm.adapters import scaled
from refssm.subjects import triton_interpreter  # noqa: F401  # before their kernels
from refssm.subjects.clones import module
from refssm.testing import implements

GATED = "b l g n, b l g n, b l (g h) p, b l (g h), b l (g h)"
KEYED = "b l g n, b l g n, b l (g h) p, b l (g h) n, b l (g h)"
PLAIN = "b g l n, b g l n, b (g h) l p, b (g h) l"
STATE, OUTPUTS = "b (g h) n p", "b l (g h) p"
DECLARED: dict[str, Any] = {
    "framework": "torch",
    "vjp": True,
    "dtypes": ("float32",),
    "adapters": (scaled(),),
}


def fla(dotted: str):
    """A module of theirs; it stays, because its functions import others when they are called."""
    return module("flash-linear-attention", f"fla.{dotted}", stays=True)


gated, delta, kda = (fla(f"ops.{name}.naive") for name in ("gated_delta_rule", "delta_rule", "kda"))


def per_head(x, heads: int, axis: int = 2):
    """Queries or keys of a group, for each head of its values."""
    return x.repeat_interleave(heads, axis)


def short_chunks(x):
    """The case in chunks of at most 64: they pad to whole ones, and loop over each row of them."""
    return {**x, "chunk": min(x["chunk"], 64)}


def whole_chunks(x):
    """The case up to its last whole chunk."""
    x = short_chunks(x)
    l = x["q"].shape[-2] // x["chunk"] * x["chunk"]
    rows = ("q", "k", "v", "log_g")  # log_g of each key
    cut = {name: x[name][..., :l, :] for name in rows if name in x}
    return {**x, **cut, "beta": x["beta"][..., :l]} if l else None


@implements("gated_delta_rule", layout=f"{GATED} -> {OUTPUTS}", **DECLARED)
def naive_recurrent_gated_delta_rule(q, k, v, log_g, beta):
    """naive_recurrent_gated_delta_rule."""
    q, k = (per_head(x, v.shape[2] // k.shape[2]) for x in (q, k))
    return gated.naive_recurrent_gated_delta_rule(q, k, v, beta, log_g)[0]


@implements(
    "gated_delta_rule_stateful", layout=f"{GATED}, {STATE} -> {OUTPUTS}, {STATE}", **DECLARED
)
def naive_recurrent_gated_delta_rule_stateful(q, k, v, log_g, beta, S0):
    """naive_recurrent_gated_delta_rule from a state."""
    q, k = (per_head(x, v.shape[2] // k.shape[2]) for x in (q, k))
    run = gated.naive_recurrent_gated_delta_rule
    return run(q, k, v, beta, log_g, initial_state=S0, output_final_state=True)


@implements(
    "gated_delta_rule_chunked", layout=f"{GATED} -> {OUTPUTS}", only=short_chunks, **DECLARED
)
def naive_chunk_gated_delta_rule(q, k, v, log_g, beta, *, chunk):
    """naive_chunk_gated_delta_rule."""
    q, k = (per_head(x, v.shape[2] // k.shape[2]) for x in (q, k))
    return gated.naive_chunk_gated_delta_rule(q, k, v, log_g, beta, chunk)[0]


@implements("delta_rule", layout=f"{PLAIN} -> b (g h) l p", **DECLARED)
def delta_rule_recurrence(q, k, v, beta):
    """delta_rule_recurrence."""
    q, k = (per_head(x, v.shape[1] // k.shape[1], 1) for x in (q, k))
    return delta.delta_rule_recurrence(q, k, v, beta)[0]


@implements("delta_rule_chunked", layout=f"{PLAIN} -> b (g h) l p", only=whole_chunks, **DECLARED)
def delta_rule_chunkwise(q, k, v, beta, *, chunk):
    """delta_rule_chunkwise."""
    q, k = (per_head(x, v.shape[1] // k.shape[1], 1) for x in (q, k))
    return delta.delta_rule_chunkwise(q, k, v, beta, chunk)[0]


@implements("kimi_delta_rule", layout=f"{KEYED} -> {OUTPUTS}", **DECLARED)
def naive_recurrent_kda(q, k, v, log_g, beta):
    """naive_recurrent_kda."""
    return kda.naive_recurrent_kda(q, k, v, log_g, beta)[0]


@implements(
    "kimi_delta_rule_stateful", layout=f"{KEYED}, {STATE} -> {OUTPUTS}, {STATE}", **DECLARED
)
def naive_recurrent_kda_stateful(q, k, v, log_g, beta, S0):
    """naive_recurrent_kda from a state."""
    return kda.naive_recurrent_kda(q, k, v, log_g, beta, None, S0, True)


@implements(
    "kimi_delta_rule_chunked", layout=f"{KEYED} -> {OUTPUTS}", only=whole_chunks, **DECLARED
)
def naive_chunk_kda(q, k, v, log_g, beta, *, chunk):
    """naive_chunk_kda."""
    return kda.naive_chunk_kda(q, k, v, log_g, beta, chunk_size=chunk)[0]
