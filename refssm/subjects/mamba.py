# pyright: reportMissingImports=false
"""Mamba at its newest commit: its references, and its Triton kernels in the interpreter.

The references are the scan, the step, and the paper's listing in chunks; the kernels are the step
and the chunked scan of Mamba-2.
"""

import torch

from refssm.adapters import dt_and_A
from refssm.subjects.clones import module
from refssm.subjects.mamba_block import (
    BLOCK_SCAN,
    BLOCK_STEPPED,
    CHUNKED_STATEFUL,
    F4,
    REAL,
    SCAN,
    STEPPED,
    TIME_FIRST,
)
from refssm.subjects.triton_interpreter import SELECTIVE, SSD, few
from refssm.testing import implements

scan = module("mamba", "mamba_ssm.ops.selective_scan_interface").selective_scan_ref
update = module("mamba", "mamba_ssm.ops.triton.selective_state_update")
listing = module("mamba", "mamba_ssm.modules.ssd_minimal").ssd_minimal_discrete
kernel = module("mamba", "mamba_ssm.ops.triton.ssd_combined").mamba_chunk_scan_combined
H = "(g h)"  # heads, group by group


def steps(x):
    """The case if it has a step."""
    return x if x["u"].shape[-1] else None


def whole_chunks(x):
    """The case with its length cut to a multiple of the chunk, at most 256 as in Mamba2."""
    l, chunk = x["x"].shape[-2], x["chunk"]
    kept = l - l % chunk
    if not kept or chunk > 256:
        return None
    cut = {k: x[k][..., :kept, :] for k in ("x", "B", "C")}
    return {**x, **cut, "log_a": x["log_a"][..., :kept]}


@implements("selective_scan", layout=SCAN, only=steps, vjp=True, **F4)
def selective_scan_ref(u, dt, A, B, C):
    """selective_scan_ref."""
    return scan(u, dt, A, B, C)


@implements("mamba_scan", layout=BLOCK_SCAN, only=steps, vjp=True, **F4)
def mamba_scan_ref(u, dt, A, B, C, D, z, dt_bias):
    """selective_scan_ref with bias, softplus, skip connection and gate."""
    return scan(u, dt, A, B, C, D, z, dt_bias, delta_softplus=True)


@implements("selective_step", layout=STEPPED, **REAL)
def selective_step_ref(u, dt, A, B, C, x):
    """selective_state_update_ref, which overwrites the old state with the new one."""
    x = x.clone()
    return update.selective_state_update_ref(x, u, dt, A, B, C), x


@implements("mamba_step", layout=BLOCK_STEPPED, **REAL)
def mamba_step_ref(u, dt, A, B, C, D, z, dt_bias, x):
    """selective_state_update_ref with bias, softplus, skip connection and gate."""
    x = x.clone()
    return update.selective_state_update_ref(x, u, dt, A, B, C, D, z, dt_bias, dt_softplus=True), x


@implements(
    "ssd_chunked_stateful",
    layout=CHUNKED_STATEFUL,
    only=whole_chunks,
    vjp=True,
    **REAL,
)
def ssd_chunked_stateful_ref(x, log_a, B, C, S0, *, chunk):
    """ssd_minimal_discrete."""
    h = x.shape[3]
    B, C = (v.repeat_interleave(h, 2) for v in (B, C))
    y, S = listing(x.flatten(2, 3), log_a.flatten(2, 3), B, C, chunk, S0.flatten(1, 2)[:, None])
    return y.reshape(x.shape), S.reshape(S0.shape)


def real_inputs(x):
    """The case with real inputs, if it has a step: the function has no complex ones."""
    u = x["u"].copy()
    u.imag = 0
    return {**x, "u": u} if u.shape[-1] else None


@implements(
    "selective_scan",
    framework="torch",
    dtypes=("complex64",),
    kinds="complex",
    only=real_inputs,
    layout=SCAN,
)
def selective_scan_complex(u, dt, A, B, C):
    """selective_scan_ref with complex A, whose output is twice the real part.

    Half the output for C is the real part, half that for -i C the imaginary part.
    """
    B, *Cs = (torch.view_as_real(v).flatten(-2) for v in (B, C, -1j * C))
    return torch.complex(*(scan(u.real, dt, A, B, v) / 2 for v in Cs))


def one_state(x):
    """The case with one state, because Mamba-2 has one rate for all, and at most 70 steps."""
    return few(SELECTIVE, b=2, d=3, l=70, n=1)(x)


@implements(
    "mamba_scan",
    layout=TIME_FIRST,
    only=one_state,
    vjp=True,
    **F4,
)
def mamba_scan_triton(u, dt, A, B, C, D, z, dt_bias):
    """mamba_chunk_scan_combined with one channel in a head, 32 steps in a chunk."""
    B, C, more = B[:, :, None], C[:, :, None], (D, z[..., None], dt_bias)
    return kernel(u[..., None], dt, A[:, 0], B, C, 32, *more, dt_softplus=True)[..., 0]


@implements("mamba_step", layout=BLOCK_STEPPED, **F4)
def mamba_step_triton(u, dt, A, B, C, D, z, dt_bias, x):
    """selective_state_update, which overwrites the old state with the new one."""
    x = x.clone()
    return update.selective_state_update(x, u, dt, A, B, C, D, z, dt_bias, dt_softplus=True), x


@implements("selective_step", layout=STEPPED, **F4)
def selective_step_triton(u, dt, A, B, C, x):
    """selective_state_update with D and dt_bias of 0, without which it raises TypeError."""
    x, zero = x.clone(), torch.zeros_like(A[:, 0])
    return update.selective_state_update(x, u, dt, A, B, C, zero, None, zero), x


def moderate(x):
    """The case with at most 70 steps, 2 groups of 2 heads, and chunks of 8 to 64."""
    return {**few(SSD, b=2, g=2, h=2, l=70)(x), "chunk": min(max(x["chunk"], 8), 64)}


@implements(
    "ssd_chunked_stateful",
    layout=f"b l {H} p, b l {H}, {H}, b l g n, b l g n, b {H} p n -> b l {H} p, b {H} p n",
    adapters=dt_and_A(),
    only=moderate,
    vjp=True,
    **F4,
)
def ssd_chunked_stateful_triton(x, dt, A, B, C, S0, *, chunk):
    """mamba_chunk_scan_combined with groups, heads, states and a first state."""
    more = {"initial_states": S0, "return_final_states": True}
    return kernel(x, dt, A, B, C, chunk, **more)
