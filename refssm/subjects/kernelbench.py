# pyright: reportMissingImports=false
"""KernelBench's two tasks of Mamba-2: the models that a generated kernel is compared with.

A, B and C are parameters of a model there; the plug-in gives them to its function. The first task
returns the outputs, the second the last state.
"""

from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from einops import rearrange
from torch import nn
from torch.nn import functional

from refssm.subjects.clones import definitions
from refssm.subjects.mamba_block import CHUNKED, CHUNKED_STATEFUL
from refssm.testing import implements


def whole_chunks(x):
    """The case up to its last whole chunk of at most 64, the length in the tasks."""
    l = x["x"].shape[-2]
    chunk = min(x["chunk"], 64, l)
    if not chunk:
        return None
    kept = l - l % chunk
    cut = {name: x[name][..., :kept, :] for name in ("x", "B", "C")}
    return {**x, **cut, "log_a": x["log_a"][..., :kept], "chunk": chunk}


DECLARED: dict[str, Any] = {
    "framework": "torch",
    "vjp": True,
    "dtypes": ("float32",),
    "only": whole_chunks,
}


def model(task: str):
    """The class of a task."""
    given = {"torch": torch, "nn": nn, "F": functional, "rearrange": rearrange}
    return definitions("KernelBench", f"KernelBench/level3/{task}.py", "Model", **given).Model


outputs, last_state = map(model, ("48_Mamba2ReturnY", "49_Mamba2ReturnFinalState"))


def run(of, x, log_a, B, C, chunk: int, S0=None):
    """The forward function of a task, each head with the B and C of its group."""
    h = x.shape[3]
    B, C = (v.repeat_interleave(h, 2) for v in (B, C))
    segsum = partial(of.segsum, None)
    given = SimpleNamespace(A=log_a.flatten(2, 3), B=B, C=C, block_len=chunk, segsum=segsum)
    return of.forward(given, x.flatten(2, 3), S0 if S0 is None else S0.flatten(1, 2)[:, None])


@implements("ssd_chunked", layout=f"{CHUNKED} -> b l g h p", **DECLARED)
def mamba2_return_y(x, log_a, B, C, *, chunk):
    """Model of 48_Mamba2ReturnY."""
    return run(outputs, x, log_a, B, C, chunk).reshape(x.shape)


@implements("ssd_chunked_stateful", layout=CHUNKED_STATEFUL, **DECLARED)
def mamba2_from_state(x, log_a, B, C, S0, *, chunk):
    """Model of 48_Mamba2ReturnY, and of 49_Mamba2ReturnFinalState, from a state."""
    y, S = (run(of, x, log_a, B, C, chunk, S0) for of in (outputs, last_state))
    return y.reshape(x.shape), S.reshape(S0.shape)
