"""What both kernels of accelerated-scan have in common: how they are declared, and lengths."""

from typing import Any

SHORTEST, LONGEST = 32, 65536
DECLARED: dict[str, Any] = {
    "framework": "torch",
    "device": "cuda",
    "vjp": True,
    "dtypes": ("float32",),
    "layout": "b n l, b n l -> b n l",
}


def gates_and_tokens(a, b):
    """The arguments of a kernel, (B, C, T) where T is a power of two."""
    l = b.shape[-1]
    if not SHORTEST <= l <= LONGEST or l & (l - 1):
        raise NotImplementedError("lengths are powers of two from 32 to 65536")
    return a.expand_as(b).contiguous(), b.contiguous()
