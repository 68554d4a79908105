"""Arguments made from another argument: the right factors of a low-rank part from the left ones."""

import numpy as np

from refssm.conformance.number_types import NumberType


def following(leader, factors, kind: NumberType) -> np.ndarray:
    """Each column of `leader` times the first entry of the same column of `factors`, rounded.

    Where `factors` lacks a batch axis of `leader`, the first member of that axis is used.
    """
    missing = leader.ndim - factors.ndim
    own = leader[(0,) * missing] if missing > 0 else leader[(None,) * -missing]
    own = own[tuple(slice(n) if n == 1 else slice(None) for n in factors.shape[:-2])]
    product = own.astype(np.result_type(own, np.float64)) * factors[..., :1, :]
    return kind.rounded(product, real=not np.iscomplexobj(product))
