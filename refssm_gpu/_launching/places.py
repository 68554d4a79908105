"""Bringing arrays of NumPy to the card, and back."""

from typing import Any

import numpy as np

from refssm_gpu._launching.arrays import Array, made_here, namespace
from refssm_gpu._launching.kernel import on_host
from refssm_gpu._launching.missing import require_card


def placed(x: np.ndarray) -> Array:
    """The array on the current card; in the host build the same array. NoCard says what lacks."""
    if not on_host():
        require_card("a model with the operators of the role gpu")
    return namespace(made_here()).asarray(x)


def fetched(x: Any) -> np.ndarray:
    """A copy in the processor's memory; an array of NumPy as it is."""
    return x if isinstance(x, np.ndarray) else x.get()
