# pyright: reportMissingImports=false
"""vLLM's references in PyTorch, with which its tests compare kernels, and its loops without a card.

Only these functions are read from the files: the files themselves import all of vLLM. The clone
may be the source package of the same version.
"""

from typing import Any

import torch
from einops import rearrange, repeat
from torch.nn import functional

from refssm.adapters import neg_softplus, oldest_first, scaled, sigmoid
from refssm.subjects.clones import definitions
from refssm.subjects.mamba_block import BLOCK_SCAN, BLOCK_STEPPED, F4, REAL, SCAN, STEPPED
from refssm.testing import implements


def theirs(file: str, *functions: str):
    """Functions of a file of vLLM."""
    given = {"torch": torch, "F": functional, "rearrange": rearrange, "repeat": repeat}
    return definitions("vllm", file, *functions, **given, PAD_SLOT_ID=-1)


TESTS, CPU = "tests/kernels/mamba", "vllm/model_executor/layers/mamba/ops/cpu"
conv = theirs(f"{TESTS}/test_causal_conv1d.py", "causal_conv1d_ref", "causal_conv1d_update_ref")
on_cpu = theirs(f"{CPU}/causal_conv1d.py", "causal_conv1d_fn_cpu", "causal_conv1d_update_torch")
scan = theirs(f"{TESTS}/test_mamba_ssm.py", "selective_scan_ref").selective_scan_ref
update = theirs(f"{TESTS}/utils.py", "selective_state_update_ref").selective_state_update_ref
listing = theirs(f"{TESTS}/test_mamba_ssm_ssd.py", "segsum", "ssd_minimal_discrete")
delta = theirs(f"{TESTS}/cpu/test_cpu_gdn_ops.py", "ref_gdn_gating", "ref_gated_delta_rule")

TAPS: dict[str, Any] = {"adapters": (oldest_first(),), **F4}
CONVOLVED = "b d l, d t, d, b d t -> b d l, b d t"


@implements("short_convolution", layout="b d l, d t -> b d l", vjp=True, **TAPS)
def causal_conv1d_ref_without_activation(u, k):
    """causal_conv1d_ref without bias and activation."""
    return conv.causal_conv1d_ref(u, k, activation=None)[0]


@implements("causal_conv1d", layout="b d l, d t, d -> b d l", vjp=True, **TAPS)
def causal_conv1d_ref(u, k, bias):
    """causal_conv1d_ref."""
    return conv.causal_conv1d_ref(u, k, bias)[0]


@implements("causal_conv1d_stateful", layout=CONVOLVED, vjp=True, **TAPS)
def causal_conv1d_ref_stateful(u, k, bias, s0):
    """causal_conv1d_ref after stored inputs; it keeps one less than there are taps."""
    y, s = conv.causal_conv1d_ref(u, k, bias, s0[..., 1:], return_final_states=True)
    oldest = torch.cat([s0, u], -1)[..., u.shape[-1], None]
    return y, torch.cat([oldest, s], -1)


@implements("causal_conv1d_stateful", layout=CONVOLVED, **TAPS)
def causal_conv1d_update_ref(u, k, bias, s0):
    """causal_conv1d_update_ref, which overwrites the stored inputs."""
    s = s0.clone()
    return conv.causal_conv1d_update_ref(u, s, k, bias, "silu"), s


@implements("causal_conv1d_stateful", layout=CONVOLVED, **TAPS)
def causal_conv1d_update_torch(u, k, bias, s0):
    """causal_conv1d_update_torch, in place of the kernel on Arm."""
    s = s0.clone()
    return on_cpu.causal_conv1d_update_torch(u, s, k, bias, "silu"), s


def starts_of(resets):
    """Where sequences begin, and the end of the last one: their query_start_loc."""
    places = resets.nonzero().flatten()
    return torch.cat([places.new_zeros(1), places[places > 0], places.new_tensor([len(resets)])])


@implements("causal_conv1d_packed", layout="d l, d t, d, l -> d l", **TAPS)
def causal_conv1d_fn_cpu(u, k, bias, resets):
    """causal_conv1d_fn_cpu of sequences beside each other."""
    starts = starts_of(resets)
    stored = u.new_zeros(len(starts) - 1, *k.shape)[..., 1:]
    return on_cpu.causal_conv1d_fn_cpu(u, k, bias, stored, starts)


@implements("selective_scan", layout=SCAN, vjp=True, **F4)
def selective_scan_ref(u, dt, A, B, C):
    """selective_scan_ref."""
    return scan(u, dt, A, B, C)


