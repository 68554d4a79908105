"""Arguments made from another one: the right factors of a low-rank part from the left."""

import numpy as np

from refssm.conformance.number_types import NumberType


def following(leader, factors, kind: NumberType) -> np.ndarray:
    """The columns of another argument, each times the first factor of its column, rounded.

    Where a batch axis of the other is missing here, those of its first member.
    """
    missing = leader.ndim - factors.ndim
    own = leader[(0,) * missing] if missing > 0 else leader[(None,) * -missing]
    own = own[tuple(slice(n) if n == 1 else slice(None) for n in factors.shape[:-2])]
    product = own.astype(np.result_type(own, np.float64)) * factors[..., :1, :]
    return kind.rounded(product, real=not np.iscomplexobj(product))
