"""What the plug-ins of flash-linear-attention have in common: declarations, and names of theirs."""

from typing import Any

from refssm.subjects.clones import module
from refssm.subjects.triton_interpreter import SELECTIVE, SSD, few

SCANNED = "b l g h p, b l g h, b l g n, b l g n"
SELECTED = "b d l, b d l, d n, b n l, b n l"
DECLARED: dict[str, Any] = {"framework": "torch", "vjp": True, "dtypes": ("float32",)}
LAYOUT, FROM = f"{SCANNED} -> b l g h p", f"{SCANNED}, b g h p n -> b l g h p, b g h p n"
few_heads = few(SSD, b=2, g=2, h=2, l=70)
few_channels = few(SELECTIVE, b=2, d=3, l=70)


def fla(dotted: str):
    """A module of theirs; it stays, because its functions import others when they are called."""
    return module("flash-linear-attention", f"fla.{dotted}", stays=True)


def keys(x, log_a, B, C):
    """Their q, k, v, g: C, B and x of each head, and its decays."""
    h = x.shape[3]
    return *(v.repeat_interleave(h, 2) for v in (C, B)), x.flatten(2, 3), log_a.flatten(2, 3)


def gated(hgrn, x, log_a, B, C, *S0):
    """Outputs and the last state by hgrn(x, g, initial_state, output_final_state)."""
    drives = x[..., None] * B[:, :, :, None, None]  # (b, l, g, h, p, n)
    gates = log_a[..., None, None].expand_as(drives).flatten(2)
    state = S0[0].flatten(1) if S0 else None
    states, last = hgrn(drives.flatten(2), gates, state, True)
    y = (states.reshape(drives.shape) * C[:, :, :, None, None]).sum(-1)
    return y, last.reshape(drives[:, 0].shape)


def selected(u, dt, A, B, C):
    """Their q, k, v, gk for a channel as a head with one value, whose keys are the states."""
    q, k = (v.mT[:, :, None].expand(-1, -1, len(A), -1) for v in (C, B))
    return q, k, (dt * u).mT[..., None], (dt[..., None] * A[:, None]).transpose(1, 2)
