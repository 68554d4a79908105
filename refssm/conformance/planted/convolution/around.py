"""Planted bugs in circular and bidirectional convolutions and their gradients."""

import numpy as np

from refssm.conformance.planted.planting_old import Planting
from refssm.convolution import (
    BIDIRECTIONAL_CONVOLUTION,
    BIDIRECTIONAL_CONVOLUTION_SHIFTED,
    CAUSAL_CONVOLUTION,
    CIRCULAR_CONVOLUTION,
)

past = CAUSAL_CONVOLUTION.reference


def back(u):
    """Backwards in time."""
    return u[..., ::-1]


def moved(u, steps):
    """Later in time, zeros before; earlier for negative steps."""
    zeros, l = np.zeros_like(u), u.shape[-1]
    if steps >= 0:
        return np.concatenate([zeros[..., :steps], u], axis=-1)[..., :l]
    return np.concatenate([u, zeros[..., :-steps]], axis=-1)[..., -steps:][..., :l]


def kept(k, taps):
    """Only the first taps of a kernel."""
    return np.where(np.arange(k.shape[-1]) < taps, k, 0).astype(k.dtype)


def _plant_circular(p: Planting) -> None:
    right, wrong = p.right, p.forward
    wrong("causal", "padded, so nothing wraps around")(lambda u, k: past(u, k))
    wrong("correlation", "k_{j−i} for k_{i−j}")(lambda u, k: right(u, np.roll(back(k), 1, axis=-1)))
    wrong("reversed", "the kernel backwards")(lambda u, k: right(u, back(k)))
    wrong("delayed", "the kernel one step late")(lambda u, k: right(u, np.roll(k, 1, axis=-1)))
    wrong("signal_delayed", "the signal one step early")(
        lambda u, k: right(np.roll(u, -1, axis=-1), k)
    )
    wrong("conjugate", "k* for k", dtype="complex64")(lambda u, k: right(u, k.conj()))
    wrong("real_part", "Re k for k", dtype="complex64")(
        lambda u, k: right(u, k.real.astype(k.dtype))
    )
    wrong("last_tap", "the last tap forgotten")(lambda u, k: right(u, kept(k, k.shape[-1] - 1)))
    wrong("beyond_64", "taps beyond 64 forgotten")(lambda u, k: right(u, kept(k, 64)))
    wrong("orthonormal", "orthonormal transforms: 1/√l too small")(
        lambda u, k: right(u, k) / np.sqrt(max(1, u.shape[-1])).astype(u.real.dtype)
    )
    wrong("even_only", "the last sample of an odd length lost")(
        lambda u, k: moved(right(u, k), 0) * _all_but_last_if_odd(u)
    )
    wrong("wrapped_halfway", "wraps around at l − 1")(
        lambda u, k: right(u, k) - past(u, k) + past(u, moved(k, 1))
    )
    p.gradient("not_reversed", "a convolution for a correlation")(
        lambda dy, u, k: p.right_vjp(dy, np.roll(back(u), 1, axis=-1), np.roll(back(k), 1, axis=-1))
    )
    p.gradient("not_conjugated", "k for k*", "complex64")(
        lambda dy, u, k: p.right_vjp(dy, u.conj(), k.conj())
    )
    p.gradient("as_jax", "the conjugate convention", "complex64")(
        lambda dy, u, k: tuple(g.conj() for g in p.right_vjp(dy, u, k))
    )
    p.gradient("swapped", "dk before du")(lambda dy, u, k: _swapped(p, dy, u, k))


def _swapped(p, dy, u, k):
    du, dk = p.right_vjp(dy, u, k)
    return np.broadcast_to(dk, du.shape).copy(), dk


def _all_but_last_if_odd(u):
    l = u.shape[-1]
    return np.where((np.arange(l) == l - 1) & (l % 2 == 1), 0, 1).astype(u.real.dtype)


def _plant_both_ways(p: Planting, other) -> None:
    right, wrong = p.right, p.forward
    wrong("lag", "the other convention of lag 0")(other.reference)
    wrong("forward_only", "the future forgotten")(lambda u, k, kr: right(u, k, 0 * kr))
    wrong("backward_only", "the past forgotten")(lambda u, k, kr: right(u, 0 * k, kr))
    wrong("kernels_exchanged", "k and k' exchanged")(lambda u, k, kr: right(u, kr, k))
    wrong("not_reversed", "k' runs forwards")(lambda u, k, kr: right(u, k + kr, 0 * kr))
    wrong("kernel_reversed", "k' reversed over its whole length")(
        lambda u, k, kr: right(u, k, back(kr))
    )
    wrong("two_early", "the future one step earlier")(lambda u, k, kr: right(u, k, moved(kr, -1)))
    wrong("one_late", "the future one step later")(lambda u, k, kr: right(u, k, moved(kr, 1)))
    wrong("circular", "no padding: both kernels wrap around")(
        lambda u, k, kr: CIRCULAR_CONVOLUTION.reference(u, k) + right(u, 0 * k, kr)
    )
    wrong("future_circular", "no padding of the future")(
        lambda u, k, kr: past(u, k) + back(CIRCULAR_CONVOLUTION.reference(back(u), kr))
    )
    wrong("conjugate", "k'* for k'", dtype="complex64")(lambda u, k, kr: right(u, k, kr.conj()))
    wrong("beyond_64", "taps of k' beyond 64 forgotten")(lambda u, k, kr: right(u, k, kept(kr, 64)))
    wrong("averaged", "the mean of both directions")(lambda u, k, kr: right(u, k, kr) / 2)
    p.gradient("future_ignored", "du without what came from the past")(
        lambda dy, u, k, kr: (p.right_vjp(dy, u, k, 0 * kr)[0], *p.right_vjp(dy, u, k, kr)[1:])
    )
    p.gradient("kernels_exchanged", "dk and dk' exchanged")(
        lambda dy, u, k, kr: tuple(p.right_vjp(dy, u, k, kr)[i] for i in (0, 2, 1))
    )
    p.gradient("lag", "the other convention of lag 0")(other.bare_vjp)
    p.gradient("not_conjugated", "k for k*", "complex64")(
        lambda dy, u, k, kr: p.right_vjp(dy, u.conj(), k.conj(), kr.conj())
    )
    p.gradient("as_jax", "the conjugate convention", "complex64")(
        lambda dy, u, k, kr: tuple(g.conj() for g in p.right_vjp(dy, u, k, kr))
    )


CIRCULAR = Planting(CIRCULAR_CONVOLUTION, "float32")
BOTH = Planting(BIDIRECTIONAL_CONVOLUTION, "float32")
SHIFTED = Planting(BIDIRECTIONAL_CONVOLUTION_SHIFTED, "float32")
for _p in (CIRCULAR, BOTH, SHIFTED):
    _p.usual()
_plant_circular(CIRCULAR)
_plant_both_ways(BOTH, BIDIRECTIONAL_CONVOLUTION_SHIFTED)
_plant_both_ways(SHIFTED, BIDIRECTIONAL_CONVOLUTION)

DEVIATIONS = [*CIRCULAR.bugs, *BOTH.bugs, *SHIFTED.bugs]
