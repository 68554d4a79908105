"""Convolutions: along a whole sequence, and over a few taps.

    y_i = Σ_{j≤i} k_{i−j} u_j

`causal` is the output of a time-invariant system with impulse response k, by the sum and by the
fast Fourier transform; `circular` and `bidirectional` wrap around and look ahead; `short` has a few
taps, and a state for streaming.
"""

from refssm.convolution.bidirectional import (
    BIDIRECTIONAL_CONVOLUTION,
    BIDIRECTIONAL_CONVOLUTION_SHIFTED,
    bidirectional_convolution,
    bidirectional_convolution_shifted,
    bidirectional_convolution_shifted_vjp,
    bidirectional_convolution_vjp,
)
from refssm.convolution.causal import (
    CAUSAL_CONVOLUTION,
    CAUSAL_CONVOLUTION_DIRECT,
    causal_convolution,
    causal_convolution_direct,
    causal_convolution_direct_vjp,
    causal_convolution_vjp,
)
from refssm.convolution.circular import (
    CIRCULAR_CONVOLUTION,
    circular_convolution,
    circular_convolution_vjp,
)
from refssm.convolution.short import (
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
    short_convolution,
    short_convolution_stateful,
    short_convolution_stateful_vjp,
    short_convolution_step,
    short_convolution_step_vjp,
    short_convolution_vjp,
)

__all__ = [
    "BIDIRECTIONAL_CONVOLUTION",
    "BIDIRECTIONAL_CONVOLUTION_SHIFTED",
    "CAUSAL_CONVOLUTION",
    "CAUSAL_CONVOLUTION_DIRECT",
    "CIRCULAR_CONVOLUTION",
    "SHORT_CONVOLUTION",
    "SHORT_CONVOLUTION_STATEFUL",
    "SHORT_CONVOLUTION_STEP",
    "bidirectional_convolution",
    "bidirectional_convolution_shifted",
    "bidirectional_convolution_shifted_vjp",
    "bidirectional_convolution_vjp",
    "causal_convolution",
    "causal_convolution_direct",
    "causal_convolution_direct_vjp",
    "causal_convolution_vjp",
    "circular_convolution",
    "circular_convolution_vjp",
    "short_convolution",
    "short_convolution_stateful",
    "short_convolution_stateful_vjp",
    "short_convolution_step",
    "short_convolution_step_vjp",
    "short_convolution_vjp",
]
