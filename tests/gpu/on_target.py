"""Arrays for the mirrors, from NumPy's and back: CuPy arrays on a card, NumPy's on the host."""

from typing import Any

import numpy as np

from refssm_gpu._launching.arrays import made_here, namespace


def given(*arrays):
    """The arrays where the mirrors take them."""
    xp = namespace(made_here())
    return tuple(xp.asarray(x) for x in arrays)


def taken(y) -> Any:
    """An output as a NumPy array; a tuple of them for several outputs."""
    if isinstance(y, tuple):
        return tuple(map(taken, y))
    return y if y is None or isinstance(y, np.ndarray) else y.get()
