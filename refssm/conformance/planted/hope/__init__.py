"""Planted bugs in HOPE operators: collected from the files of its forms."""

from refssm.conformance.planted.hope.kernel import DEVIATIONS as KERNELS
from refssm.conformance.planted.hope.recency import DEVIATIONS as RECENCY
from refssm.conformance.planted.hope.stream import DEVIATIONS as STREAM
from refssm.conformance.planted.hope.transfer import DEVIATIONS as TRANSFER

DEVIATIONS = [*TRANSFER, *KERNELS, *STREAM, *RECENCY]
