# pyright: reportMissingImports=false
"""GPU MODE's three tasks of Gated DeltaNet: the programs that a submission is compared with.

Time is one axis there, cut in chunks of 64; the plug-in sets that constant to the chunk of a case.
The tasks have no state before the first chunk, and none after the last one.
"""

from typing import Any

import numpy as np
import torch

from refssm.adapters import scaled
from refssm.subjects.clones import definitions
from refssm.testing import implements

DECLARED: dict[str, Any] = {"framework": "torch", "dtypes": ("float32",)}
ROWS, HEADS = "b c l h n", "b c l h"


def task(name: str):
    """The reference of a task, and the variables of its file."""
    file = f"problems/helion/gated_deltanet_{name}_py/reference.py"
    given = {"torch": torch, "input_t": Any, "output_t": Any}
    reference = definitions("reference-kernels", file, "ref_kernel", **given).ref_kernel
    return reference, reference.__globals__


(writes, _), (states, of_states), (outputs, of_outputs) = map(
    task, ("recompute_w_u", "chunk_fwd_h", "chunk_fwd_o")
)


def of_time(*arrays):
    """Arrays with one axis of time in place of chunks and steps."""
    return tuple(x.flatten(1, 2) for x in arrays)


def with_steps(x):
    """The case, if it has chunks with a step."""
    return x if x["k"].shape[-2] and x["k"].shape[-3] else None


@implements(
    "chunk_writes",
    layout=f"{ROWS}, b c l h p, {HEADS}, {HEADS}, b c h l l -> {ROWS}, b c l h p",
    only=with_steps,
    **DECLARED,
)
def recompute_w_u(k, v, g, beta, X):
    """ref_kernel of gated_deltanet_recompute_w_u."""
    w, u = writes(of_time(k, v, beta, X.transpose(2, 3), g))
    return w.reshape(k.shape), u.reshape(v.shape)


def from_rest(x):
    """The case from rest, if it has chunks with a step."""
    return with_steps({**x, "S": np.zeros_like(x["S"])})


@implements(
    "chunk_states",
    layout="b m l h n, b m l h n, b m l h p, b m l h, b h n p -> b m h n p, b m l h p, b h n p",
    only=from_rest,
    **DECLARED,
)
def chunk_fwd_h(k, w, u, g, _S):
    """ref_kernel of gated_deltanet_chunk_fwd_h; one chunk of zeros more, before which is `last`."""
    of_states["CHUNK_SIZE"] = k.shape[2]
    more = [torch.cat([x, torch.zeros_like(x[:, :1])], 1) for x in (k, w, u, g)]
    h, new = states(of_time(*more))
    return h[:, :-1], new.reshape(more[2].shape)[:, :-1], h[:, -1]


@implements(
    "chunk_outputs",
    layout=f"{ROWS}, {ROWS}, b c l h p, {HEADS}, b c h n p -> b c l h p",
    adapters=(scaled(),),
    only=with_steps,
    **DECLARED,
)
def chunk_fwd_o(q, k, v, g, S):
    """ref_kernel of gated_deltanet_chunk_fwd_o."""
    of_outputs["CHUNK_SIZE"] = q.shape[2]
    q_, k_, v_, g_ = of_time(q, k, v, g)
    return outputs((q_, k_, v_, S, g_)).reshape(v.shape)
