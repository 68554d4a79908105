# pyright: reportMissingImports=false
"""FlashInfer's references of gated delta rules in PyTorch, with which its tests compare kernels.

They have the gate itself (`alpha`), or its parameters before a softplus (`a`); states are keys by
values, and there are as many keys as values.
"""

from typing import Any

import torch

from refssm.adapters import linear_gate, neg_softplus, scaled, sigmoid
from refssm.subjects import square
from refssm.subjects.clones import alone
from refssm.testing import implements

reference = alone("flashinfer", "tests/gdn/reference_delta_rule.py")

H = "(g h)"
GATED = f"b l g n, b l g n, b l {H} p, b l {H}, b l {H}"
DECLARED: dict[str, Any] = {"framework": "torch", "dtypes": ("float32",)}
BY_GATE = (scaled(), linear_gate())
BY_LOGIT = (scaled(), neg_softplus("log_g"), sigmoid())


def with_steps(x):
    """The case with square states and chunks of at most 64, if it has a step."""
    chunk = {"chunk": min(x["chunk"], 64)} if "chunk" in x else {}
    return {**square(x), **chunk} if x["v"].shape[-2] else None


def one_value_of_each(x):
    """The same with one head of values for each of keys: it has states for heads of queries."""
    x = with_steps(x)
    heads = {name: x[name][:, :, :1] for name in ("v", "log_g", "beta")} if x else {}
    return {**x, **heads} if x else None


def packed(x):
    """Members of a batch one after another."""
    return x.flatten(0, 1)


@implements(
    "gated_delta_rule",
    layout=f"{GATED} -> b l {H} p",
    adapters=BY_GATE,
    only=one_value_of_each,
    **DECLARED,
)
def delta_rule(q, k, v, alpha, beta):
    """delta_rule."""
    lengths, gates = [q.shape[1]] * len(q), {"alpha": packed(alpha), "beta": packed(beta)}
    given = *map(packed, (q, k, v)), lengths
    y, _ = reference.delta_rule(*given, **gates, scale_factor=q.shape[-1] ** -0.5)
    return y.reshape(v.shape)


@implements(
    "gated_delta_rule_chunked_stateful",
    layout=f"{GATED}, b {H} n p -> b l {H} p, b {H} n p",
    adapters=BY_GATE,
    only=with_steps,
    **DECLARED,
)
def blockwise_delta_rule(q, k, v, alpha, beta, S0, *, chunk):
    """blockwise_delta_rule from a state."""
    lengths, gates = [q.shape[1]] * len(q), (packed(alpha), packed(beta))
    given = *map(packed, (q, k, v)), lengths, *gates
    more = {"block_size": chunk, "scale_factor": q.shape[-1] ** -0.5, "initial_state": S0}
    y, S = reference.blockwise_delta_rule(*given, **more)
    return y.reshape(v.shape), S


@implements(
    "gated_delta_step",
    layout=f"b g n, b g n, b {H} p, b {H}, b {H}, b {H} n p -> b {H} p, b {H} n p",
    adapters=BY_LOGIT,
    **DECLARED,
)
def decode_delta_rule(q, k, v, a, b, S):
    """decode_delta_rule with A_log and dt_bias of 0, without a norm."""
    zeros = a.new_zeros(a.shape[-1])
    more = {"scale_factor": q.shape[-1] ** -0.5, "use_l2_norm": False}
    return reference.decode_delta_rule(q, k, v, S, zeros, a, zeros, b, **more)


def verified(q, k, v, a, b, S0, **more):
    """verify_delta_rule with A_log and dt_bias of 0, without a norm."""
    zeros = a.new_zeros(a.shape[-1])
    more |= {"scale_factor": q.shape[-1] ** -0.5, "use_l2_norm": False}
    return reference.verify_delta_rule(q, k, v, S0, zeros, a, zeros, b, **more)


@implements(
    "gated_delta_rule_stateful",
    layout=f"{GATED}, b {H} n p -> b l {H} p, b {H} n p",
    adapters=BY_LOGIT,
    **DECLARED,
)
def verify_delta_rule(q, k, v, a, b, S0):
    """verify_delta_rule with A_log and dt_bias of 0, without a norm."""
    y, S, _ = verified(q, k, v, a, b, S0)
    return y, S


@implements(
    "gated_delta_rule_states",
    layout=f"{GATED}, b {H} n p, m -> b l {H} p, b {H} m n p",
    adapters=BY_LOGIT,
    **DECLARED,
)
def verify_delta_rule_states(q, k, v, a, b, S0, places):
    """verify_delta_rule with the states that it keeps after each step."""
    y, _, states = verified(q, k, v, a, b, S0, cache_intermediate_states=True)
    states = torch.cat([S0[:, None], states], 1)
    return y, states[:, torch.as_tensor(places)].transpose(1, 2)
