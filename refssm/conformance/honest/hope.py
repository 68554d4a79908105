"""Honest HOPE operators: collected from the files of its forms."""

from refssm.conformance.honest.hope_recency import IMPLEMENTATIONS as RECENCY
from refssm.conformance.honest.hope_stream import IMPLEMENTATIONS as STREAM

IMPLEMENTATIONS = [*STREAM, *RECENCY]
