"""Planted bugs in impulse responses and their gradients."""

import numpy as np

from refssm.conformance.planted.planting import Planting, of_each_result, of_result
from refssm.response import IMPULSE_RESPONSE

RESPONSE = Planting(IMPULSE_RESPONSE, "complex64")
RESPONSE.plant(
    ("sign", "e^(−w t)", {"w": np.negative}),
    ("conjugate", "w* for w", {"w": np.conj}),
    ("doubled", "the factor 2 of pairs", of_result(lambda y: 2 * y)),
)
RESPONSE.plant(("as_jax", "the conjugate convention", of_each_result(np.conj)), by="gradient")

BUGS = RESPONSE.bugs
