# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""Mamba's references of Mamba-2 in PyTorch, which stand beside its Triton kernels.

The chunked scan and its three parts, the scan step by step, one step with heads, and the norm. They
call two functions of CUDA extensions, in whose place stand the reference of the one, and no
convolution for the other. Lengths are cut to whole chunks: the chunked scan asserts them.
"""

from typing import Any

import torch

from refssm.adapters import dt_and_A
from refssm.subjects import triton_interpreter  # noqa: F401  # before their kernels
from refssm.subjects.clones import module
from refssm.testing import implements


def theirs(dotted: str):
    """A module of theirs; it stays, because a function imports another when it is called."""
    return module("mamba", f"mamba_ssm.ops.{dotted}", stays=True)


selective, combined = theirs("selective_scan_interface"), theirs("triton.ssd_combined")
states_of, passing = theirs("triton.ssd_chunk_state"), theirs("triton.ssd_state_passing")
scanning, update = theirs("triton.ssd_chunk_scan"), theirs("triton.selective_state_update")
norms = theirs("triton.layernorm_gated")
selective.selective_scan_fn = selective.selective_scan_ref
combined.causal_conv1d_fn = lambda x, weight, bias, activation: x

CHUNK, LONGEST = 16, 256
F4: dict[str, Any] = {"framework": "torch", "dtypes": ("float32",)}
TRAINED: dict[str, Any] = {"vjp": True, **F4}
REAL: dict[str, Any] = {"framework": "torch", "dtypes": ("float32", "float64")}
CALL = "b l (g h) p, b l (g h), (g h), b l g n, b l g n, (g h), b l (g h) p, (g h)"
SCAN, HEADS = f"{CALL} -> b l (g h) p", "b l (g h) p, b l (g h), (g h), b l g n, b l g n"
DECAYS, STATE = "b l (g h) p, b l (g h), b l g n, b l g n", "b (g h) p n"
STEP = "b (g h) p, b (g h), (g h), b g n, b g n, (g h), b (g h) p, (g h)"
NORM = "b l n, b l n, n -> b l n"
IN_TIME = {"x": -2, "B": -2, "C": -2, "z": -2, "dt": -1, "log_a": -1}


def first_steps(x, l: int):
    """The case up to step l, or None if that is none."""
    cut = {
        name: x[name][(..., slice(l), *(slice(None),) * (-1 - axis))]
        for name, axis in IN_TIME.items()
        if name in x
    }
    return {**x, **cut} if l else None


def whole_chunks(x):
    """The case up to its last whole chunk, of at most 256 steps as in Mamba2."""
    return first_steps(x, x["x"].shape[-2] // x["chunk"] * x["chunk"]) if long_enough(x) else None


def long_enough(x) -> bool:
    """Whether a chunk is not too long for memory, and has its steps."""
    return x["chunk"] <= min(LONGEST, x["x"].shape[-2])


def without_limits(x):
    """The case with limits that no step reaches."""
    return {**x, "dt_min": 0.0, "dt_max": 1024.0}


def in_chunks(x):
    """The case without limits, in chunks of 16 steps or in one that is shorter."""
    l = x["x"].shape[-2]
    return first_steps(without_limits(x), l - l % min(CHUNK, l or 1))


def some_steps(x):
    """The case if it has a step."""
    return x if x["x"].shape[-2] else None


@implements("mamba2_scan", layout=SCAN, only=in_chunks, **TRAINED)
def chunk_scan(x, dt, A, B, C, D, z, dt_bias, *, dt_min, dt_max):
    """ssd_chunk_scan_combined_ref, which has no limits."""
    del dt_min, dt_max
    how = {"D": D, "z": z, "dt_bias": dt_bias, "dt_softplus": True}
    run = combined.ssd_chunk_scan_combined_ref
    return run(x, dt, A, B, C, min(CHUNK, x.shape[1]), **how)


@implements(
    "ssd_chunked",
    layout=f"{HEADS} -> b l (g h) p",
    only=whole_chunks,
    adapters=(dt_and_A(),),
    **TRAINED,
)
def chunk_scan_alone(x, dt, A, B, C, *, chunk):
    """ssd_chunk_scan_combined_ref without bias, softplus, skip connection and gate."""
    return combined.ssd_chunk_scan_combined_ref(x, dt, A, B, C, chunk)


@implements(
    "ssd_chunked_stateful",
    layout=f"{DECAYS}, {STATE} -> b l (g h) p, {STATE}",
    only=whole_chunks,
    **TRAINED,
)
def chunk_parts(x, log_a, B, C, S0, *, chunk):
    """chunk_state_ref, state_passing_ref from a state, and chunk_scan_ref, with steps of 1."""
    sums = log_a.unflatten(1, (-1, chunk)).permute(0, 3, 1, 2).cumsum(-1)
    steps = torch.ones_like(sums)
    states = states_of.chunk_state_ref(B, x, steps, sums)
    before, last = passing.state_passing_ref(states.flatten(-2), sums[..., -1], S0.flatten(-2))
    before = before.unflatten(-1, S0.shape[-2:])
    y = scanning.chunk_scan_ref(B, C, x, steps, sums, before)
    return y, last.unflatten(-1, S0.shape[-2:])


@implements("mamba2_scan", layout=SCAN, only=some_steps, **TRAINED)
def selective_scan(x, dt, A, B, C, D, z, dt_bias, *, dt_min, dt_max):
    """ssd_selective_scan by selective_scan_ref."""
    how = {"D": D, "z": z, "dt_bias": dt_bias, "dt_softplus": True}
    return combined.ssd_selective_scan(x, dt, A, B, C, dt_limit=(dt_min, dt_max), **how)


@implements("mamba2_scan", layout=SCAN, only=some_steps, **TRAINED)
def split_conv1d_scan(x, dt, A, B, C, D, z, dt_bias, *, dt_min, dt_max):
    """mamba_split_conv1d_scan_ref without convolution, norm and projection."""
    projected = torch.cat([z.flatten(2), x.flatten(2), B.flatten(2), C.flatten(2), dt], -1)
    how = {"dt_limit": (dt_min, dt_max), "headdim": x.shape[-1], "ngroups": B.shape[2]}
    run = combined.mamba_split_conv1d_scan_ref
    return run(projected, None, None, dt_bias, A, D, CHUNK, **how).reshape(x.shape)


@implements(
    "mamba2_step",
    layout=f"{STEP}, {STATE} -> b (g h) p, {STATE}",
    only=without_limits,
    **REAL,
)
def step(x, dt, A, B, C, D, z, dt_bias, S, *, dt_min, dt_max):
    """selective_state_update_ref with heads, which overwrites the old state with the new one."""
    del dt_min, dt_max
    S, (p, n) = S.clone(), S.shape[-2:]
    steps, bias, skip = (v[..., None].expand(*v.shape, p) for v in (dt, dt_bias, D))
    rates = A[:, None, None].expand(-1, p, n)
    run = update.selective_state_update_ref
    return run(S, x, steps, rates, B, C, skip, z, bias, dt_softplus=True), S


@implements("gated_rms_norm", layout=NORM, **TRAINED)
def gated_norm(x, z, w, *, eps, group):
    """rms_norm_ref with norm_before_gate=False."""
    return norms.rms_norm_ref(x, w, None, z, eps, group, norm_before_gate=False)


@implements("rms_norm_gated", layout=NORM, **TRAINED)
def norm_before_gate(x, z, w, *, eps):
    """rms_norm_ref."""
    return norms.rms_norm_ref(x, w, None, z, eps)
