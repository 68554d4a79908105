"""CuPy mirror of refssm.hope.kernel: what the stream answers to an impulse.

The response is infinitely long, so no transform of samples of its spectrum gives its first l steps.
The pipeline of the stream takes n + l ticks, in double precision.
"""

import numpy as np

from refssm.hope import HOPE_KERNEL
from refssm_gpu._launching.arrays import common, namespace, unbroadcast_and_round, widened
from refssm_gpu._launching.checked import mirror
from refssm_gpu.hope.stream import gathered, streamed


def _impulse(l, like):
    """1, 0, 0, …"""
    return (namespace(like).arange(l) == 0).astype(np.float64)


@mirror(HOPE_KERNEL)
def hope_kernel(h, dt, *, l):
    """Computed in double precision and rounded once."""
    wide, step = widened(h, dt)
    K, _ = streamed(wide, step, _impulse(l, h))
    return K.astype(common(h, dt), copy=False)


@mirror(HOPE_KERNEL)
def hope_kernel_vjp(dk, h, dt, *, l):
    """The gradient of a stream, but for its input."""
    wide_dk, wide, step = widened(dk, h, dt)
    dh, slope, _ = gathered(wide_dk, wide, step, _impulse(l, h))
    return unbroadcast_and_round((dh, slope / (2 * step)), (h, dt))
