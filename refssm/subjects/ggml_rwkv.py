"""ggml's loop of RWKV-6 on the processor, as `ggml` calls the others.

It takes the decays themselves, as many keys as values, and sequences one after another.
"""

from typing import Any

import numpy as np

from refssm.adapters import linear_gate
from refssm.subjects import square
from refssm.subjects.ggml import DECLARED, POINTER, agree, computed, operator
from refssm.testing import implements

wkv6 = operator("rwkv_wkv6", *6 * (POINTER,))
ROWS = ("r", "k", "log_w", "u")
GIVEN = "b l g n, b l g n, b l (g h) p, b l (g h) n, (g h) n"


def with_square_states(x):
    """The case with as many keys as values, if it has a step."""
    return square(x, ROWS) if x["v"].shape[-2] else None


GATED: dict[str, Any] = {
    "adapters": (linear_gate("log_w"),), "only": with_square_states, **DECLARED
}  # fmt: skip


def of_sequences(r, k, v, w, u, S0):
    """ggml_rwkv_wkv6; its states are keys by values."""
    agree("b l g n, b l g n, b l h n, b l h n, h n, b h n n", r, k, v, w, u, S0)
    (b, l, h, _), g = v.shape, k.shape[2]
    r, k = (np.repeat(x, h // g, 2) for x in (r, k))
    rows = [x.reshape(b * l, h, -1) for x in (k, v, r)]

    def graph_of(context, *tensors):
        return [(wkv6(context, *tensors), (v.size + S0.size,))]

    given = *rows, u, w.reshape(b * l, h, -1), S0.reshape(b, -1)
    found = computed(graph_of, *given, room=v.size + S0.size)[0]
    return found[: v.size].reshape(v.shape), found[v.size :].reshape(S0.shape)


@implements("rwkv6", layout=f"{GIVEN} -> b l (g h) p", **GATED)
def rwkv_wkv6(r, k, v, w, u):
    """ggml_rwkv_wkv6."""
    S0 = np.zeros((v.shape[0], v.shape[2], k.shape[-1], v.shape[-1]), v.dtype)
    return of_sequences(r, k, v, w, u, S0)[0]


@implements("rwkv6_stateful", layout=f"{GIVEN}, b (g h) n p -> b l (g h) p, b (g h) n p", **GATED)
def rwkv_wkv6_stateful(r, k, v, w, u, S0):
    """ggml_rwkv_wkv6 from a state."""
    return of_sequences(r, k, v, w, u, S0)
