"""The inverse of NumPy broadcasting, for cotangents (every VJP uses it), and axes from the end."""

import numpy as np


def unbroadcast(cotangent, primal):
    """Sum `cotangent` over the broadcast axes of `primal`; real for a real `primal`."""
    extra = cotangent.ndim - primal.ndim
    stretched = (i for i, n in enumerate(primal.shape) if n == 1 != cotangent.shape[extra + i])
    axes = (*range(extra), *(extra + i for i in stretched))
    summed = np.sum(cotangent, axis=axes, keepdims=True) if axes else cotangent
    folded = np.reshape(summed, primal.shape)
    if not np.iscomplexobj(primal):
        return np.real(folded)
    return folded.astype(np.result_type(folded, np.complex64), copy=False)


def unbroadcast_each(cotangents, primals):
    """`unbroadcast` each cotangent to the shape of its argument."""
    return tuple(unbroadcast(g, x) for g, x in zip(cotangents, primals, strict=True))


def with_batch(x, core: int, batch):
    """A writable copy of `x` with leading axes `batch`; its last `core` axes stay."""
    return np.broadcast_to(x, (*batch, *x.shape[x.ndim - core :])).copy()


def at(array, index, axis: int):
    """The array at an index, a slice or None (a new axis) of one axis, counted from the end."""
    return array[(..., index, *[slice(None)] * (-axis - 1))]
