# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""Mamba's references of Mamba-3 in PyTorch, which stand in the tests of its Triton kernels.

One takes step after step, the other all pairs of steps. Biases are zero, and there is no skip
connection and no gate. They need at least one step.
"""

import math
from typing import Any, Optional

import einops
import torch

from refssm.subjects.clones import definitions
from refssm.testing import implements

theirs = definitions(
    "mamba",
    "tests/ops/triton/test_mamba3_siso.py",
    "_segsum",
    "mamba3_siso_step_ref",
    "mamba3_siso_fwd_ref",
    torch=torch,
    math=math,
    F=torch.nn.functional,
    repeat=einops.repeat,
    Optional=Optional,
    Tuple=tuple,
)
INPUTS = "b l g 2n, b l g 2n, b l (g h) p, b (g h) l, b (g h) l, b (g h) l, b l (g h) n"
ONE = "b g 2n, b g 2n, b (g h) p, b (g h), b (g h), b (g h), b (g h) n"
STATE = "b (g h) n, b (g h) p 2n, b (g h) 2n, b (g h) p"
TRAINED: dict[str, Any] = {"framework": "torch", "dtypes": ("float32",), "vjp": True}


def some_steps(x):
    """The case if it has a step."""
    return x if x["q"].shape[-2] else None


def no_bias(k, heads: int):
    """Biases of queries and keys."""
    return [k.new_zeros((heads, k.shape[-1]))] * 2


def by_steps(q, k, v, log_g, dt, trap, angles, *state):
    """mamba3_siso_step_ref."""
    bias = no_bias(k, v.shape[2])
    run = theirs.mamba3_siso_step_ref
    return run(q, k, v, log_g, dt, trap, *bias, angles, Input_States=state or None)


def as_attention(q, k, v, log_g, dt, trap, angles, *state):
    """mamba3_siso_fwd_ref."""
    bias = no_bias(k, v.shape[2])
    run = theirs.mamba3_siso_fwd_ref
    return run(q, k, v, log_g, dt, trap, *bias, angles, Initial_States=state or None)


@implements("mamba3_siso", layout=f"{INPUTS} -> b l (g h) p", only=some_steps, **TRAINED)
def recurrent(q, k, v, log_g, dt, trap, angles):
    """mamba3_siso_step_ref, from rest."""
    return by_steps(q, k, v, log_g, dt, trap, angles)[0]


@implements(
    "mamba3_siso_stateful",
    layout=f"{INPUTS}, {STATE} -> b l (g h) p, {STATE}",
    only=some_steps,
    **TRAINED,
)
def recurrent_stateful(q, k, v, log_g, dt, trap, angles, phase0, S0, key0, value0):
    """mamba3_siso_step_ref, from a state."""
    y, last = by_steps(q, k, v, log_g, dt, trap, angles, phase0, S0, key0, value0)
    return y, *last


@implements("mamba3_siso_step", layout=f"{ONE}, {STATE} -> b (g h) p, {STATE}", **TRAINED)
def step(q, k, v, log_g, dt, trap, angles, phase, S, key, value):
    """mamba3_siso_step_ref, of one step; its last value is the argument itself, copied here."""
    timed = (q[:, None], k[:, None], v[:, None])
    gates = (log_g[..., None], dt[..., None], trap[..., None])
    y, last = by_steps(*timed, *gates, angles[:, None], phase, S, key, value)
    return y[:, 0], *last[:-1], last[-1].clone()


@implements("mamba3_siso", layout=f"{INPUTS} -> b l (g h) p", only=some_steps, **TRAINED)
def attention(q, k, v, log_g, dt, trap, angles):
    """mamba3_siso_fwd_ref, from rest."""
    return as_attention(q, k, v, log_g, dt, trap, angles)[0]


@implements(
    "mamba3_siso_stateful",
    layout=f"{INPUTS}, {STATE} -> b l (g h) p, {STATE}",
    only=some_steps,
    **TRAINED,
)
def attention_stateful(q, k, v, log_g, dt, trap, angles, phase0, S0, key0, value0):
    """mamba3_siso_fwd_ref, from a state."""
    y, last = as_attention(q, k, v, log_g, dt, trap, angles, phase0, S0, key0, value0)
    return y, *last
