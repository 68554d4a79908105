# pyright: reportMissingImports=false
"""flash-linear-attention: simple GLA, GLA and HGRN, naive and by Triton kernels in the interpreter.

Its own tests compare the kernels with the naive functions. In GLA a channel is a head with one
value; its states are keys with gates dt A. In HGRN the states are one gated recurrence for each
entry of x Bᵀ.
"""

from typing import Any

from refssm.subjects.clones import module
from refssm.subjects.triton_interpreter import SELECTIVE, SSD, few, tensors_in_loops
from refssm.testing import implements

SCANNED = "b l g h p, b l g h, b l g n, b l g n"
SELECTED = "b d l, b d l, d n, b n l, b n l -> b d l"
SELECTED_FROM = "b d l, b d l, d n, b n l, b n l, b d n -> b d l, b d n"
DECLARED: dict[str, Any] = {"framework": "torch", "vjp": True, "dtypes": ("float32",)}
LAYOUT, FROM = f"{SCANNED} -> b l g h p", f"{SCANNED}, b g h p n -> b l g h p, b g h p n"
few_heads = few(SSD, b=2, g=2, h=2, l=70)
few_channels = few(SELECTIVE, b=2, d=3, l=70)
narrow = few(SSD, b=2, g=2, h=1, p=2, n=3)  # for chunks of 128 steps


def fla(dotted: str):
    """A module of theirs; it stays, because its functions import others when they are called."""
    return module("flash-linear-attention", f"fla.{dotted}", stays=True)


simple_gla, naive = fla("ops.simple_gla"), fla("ops.simple_gla.naive")
gla, gla_naive = fla("ops.gla"), fla("ops.gla.naive")
hgrn, hgrn_naive, hgrn_chunk = fla("ops.hgrn"), fla("ops.hgrn.naive"), fla("ops.hgrn.chunk")
tensors_in_loops(hgrn_chunk)


def keys(x, log_a, B, C):
    """Their q, k, v, g: C, B and x of each head, and its decays."""
    h = x.shape[3]
    return *(v.repeat_interleave(h, 2) for v in (C, B)), x.flatten(2, 3), log_a.flatten(2, 3)


def gated(scan, x, log_a, B, C, *S0):
    """Outputs and the last state by scan(x, g, initial_state, output_final_state)."""
    drives = x[..., None] * B[:, :, :, None, None]  # (b, l, g, h, p, n)
    gates = log_a[..., None, None].expand_as(drives).flatten(2)
    state = S0[0].flatten(1) if S0 else None
    states, last = scan(drives.flatten(2), gates, state, True)
    y = (states.reshape(drives.shape) * C[:, :, :, None, None]).sum(-1)
    return y, last.reshape(drives[:, 0].shape)


def selected(u, dt, A, B, C):
    """Their q, k, v, gk for a channel as a head with one value, whose keys are the states."""
    q, k = (v.mT[:, :, None].expand(-1, -1, len(A), -1) for v in (C, B))
    return q, k, (dt * u).mT[..., None], (dt[..., None] * A[:, None]).transpose(1, 2)


@implements("ssd_recurrent", layout=LAYOUT, **DECLARED)
def naive_recurrent_simple_gla(x, log_a, B, C):
    """naive_recurrent_simple_gla."""
    return naive.naive_recurrent_simple_gla(*keys(x, log_a, B, C), 1.0)[0].reshape(x.shape)


@implements("ssd_recurrent_stateful", layout=FROM, **DECLARED)
def naive_recurrent_simple_gla_stateful(x, log_a, B, C, S0):
    """naive_recurrent_simple_gla from a state."""
    y, S = naive.naive_recurrent_simple_gla(*keys(x, log_a, B, C), 1.0, S0.flatten(1, 2).mT)
    return y.reshape(x.shape), S.mT.reshape(S0.shape)


@implements("ssd_quadratic", layout=LAYOUT, **DECLARED)
def naive_parallel_simple_gla(x, log_a, B, C):
    """naive_parallel_simple_gla."""
    return naive.naive_parallel_simple_gla(*keys(x, log_a, B, C), 1.0)[0].reshape(x.shape)


