"""Cascade pruning of steps and heads, layer after layer, by what was attended to [wang2021spatten].

    importance of step j  += Σ_heads Σ_i w_ij      of head g  += Σ_i Σ |y_gi|

After each layer only the most important steps, and the most important heads, go on; what is pruned
in one layer is in no later one. The masks are those that attention takes: a step with the mask 0
has the weight 0, as if it were not there.
"""

import numpy as np


def step_importance(w):
    """Σ over heads and queries of the weights (…, g, l, m): the importance of m steps, (…, m)."""
    return np.asarray(w).sum((-3, -2))


def head_importance(y):
    """Σ |y| over steps and channels of the outputs (…, g, l, p) of g heads: (…, g)."""
    return np.abs(y).sum((-2, -1))


def pruned(importance, there, keep):
    """The `keep` most important of those that are still there: a mask like `there`, (…, m).

    `importance` (…, m) is the sum over all layers so far, `there` the mask of the layer before; of
    equal ones the first stays. A mask of fewer than `keep` stays as it is.

    Raises ValueError if `keep` is below 1, or for shapes that differ.

    >>> import numpy as np
    >>> pruned(np.array([3.0, 9.0, 1.0, 3.0]), np.array([True, False, True, True]), 2)
    array([ True, False, False,  True])
    """
    importance, there = np.asarray(importance), np.asarray(there, bool)
    if importance.shape != there.shape:
        told = f"`there` must have the shape {importance.shape} of `importance`, got {there.shape}"
        raise ValueError(f"pruned: {told}")
    if not keep >= 1:
        raise ValueError(f"pruned: `keep` must be at least 1, got {keep}")
    order = np.argsort(np.where(there, -importance, np.inf), axis=-1, kind="stable")
    place = np.argsort(order, axis=-1)  # 0 for the most important
    return there & (place < keep)
