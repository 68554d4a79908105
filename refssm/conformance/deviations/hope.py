"""Planted bugs in HOPE operators: collected from the files of its forms."""

from refssm.conformance.deviations.hope_recency import DEVIATIONS as RECENCY
from refssm.conformance.deviations.hope_stream import DEVIATIONS as STREAM

DEVIATIONS = [*STREAM, *RECENCY]