@implements("mamba_scan", layout=BLOCK_SCAN, vjp=True, **F4)
def selective_scan_ref_block(u, dt, A, B, C, D, z, dt_bias):
    """selective_scan_ref with bias, softplus, skip connection and gate."""
    return scan(u, dt, A, B, C, D, z, dt_bias, delta_softplus=True)


@implements(
    "mamba_scan_stateful",
    layout=f"{BLOCK_SCAN.replace(' -> ', ', b d n -> ')}, b d n",
    vjp=True,
    **F4,
)
def selective_scan_ref_stateful(u, dt, A, B, C, D, z, dt_bias, x0):
    """selective_scan_ref from a state."""
    more = {"delta_softplus": True, "return_last_state": True, "prev_state": x0}
    return scan(u, dt, A, B, C, D, z, dt_bias, **more)


@implements("selective_step", layout=STEPPED, **REAL)
def selective_state_update_ref(u, dt, A, B, C, x):
    """selective_state_update_ref, which overwrites the state."""
    x = x.clone()
    return update(x, u, dt, A, B, C), x


@implements("mamba_step", layout=BLOCK_STEPPED, **REAL)
def selective_state_update_ref_block(u, dt, A, B, C, D, z, dt_bias, x):
    """selective_state_update_ref with bias, softplus, skip connection and gate."""
    x = x.clone()
    return update(x, u, dt, A, B, C, D, z, dt_bias, dt_softplus=True), x


def no_limits(x):
    """The case without limits of the step, which the function does not have."""
    return {**x, "dt_min": 0.0, "dt_max": 1024.0}


H = "(g h)"
HEADS = f"b {H} p, b {H}, {H}, b g n, b g n, {H}, b {H} p, {H}, b {H} p n -> b {H} p, b {H} p n"


@implements("mamba2_step", layout=HEADS, only=no_limits, **F4)
def selective_state_update_ref_heads(x, dt, A, B, C, D, z, dt_bias, S, *, dt_min, dt_max):
    """selective_state_update_ref with heads, each with one step, rate and bias."""
    del dt_min, dt_max
    S, rows = S.clone(), x.shape[-1]
    dt, D, dt_bias = (v[..., None].expand(*v.shape, rows) for v in (dt, D, dt_bias))
    A = A[:, None, None].expand(*S.shape[1:])
    return update(S, x, dt, A, B, C, D, z, dt_bias, dt_softplus=True), S


def whole_chunks(x):
    """The case with a length of whole chunks of at most 64."""
    chunk = min(x["chunk"], 64)
    l = x["x"].shape[-2] // chunk * chunk
    cut = {name: x[name][..., :l, :] for name in ("x", "B", "C")}
    return {**x, **cut, "log_a": x["log_a"][..., :l], "chunk": chunk} if l else None


@implements(
    "ssd_chunked_stateful",
    layout="b l g h p, b l g h, b l g n, b l g n, b g h p n -> b l g h p, b g h p n",
    only=whole_chunks,
    vjp=True,
    **REAL,
)
def ssd_minimal_discrete(x, log_a, B, C, S0, *, chunk):
    """ssd_minimal_discrete, their copy of Mamba-2's listing."""
    h = x.shape[3]
    B, C = (v.repeat_interleave(h, 2) for v in (B, C))
    given = x.flatten(2, 3), log_a.flatten(2, 3), B, C, chunk, S0.flatten(1, 2)[:, None]
    y, S = listing.ssd_minimal_discrete(*given)
    return y.reshape(x.shape), S.reshape(S0.shape)


@implements(
    "gated_delta_rule_stateful",
    layout=f"b l g n, b l g n, b l {H} p, b l {H}, b l {H}, b {H} p n -> b l {H} p, b {H} p n",
    adapters=(scaled(), neg_softplus("log_g"), sigmoid()),
    vjp=True,
    **F4,
)
def ref_gated_delta_rule(q, k, v, a, b, S0):
    """ref_gated_delta_rule with A_log and dt_bias of 0: gates before softplus and σ."""
    members, l = q.shape[:2]
    zeros = a.new_zeros(a.shape[-1])
    starts = torch.arange(members + 1) * l
    rows = (x.flatten(0, 1) for x in (q, k, v))
    q, k, v = (x[None] for x in rows)
    gates = a.flatten(0, 1), b.flatten(0, 1)
    y, S = delta.ref_gated_delta_rule(q, k, v, *gates, zeros, zeros, S0, starts)
    return y[0].unflatten(0, (members, l)), S
