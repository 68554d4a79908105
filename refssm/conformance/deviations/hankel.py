"""Planted bugs of the Hankel family."""

from refssm.conformance.deviations.hankel_dense import DENSE
from refssm.conformance.deviations.hankel_singular import SINGULAR

DEVIATIONS = [*DENSE, *SINGULAR]
