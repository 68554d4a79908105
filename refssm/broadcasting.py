"""The one inverse of NumPy broadcasting, used by every VJP."""

import numpy as np


def unbroadcast(cotangent, primal):
    """Sum `cotangent` over the axes along which `primal` was broadcast; real where it is real."""
    extra = cotangent.ndim - primal.ndim
    stretched = (i for i, n in enumerate(primal.shape) if n == 1 != cotangent.shape[extra + i])
    axes = (*range(extra), *(extra + i for i in stretched))
    summed = np.sum(cotangent, axis=axes, keepdims=True) if axes else cotangent
    folded = np.reshape(summed, primal.shape)
    return folded if np.iscomplexobj(primal) else np.real(folded)
