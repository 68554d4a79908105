"""Planted bugs in HOPE operators: collected from the files of its forms."""

from refssm.conformance.deviations.hope_kernel import DEVIATIONS as KERNELS
from refssm.conformance.deviations.hope_recency import DEVIATIONS as RECENCY
from refssm.conformance.deviations.hope_stream import DEVIATIONS as STREAM
from refssm.conformance.deviations.hope_transfer import DEVIATIONS as TRANSFER

DEVIATIONS = [*TRANSFER, *KERNELS, *STREAM, *RECENCY]
