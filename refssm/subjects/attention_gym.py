# pyright: reportMissingImports=false
"""attention-gym's eager references of the gated and the Kimi delta rule, which its tests compare.

Its public functions of the gated delta rule have no other implementation yet. Queries are divided
by √n inside; a gate of each key is a power of 2. States are keys by values.
"""

from typing import Any

from refssm.adapters import base_2, scaled
from refssm.subjects.clones import alone, module
from refssm.testing import implements

gdn = module("attention-gym", "attn_gym.linear.gdn.api", stays=True)
kda = alone("attention-gym", "attn_gym/linear/kda/naive.py")

H = "(g h)"
BY_HEAD = f"b g l n, b g l n, b {H} l p, b {H} l, b {H} l"
BY_KEY = f"b l g n, b l g n, b l {H} p, b l {H} n, b l {H}"
FIRST, LAST, STATE = f"b {H} l p", f"b l {H} p", f"b {H} n p"
DECLARED: dict[str, Any] = {"framework": "torch", "vjp": True, "dtypes": ("float32",)}
KEYED: dict[str, Any] = {**DECLARED, "adapters": (scaled(), base_2())}


LONGEST = 130  # two chunks and some steps: loops of eager PyTorch are slow


def with_steps(x):
    """The case in chunks of at most 64, if it has a step: they raise ValueError without one."""
    chunk = {"chunk": min(x["chunk"], 64)} if "chunk" in x else {}
    of_rows = ["q", "k", "v"] + ["log_g"] * (x["log_g"].ndim == x["v"].ndim)
    rows = {name: x[name][..., :LONGEST, :] for name in of_rows}
    steps = {name: x[name][..., :LONGEST] for name in ("log_g", "beta") if name not in rows}
    return {**x, **rows, **steps, **chunk} if x["v"].shape[-2] else None


GATED: dict[str, Any] = {**DECLARED, "adapters": (scaled(),), "only": with_steps}


def of_heads(q, k, v, axis: int):
    """Queries and keys of a group, for each head of its values."""
    return (x.repeat_interleave(v.shape[axis] // x.shape[axis], axis) for x in (q, k))


@implements("gated_delta_rule_stateful", layout=f"{BY_HEAD}, {STATE} -> {FIRST}, {STATE}", **GATED)
def recurrent_gdn(q, k, v, log_g, beta, S0):
    """recurrent_gdn from a state."""
    q, k = of_heads(q, k, v, 1)
    return gdn.recurrent_gdn(q, k, v, log_g, beta, initial_state=S0, return_final_state=True)


@implements(
    "gated_delta_rule_chunked_stateful",
    layout=f"{BY_HEAD}, {STATE} -> {FIRST}, {STATE}",
    **GATED,
)
def chunk_gdn(q, k, v, log_g, beta, S0, *, chunk):
    """chunk_gdn from a state."""
    q, k = of_heads(q, k, v, 1)
    given = {"initial_state": S0, "return_final_state": True, "chunk_size": chunk}
    return gdn.chunk_gdn(q, k, v, log_g, beta, **given)


@implements(
    "kimi_delta_rule_stateful",
    layout=f"{BY_KEY}, {STATE} -> {LAST}, {STATE}",
    only=with_steps,
    **KEYED,
)
def naive_recurrent_kda(q, k, v, g, beta, S0):
    """naive_recurrent_kda from a state."""
    q, k = of_heads(q, k, v, 2)
    return kda.naive_recurrent_kda(q, k, v, g, beta, None, S0, True)


def short_chunks(x):
    """The case with a step in chunks of at most 16: it holds the decays of all pairs of steps."""
    x = with_steps(x)
    return {**x, "chunk": min(x["chunk"], 16)} if x else None


@implements(
    "kimi_delta_rule_chunked_stateful",
    layout=f"{BY_KEY}, {STATE} -> {LAST}, {STATE}",
    only=short_chunks,
    **KEYED,
)
def naive_chunk_kda(q, k, v, g, beta, S0, *, chunk):
    """naive_chunk_kda from a state."""
    q, k = of_heads(q, k, v, 2)
    return kda.naive_chunk_kda(q, k, v, g, beta, None, S0, True, chunk)
