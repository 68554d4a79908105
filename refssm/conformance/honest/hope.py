"""Honest HOPE: transfer functions and kernels, each in a file of its own."""

from refssm.conformance.honest.hope_kernel import IMPLEMENTATIONS as KERNELS
from refssm.conformance.honest.hope_transfer import IMPLEMENTATIONS as TRANSFER

IMPLEMENTATIONS = [*TRANSFER, *KERNELS]