@implements("ssd_chunked", layout=LAYOUT, **DECLARED)
def naive_chunk_simple_gla(x, log_a, B, C, *, chunk):
    """naive_chunk_simple_gla."""
    y, _ = naive.naive_chunk_simple_gla(*keys(x, log_a, B, C), chunk_size=chunk, scale=1.0)
    return y.reshape(x.shape)


@implements("ssd_chunked_stateful", layout=FROM, **DECLARED)
def naive_chunk_simple_gla_stateful(x, log_a, B, C, S0, *, chunk):
    """naive_chunk_simple_gla from a state."""
    state = S0.flatten(1, 2).mT
    q, k, v, g = keys(x, log_a, B, C)
    y, S = naive.naive_chunk_simple_gla(q, k, v, g, state, True, chunk, 1.0)
    return y.reshape(x.shape), S.mT.reshape(S0.shape)


def by_gla(scan, u, dt, A, B, C, *x0):
    """Outputs by a kernel of GLA, and from a state the last state, too."""
    q, k, v, gates = selected(u, dt, A, B, C)
    state = {"initial_state": x0[0][..., None], "output_final_state": True} if x0 else {}
    y, x = scan(q, k, v, gates, scale=1.0, **state)
    return (y[..., 0].mT, x[..., 0]) if x0 else y[..., 0].mT


def power_of_two(x):
    """A smaller case with a chunk of 16, 32 or 64."""
    return {**few_heads(x), "chunk": min(max(16, 1 << (x["chunk"] - 1).bit_length()), 64)}


@implements("ssd_recurrent", layout=LAYOUT, only=few_heads, **DECLARED)
def fused_recurrent_simple_gla(x, log_a, B, C):
    """fused_recurrent_simple_gla."""
    y, _ = simple_gla.fused_recurrent_simple_gla(*keys(x, log_a, B, C), scale=1.0)
    return y.reshape(x.shape)


@implements("ssd_recurrent_stateful", layout=FROM, only=few_heads, **DECLARED)
def fused_recurrent_simple_gla_stateful(x, log_a, B, C, S0):
    """fused_recurrent_simple_gla from a state."""
    state = S0.flatten(1, 2).mT
    more = {"scale": 1.0, "initial_state": state, "output_final_state": True}
    y, S = simple_gla.fused_recurrent_simple_gla(*keys(x, log_a, B, C), **more)
    return y.reshape(x.shape), S.mT.reshape(S0.shape)


@implements("ssd_quadratic", layout=LAYOUT, only=few_heads, **DECLARED)
def parallel_simple_gla(x, log_a, B, C):
    """parallel_simple_gla."""
    return simple_gla.parallel_simple_gla(*keys(x, log_a, B, C), scale=1.0)[0].reshape(x.shape)


@implements("ssd_chunked", layout=LAYOUT, only=power_of_two, **DECLARED)
def chunk_simple_gla(x, log_a, B, C, *, chunk):
    """chunk_simple_gla."""
    y, _ = simple_gla.chunk_simple_gla(*keys(x, log_a, B, C), scale=1.0, chunk_size=chunk)
    return y.reshape(x.shape)


@implements("ssd_chunked_stateful", layout=FROM, only=power_of_two, **DECLARED)
def chunk_simple_gla_stateful(x, log_a, B, C, S0, *, chunk):
    """chunk_simple_gla from a state."""
    state = S0.flatten(1, 2).mT
    more = {"scale": 1.0, "initial_state": state, "output_final_state": True}
    y, S = simple_gla.chunk_simple_gla(*keys(x, log_a, B, C), **more, chunk_size=chunk)
    return y.reshape(x.shape), S.mT.reshape(S0.shape)


