"""Honest HOPE operators: collected from the files of its forms."""

from honest.hope.kernel import IMPLEMENTATIONS as KERNELS
from honest.hope.recency import IMPLEMENTATIONS as RECENCY
from honest.hope.stream import IMPLEMENTATIONS as STREAM
from honest.hope.transfer import IMPLEMENTATIONS as TRANSFER

IMPLEMENTATIONS = [*TRANSFER, *KERNELS, *STREAM, *RECENCY]
