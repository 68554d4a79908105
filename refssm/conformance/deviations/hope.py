"""Planted bugs in HOPE's transfer function and kernels, in files of their own."""

from refssm.conformance.deviations.hope_kernel import DEVIATIONS as KERNELS
from refssm.conformance.deviations.hope_transfer import DEVIATIONS as TRANSFER

DEVIATIONS = [*TRANSFER, *KERNELS]
