"""Honest HOPE operators: collected from the files of its forms."""

from refssm.conformance.honest.hope.kernel import IMPLEMENTATIONS as KERNELS
from refssm.conformance.honest.hope.recency import IMPLEMENTATIONS as RECENCY
from refssm.conformance.honest.hope.stream import IMPLEMENTATIONS as STREAM
from refssm.conformance.honest.hope.transfer import IMPLEMENTATIONS as TRANSFER

IMPLEMENTATIONS = [*TRANSFER, *KERNELS, *STREAM, *RECENCY]
