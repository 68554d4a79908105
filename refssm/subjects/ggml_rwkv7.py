"""ggml's loop of RWKV-7 on the processor, as `ggml` calls the others.

It takes the decays themselves, states of values by keys, sequences one after another, and as many
keys as values: 64, as in RWKV-7. With vectors of the processor it takes 16 to 64 keys at once and
reads and writes beyond a smaller head.
"""

from typing import Any

import numpy as np

from refssm.adapters import linear_gate
from refssm.subjects.ggml import DECLARED, POINTER, agree, computed, operator
from refssm.testing import implements

wkv7 = operator("rwkv_wkv7", *7 * (POINTER,))
GIVEN = "b l g n, b l g n, b l (g h) p" + 3 * ", b l (g h) n"
KEYS = 64


def with_whole_heads(x):
    """A case of few heads with 64 keys, the further ones zero, and 64 values, if it has a step."""
    if not x["v"].shape[-2]:
        return None
    x = {name: x[name][:1, :1, :2, :20] if name != "S0" else x[name][:1, :1, :2] for name in x}
    places = np.arange(KEYS) % max(x["v"].shape[-1], 1)
    cut = {name: _of_keys(x[name], 1.0 if name == "log_g" else 0.0)
           for name in ("q", "k", "log_g", "a", "b")}  # fmt: skip
    cut["v"] = x["v"][..., places]
    if "S0" in x:
        cut["S0"] = np.swapaxes(_of_keys(np.swapaxes(x["S0"][..., places], -1, -2), 0.0), -1, -2)
    return {**x, **cut}


def _of_keys(a, rest: float):
    """An array whose last axis has 64 keys."""
    more = [(0, 0)] * (a.ndim - 1) + [(0, max(0, KEYS - a.shape[-1]))]
    return np.pad(a[..., :KEYS], more, constant_values=rest)


def of_sequences(q, k, v, g, a, b, S0):
    """ggml_rwkv_wkv7; its states are values by keys."""
    agree("b l g n, b l g n, b l h n, b l h n, b l h n, b l h n, b h n n", q, k, v, g, a, b, S0)
    (m, l, h, _), groups = v.shape, k.shape[2]
    q, k = (np.repeat(x, h // groups, 2) for x in (q, k))
    rows = [x.reshape(m * l, h, -1) for x in (q, g, k, v, a, b)]

    def graph_of(context, *tensors):
        return [(wkv7(context, *tensors), (v.size + S0.size,))]

    found = computed(graph_of, *rows, S0.reshape(m, -1), room=v.size + S0.size)[0]
    return found[: v.size].reshape(v.shape), found[v.size :].reshape(S0.shape)


@implements(
    "delta_dplr",
    layout=f"{GIVEN} -> b l (g h) p",
    only=with_whole_heads,
    adapters=(linear_gate(),),
    **DECLARED,
)
def rwkv_wkv7(q, k, v, g, a, b):
    """ggml_rwkv_wkv7."""
    S0 = np.zeros((v.shape[0], v.shape[2], v.shape[-1], k.shape[-1]), v.dtype)
    return of_sequences(q, k, v, g, a, b, S0)[0]


FROM_STATE: dict[str, Any] = {
    "layout": f"{GIVEN}, b (g h) p n -> b l (g h) p, b (g h) p n",
    "only": with_whole_heads,
    "adapters": (linear_gate(),),
    **DECLARED,
}


@implements("delta_dplr_stateful", **FROM_STATE)
def rwkv_wkv7_stateful(q, k, v, g, a, b, S0):
    """ggml_rwkv_wkv7 from a state."""
    return of_sequences(q, k, v, g, a, b, S0)
