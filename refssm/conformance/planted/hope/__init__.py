"""Planted bugs in HOPE operators: collected from the files of its forms."""

from refssm.conformance.planted.hope import kernel, recency, stream, transfer

BUGS = [
    *transfer.TRANSFER.bugs,
    *kernel.WHOLE.bugs,
    *kernel.ALIASED.bugs,
    *stream.BUGS,
    *recency.BUGS,
]
