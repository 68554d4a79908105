"""Short convolutions by transforms: right in norm.

An FFT spreads the rounding errors of the largest input over all outputs, as it does in
`causal_convolution`, whose first bound this is. For a few taps the sum is the definition, so a
transform has grade N here.
"""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each, with_batch
from refssm.activations import silu, silu_vjp
from refssm.conformance.gauges.linalg import TRANSFORMS
from refssm.conformance.gauges.tracked import Tracked
from refssm.convolution.short import SHORT_CONVOLUTION, SHORT_CONVOLUTION_STATEFUL


class Transformed:
    """`short_convolution` and `causal_conv1d`, from rest and from a state, as if by transforms."""

    def plain(self, u, k):
        return _spread(SHORT_CONVOLUTION.reference(u, k), u, k)

    def plain_vjp(self, dy, u, k):
        du, dk = SHORT_CONVOLUTION.bare_vjp(dy, u, k)
        return _spread(du, dy, k), _spread(dk, dy, u)

    def stateful(self, u, k, s0):
        y, s = SHORT_CONVOLUTION_STATEFUL.reference(u, k, s0)
        return _spread(y, _joined(s0, u), k), s

    def stateful_vjp(self, dy, ds, u, k, s0):
        du, dk, ds0 = SHORT_CONVOLUTION_STATEFUL.bare_vjp(dy, ds, u, k, s0)
        return _spread(du, dy, k), _spread(dk, dy, _joined(s0, u)), _spread(ds0, dy, k)

    def activated(self, u, k, bias):
        return silu(self.plain(u, k) + bias[..., None])

    def activated_vjp(self, dy, u, k, bias):
        g = silu_vjp(dy, self.plain(u, k) + bias[..., None])
        return *self.plain_vjp(g, u, k), unbroadcast(g.sum(-1), bias)

    def activated_stateful(self, u, k, bias, s0):
        y, s = self.stateful(u, k, s0)
        y = silu(y + bias[..., None])
        return y, with_batch(s, 1, y.shape[:-1])

    def activated_stateful_vjp(self, dy, ds, u, k, bias, s0):
        g = silu_vjp(dy, self.stateful(u, k, s0)[0] + bias[..., None])
        du, dk, ds0 = self.stateful_vjp(g, ds, u, k, s0)
        return du, dk, unbroadcast(g.sum(-1), bias), ds0


def _joined(s0, u):
    """The inputs before the first step and the others, as plain arrays."""
    s0, u = _values(s0), _values(u)
    batch = np.broadcast_shapes(s0.shape[:-1], u.shape[:-1])
    return np.concatenate([np.broadcast_to(x, (*batch, x.shape[-1])) for x in (s0, u)], axis=-1)


def _spread(y, x, other):
    """y with the errors of a transform of two rows: ‖x‖₂ ‖other‖₂ for each entry."""
    if not isinstance(y, Tracked):
        return y
    x, other = _values(x), _values(other)
    length = max(1, x.shape[-1], other.shape[-1])
    sizes = np.linalg.norm(x, axis=-1) * np.linalg.norm(other, axis=-1)
    made = TRANSFORMS * np.sqrt(np.log2(2 * length)) * sizes
    (made,) = unbroadcast_each((made[..., None],), (np.empty((*y.shape[:-1], 1)),))
    return Tracked(y.value, y.errors + made[..., None], y.parts)


def _values(x):
    return x.value if isinstance(x, Tracked) else x
