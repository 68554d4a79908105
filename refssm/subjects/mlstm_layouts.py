"""What plug-ins of mLSTM share: layouts, and cases of whole chunks.

Public code takes forget gates before their logistic function and queries (or keys) unscaled. Its
eps is 0 here, for which the result does not depend on m.
"""

from typing import Any

from refssm.adapters import log_sigmoid, scaled

OF_STEPS = "b g l n, b g l n, b (g h) l p, b (g h) l, b (g h) l"
STATE = "b (g h) n p, b (g h) n, b (g h)"
SCAN, FROM = f"{OF_STEPS} -> b (g h) l p", f"{OF_STEPS}, {STATE} -> b (g h) l p, {STATE}"
STEPPED = f"b g n, b g n, b (g h) p, b (g h), b (g h), {STATE} -> b (g h) p, {STATE}"
OF_QUERIES, OF_KEYS = ((log_sigmoid("log_f"), scaled(name)) for name in "qk")
TORCH: dict[str, Any] = {"framework": "torch", "vjp": True, "dtypes": ("float32",)}
DECLARED: dict[str, Any] = TORCH | {"adapters": OF_QUERIES}
CHUNK = 16


def per_head(x, v):
    """Queries or keys of a group, for each head of its values."""
    return x.repeat_interleave(v.shape[1] // x.shape[1], 1)


def some(x):
    """The case if it has a step."""
    return x if x["q"].shape[-2] else None


def whole_chunks(x):
    """The case up to its last whole chunk of 16 steps."""
    l = x["q"].shape[-2] // CHUNK * CHUNK
    if not l:
        return None
    cut = {name: x[name][..., :l, :] for name in ("q", "k", "v")}
    return {**x, **cut, "i": x["i"][..., :l], "log_f": x["log_f"][..., :l]}


def square(x):
    """The case with as many values as keys."""
    n = min(x["k"].shape[-1], x["v"].shape[-1])
    cut = {name: x[name][..., :n] for name in ("q", "k", "v", "s", "s0") if name in x}
    return {**x, **cut, **{name: x[name][..., :n, :n] for name in ("S", "S0") if name in x}}


def given(q, k, v, i, f):
    """Arguments with queries and keys for each head."""
    return per_head(q, v), per_head(k, v), v, i, f


def started(S, s, m):
    """A state with an axis of length 1 in m."""
    return S, s, m[..., None]


def last(made):
    """Outputs and the last state, without that axis."""
    y, (S, s, m) = made
    return y, S, s, m.squeeze(-1)
