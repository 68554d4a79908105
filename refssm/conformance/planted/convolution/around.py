"""Planted bugs in circular and bidirectional convolutions and their gradients."""

import numpy as np

from refssm.conformance.planted.convolution import signals
from refssm.conformance.planted.convolution.signals import back, first_64, later, rolled
from refssm.conformance.planted.planting import Planting, instead, of_result
from refssm.convolution import (
    BIDIRECTIONAL_CONVOLUTION,
    BIDIRECTIONAL_CONVOLUTION_SHIFTED,
    CAUSAL_CONVOLUTION,
    CIRCULAR_CONVOLUTION,
)

past, circular = CAUSAL_CONVOLUTION.reference, CIRCULAR_CONVOLUTION.reference
NOT_CONJUGATED = ("not_conjugated", "k for k*", signals.not_conjugated)


def _turned(k):
    """k_{−i} on a circle."""
    return rolled(back(k))


def _last_of_odd_lost(y):
    l = y.shape[-1]
    return np.where((np.arange(l) == l - 1) & (l % 2 == 1), 0, y)


CIRCULAR = Planting(CIRCULAR_CONVOLUTION, "float32")
CIRCULAR.usual()
CIRCULAR.plant(
    ("causal", "padded, so nothing wraps around", instead(past)),
    ("correlation", "k_{j−i} for k_{i−j}", {"k": _turned}),
    ("reversed", "the kernel backwards", {"k": back}),
    ("delayed", "the kernel one step late", {"k": rolled}),
    ("signal_delayed", "the signal one step early", {"u": lambda u: np.roll(u, -1, axis=-1)}),
    ("last_tap", "the last tap forgotten", {"k": signals.but_last}),
    ("beyond_64", "taps beyond 64 forgotten", {"k": first_64}),
    ("orthonormal", "orthonormal transforms: 1/√l too small",
     of_result(lambda y: y / np.sqrt(max(1, y.shape[-1])).astype(y.real.dtype))),
    ("even_only", "the last sample of an odd length lost", of_result(_last_of_odd_lost)),
    ("wrapped_halfway", "wraps around at l − 1",
     lambda right, u, k: right(u, k) - past(u, k) + past(u, later(k))),
)  # fmt: skip
CIRCULAR.plant(
    ("conjugate", "k* for k", {"k": np.conj}),
    ("real_part", "Re k for k", {"k": lambda k: k.real.astype(k.dtype)}),
    by="value[complex64]",
)
CIRCULAR.plant(
    ("not_reversed", "a convolution for a correlation",
     lambda right, dy, u, k: right(dy, _turned(u), _turned(k))),
    ("swapped", "dk before du",
     of_result(lambda du, dk: (np.broadcast_to(dk, du.shape).copy(), dk))),
    by="gradient",
)  # fmt: skip
CIRCULAR.plant(NOT_CONJUGATED, signals.AS_JAX, by="gradient[complex64]")

BOTH = Planting(BIDIRECTIONAL_CONVOLUTION, "float32")
SHIFTED = Planting(BIDIRECTIONAL_CONVOLUTION_SHIFTED, "float32")
for _p, _other in (BOTH, SHIFTED.op), (SHIFTED, BOTH.op):
    _p.usual()
    _p.plant(
        ("lag", "the other convention of lag 0", instead(_other.reference)),
        ("forward_only", "the future forgotten", {"kr": np.zeros_like}),
        ("backward_only", "the past forgotten", {"k": np.zeros_like}),
        ("kernels_exchanged", "k and k' exchanged", lambda right, u, k, kr: right(u, kr, k)),
        ("not_reversed", "k' runs forwards", lambda right, u, k, kr: right(u, k + kr, 0 * kr)),
        ("kernel_reversed", "k' reversed over its whole length", {"kr": back}),
        ("two_early", "the future one step earlier", {"kr": signals.earlier}),
        ("one_late", "the future one step later", {"kr": later}),
        ("circular", "no padding: both kernels wrap around",
         lambda right, u, k, kr: circular(u, k) + right(u, 0 * k, kr)),
        ("future_circular", "no padding of the future",
         lambda right, u, k, kr: past(u, k) + back(circular(back(u), kr))),
        ("beyond_64", "taps of k' beyond 64 forgotten", {"kr": first_64}),
        ("averaged", "the mean of both directions", of_result(lambda y: y / 2)),
    )  # fmt: skip
    _p.plant(("conjugate", "k'* for k'", {"kr": np.conj}), by="value[complex64]")
    _p.plant(
        ("future_ignored", "du without what came from the past",
         lambda right, dy, u, k, kr: right(dy, u, k, 0 * kr)),  # only du depends on it
        ("kernels_exchanged", "dk and dk' exchanged", of_result(lambda du, dk, dkr: (du, dkr, dk))),
        ("lag", "the other convention of lag 0", instead(_other.bare_vjp)),
        by="gradient",
    )  # fmt: skip
    _p.plant(NOT_CONJUGATED, signals.AS_JAX, by="gradient[complex64]")