def exact_scale(x):
    """The case with 1, 4 or 16 states: their scale, one over the root of that, is exact."""
    n = x["A"].shape[-1]
    kept = max((m for m in (1, 4, 16) if m <= n), default=0)
    return {**x, **{k: v[..., :kept] for k, v in x.items() if k in ("A", "B", "C", "x0")}}


@implements("selective_scan", layout=SELECTED, only=exact_scale, **DECLARED)
def naive_recurrent_gla(u, dt, A, B, C):
    """naive_recurrent_gla."""
    q, *others = selected(u, dt, A, B, C)
    return gla_naive.naive_recurrent_gla(q * A.shape[-1] ** 0.5, *others)[0][..., 0].mT


@implements("selective_scan_stateful", layout=SELECTED_FROM, only=exact_scale, **DECLARED)
def naive_recurrent_gla_stateful(u, dt, A, B, C, x0):
    """naive_recurrent_gla from a state."""
    q, *others = selected(u, dt, A, B, C)
    scaled = q * A.shape[-1] ** 0.5
    y, x = gla_naive.naive_recurrent_gla(scaled, *others, x0[..., None], True)
    return y[..., 0].mT, x[..., 0]


@implements("selective_scan", layout=SELECTED, only=few_channels, **DECLARED)
def fused_recurrent_gla(u, dt, A, B, C):
    """fused_recurrent_gla."""
    return by_gla(gla.fused_recurrent_gla, u, dt, A, B, C)


@implements("selective_scan_stateful", layout=SELECTED_FROM, only=few_channels, **DECLARED)
def fused_recurrent_gla_stateful(u, dt, A, B, C, x0):
    """fused_recurrent_gla from a state."""
    return by_gla(gla.fused_recurrent_gla, u, dt, A, B, C, x0)


@implements("selective_scan", layout=SELECTED, only=few_channels, **DECLARED)
def chunk_gla(u, dt, A, B, C):
    """chunk_gla."""
    return by_gla(gla.chunk_gla, u, dt, A, B, C)


@implements("selective_scan_stateful", layout=SELECTED_FROM, only=few_channels, **DECLARED)
def chunk_gla_stateful(u, dt, A, B, C, x0):
    """chunk_gla from a state."""
    return by_gla(gla.chunk_gla, u, dt, A, B, C, x0)


@implements("ssd_recurrent", layout=LAYOUT, only=few_heads, **DECLARED)
def naive_recurrent_hgrn(x, log_a, B, C):
    """naive_recurrent_hgrn."""
    return gated(hgrn_naive.naive_recurrent_hgrn, x, log_a, B, C)[0]


@implements("ssd_recurrent_stateful", layout=FROM, only=few_heads, **DECLARED)
def naive_recurrent_hgrn_stateful(x, log_a, B, C, S0):
    """naive_recurrent_hgrn from a state."""
    return gated(hgrn_naive.naive_recurrent_hgrn, x, log_a, B, C, S0)


@implements("ssd_recurrent", layout=LAYOUT, only=few_heads, **DECLARED)
def fused_recurrent_hgrn(x, log_a, B, C):
    """fused_recurrent_hgrn."""
    return gated(hgrn.fused_recurrent_hgrn, x, log_a, B, C)[0]


@implements("ssd_recurrent_stateful", layout=FROM, only=few_heads, **DECLARED)
def fused_recurrent_hgrn_stateful(x, log_a, B, C, S0):
    """fused_recurrent_hgrn from a state."""
    return gated(hgrn.fused_recurrent_hgrn, x, log_a, B, C, S0)


@implements("ssd_recurrent", layout=LAYOUT, only=narrow, **DECLARED)
def chunk_hgrn(x, log_a, B, C):
    """chunk_hgrn."""
    return gated(hgrn_chunk.chunk_hgrn, x, log_a, B, C)[0]


@implements("ssd_recurrent_stateful", layout=FROM, only=narrow, **DECLARED)
def chunk_hgrn_stateful(x, log_a, B, C, S0):
    """chunk_hgrn from a state."""
    return gated(hgrn_chunk.chunk_hgrn, x, log_a, B, C, S0)
