"""flash-linear-attention's `naive_recurrent_gla`, with which its tests compare its kernels."""

from refssm.subjects.flash_linear_attention_shared import (
    DECLARED,
    SELECTED,
    fla,
    selected,
)
from refssm.testing import implements

gla = fla("ops.gla.naive").naive_recurrent_gla


def exact_scale(x):
    """The case with 1, 4 or 16 states: their scale, one over the root of that, is exact."""
    n = x["A"].shape[-1]
    kept = max((m for m in (1, 4, 16) if m <= n), default=0)
    return {**x, **{k: v[..., :kept] for k, v in x.items() if k in ("A", "B", "C", "x0")}}


@implements("selective_scan", layout=f"{SELECTED} -> b d l", only=exact_scale, **DECLARED)
def selective_scan(u, dt, A, B, C):
    """A channel is a head with one value, its states are keys with gates dt A."""
    q, *others = selected(u, dt, A, B, C)
    return gla(q * A.shape[-1] ** 0.5, *others)[0][..., 0].mT


@implements(
    "selective_scan_stateful",
    layout=f"{SELECTED}, b d n -> b d l, b d n",
    only=exact_scale,
    **DECLARED,
)
def selective_scan_stateful(u, dt, A, B, C, x0):
    """The same from a state."""
    q, *others = selected(u, dt, A, B, C)
    y, x = gla(q * A.shape[-1] ** 0.5, *others, x0[..., None], True)
    return y[..., 0].mT, x[..., 0]
