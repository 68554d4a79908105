"""Fast forms of refssm.convolution; compiled when imported."""

from refssm.jit.convolution.causal import (
    causal_convolution,
    causal_convolution_direct,
    causal_convolution_direct_vjp,
    causal_convolution_vjp,
)
from refssm.jit.convolution.short import (
    short_convolution,
    short_convolution_stateful,
    short_convolution_stateful_vjp,
    short_convolution_step,
    short_convolution_step_vjp,
    short_convolution_vjp,
)

__all__ = [
    "causal_convolution",
    "causal_convolution_direct",
    "causal_convolution_direct_vjp",
    "causal_convolution_vjp",
    "short_convolution",
    "short_convolution_stateful",
    "short_convolution_stateful_vjp",
    "short_convolution_step",
    "short_convolution_step_vjp",
    "short_convolution_vjp",
]
