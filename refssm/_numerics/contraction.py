"""`numpy.einsum` for arrays that may be empty."""

from typing import Any

import numpy as np


def einsum(formula: str, *operands) -> Any:
    """As `numpy.einsum`, with "->".

    NumPy 2.4.6 writes one number into some empty results, and a long double complex number is
    larger than the memory there (docs/findings.md). A sum over no terms is 0.
    """
    for a in operands:  # no generator: a reference asks once a step
        if isinstance(a, np.ndarray) and not a.size:
            break
    else:
        return np.einsum(formula, *operands)
    given, wanted = formula.replace(" ", "").split("->")
    sizes, batch = {}, ()
    for term, a in zip(given.split(","), operands, strict=True):
        core = term.removeprefix("...")
        cut = a.ndim - len(core)
        for letter, size in zip(core, a.shape[cut:], strict=True):
            sizes[letter] = size if sizes.get(letter, 1) == 1 else sizes[letter]
        batch = np.broadcast_shapes(batch, a.shape[:cut])
    shape = (*batch, *(sizes[letter] for letter in wanted.removeprefix("...")))
    return np.zeros(shape, np.result_type(*operands))
