"""The one inverse of NumPy broadcasting, used by every VJP."""

import numpy as np


def unbroadcast(cotangent, primal):
    """Sum `cotangent` over the axes along which `primal` was broadcast; its kind is `primal`'s."""
    extra = cotangent.ndim - primal.ndim
    stretched = (i for i, n in enumerate(primal.shape) if n == 1 != cotangent.shape[extra + i])
    axes = (*range(extra), *(extra + i for i in stretched))
    summed = np.sum(cotangent, axis=axes, keepdims=True) if axes else cotangent
    folded = np.reshape(summed, primal.shape)
    if not np.iscomplexobj(primal):
        return np.real(folded)
    return folded.astype(np.result_type(folded, np.complex64), copy=False)


def unbroadcast_each(cotangents, primals):
    """`unbroadcast` of each cotangent to the argument it belongs to."""
    return tuple(unbroadcast(g, x) for g, x in zip(cotangents, primals, strict=True))


def with_batch(x, core: int, batch):
    """A copy of `x`, whose last `core` axes are its own, with the leading axes `batch`."""
    return np.broadcast_to(x, (*batch, *x.shape[x.ndim - core :])).copy()
