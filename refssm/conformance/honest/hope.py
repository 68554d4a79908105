"""Honest HOPE operators: collected from the files of its forms."""

from refssm.conformance.honest.hope_kernel import IMPLEMENTATIONS as KERNELS
from refssm.conformance.honest.hope_recency import IMPLEMENTATIONS as RECENCY
from refssm.conformance.honest.hope_stream import IMPLEMENTATIONS as STREAM
from refssm.conformance.honest.hope_transfer import IMPLEMENTATIONS as TRANSFER

IMPLEMENTATIONS = [*TRANSFER, *KERNELS, *STREAM, *RECENCY]
