# pyright: reportMissingImports=false
"""causal-conv1d's references in PyTorch, with which its own tests compare its CUDA kernels.

Taps are in reverse order. Importing them needs the compiled extension, though they do not call it:
an empty module stands in its place.
"""

import sys
from types import ModuleType
from typing import Any

import torch

from refssm.subjects.clones import module
from refssm.testing import implements

EXTENSION = "causal_conv1d_cuda"


def without_extension():
    """Their module, imported beside an empty extension if there is none."""
    lent = EXTENSION not in sys.modules
    if lent:
        sys.modules[EXTENSION] = ModuleType(EXTENSION)
    try:
        return module("causal-conv1d-references", "causal_conv1d.causal_conv1d_interface")
    finally:
        if lent:
            del sys.modules[EXTENSION]


theirs = without_extension()
REAL: dict[str, Any] = {"framework": "torch", "dtypes": ("float32", "float64")}
TRAINED: dict[str, Any] = {"vjp": True, **REAL}
CALL, PLAIN, STATE = "b d l, d t, d", "b d l, d t", "b d t"
AROUND = 3  # where the ring begins


def some_steps(x):
    """The case if it has a step: the last 0 outputs are all outputs there."""
    return x if x["u"].shape[-1] else None


def within_the_ring(x):
    """The case with at most as many steps as the ring has places."""
    t = x["k"].shape[-1]
    return some_steps({**x, "u": x["u"][..., :t]})


@implements("short_convolution", layout=f"{PLAIN} -> b d l", **TRAINED)
def plain(u, k):
    """causal_conv1d_ref without bias and activation."""
    return theirs.causal_conv1d_ref(u, k.flip(-1))


@implements("causal_conv1d", layout=f"{CALL} -> b d l", **TRAINED)
def activated(u, k, bias):
    """causal_conv1d_ref."""
    return theirs.causal_conv1d_ref(u, k.flip(-1), bias, activation="silu")


@implements("causal_conv1d_stateful", layout=f"{CALL}, {STATE} -> b d l, {STATE}", **TRAINED)
def activated_stateful(u, k, bias, s0):
    """causal_conv1d_ref with initial_states; its states have t - 1 inputs, the first is added."""
    how = {"return_final_states": True, "activation": "silu"}
    y, s = theirs.causal_conv1d_ref(u, k.flip(-1), bias, s0[..., 1:], **how)
    return y, torch.cat([torch.cat([s0, u], -1)[..., u.shape[-1], None], s], -1)


@implements("short_convolution_stateful", layout=f"{PLAIN}, {STATE} -> b d l, {STATE}", **TRAINED)
def plain_stateful(u, k, s0):
    """causal_conv1d_ref with initial_states, without bias and activation."""
    y, s = theirs.causal_conv1d_ref(u, k.flip(-1), None, s0[..., 1:], return_final_states=True)
    return y, torch.cat([torch.cat([s0, u], -1)[..., u.shape[-1], None], s], -1)


@implements(
    "causal_conv1d_stateful", layout=f"{CALL}, {STATE} -> b d l, {STATE}", only=some_steps, **REAL
)
def update_stateful(u, k, bias, s0):
    """causal_conv1d_update_ref of several inputs, which overwrites the stored ones."""
    s = s0.clone()
    return theirs.causal_conv1d_update_ref(u, s, k.flip(-1), bias, "silu"), s


@implements("causal_conv1d_step", layout=f"b d, d t, d, {STATE} -> b d, {STATE}", **REAL)
def update_step(u, k, bias, s):
    """causal_conv1d_update_ref of one input."""
    s = s.clone()
    return theirs.causal_conv1d_update_ref(u, s, k.flip(-1), bias, "silu"), s


@implements(
    "causal_conv1d_stateful",
    layout=f"{CALL}, {STATE} -> b d l, {STATE}",
    only=within_the_ring,
    **REAL,
)
def update_ring(u, k, bias, s0):
    """causal_conv1d_update_ref with cache_seqlens: the state is a ring of the last inputs."""
    ring = s0.roll(AROUND, -1)
    begins = torch.full((len(u),), AROUND, dtype=torch.int32)
    how = {"activation": "silu", "cache_seqlens": begins}
    y = theirs.causal_conv1d_update_ref(u, ring, k.flip(-1), bias, **how)
    return y, ring.roll(-AROUND - u.shape[-1], -1)
