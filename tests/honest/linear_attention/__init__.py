"""Honest implementations of the family `linear_attention`."""

from honest.linear_attention.chunked import IMPLEMENTATIONS as CHUNKED
from honest.linear_attention.gates import IMPLEMENTATIONS as GATES
from honest.linear_attention.programs import IMPLEMENTATIONS as SCANS
from honest.recurrences import forms_of
from refssm.conformance.planted.linear_attention.forms import RECURRENCES

OF_PIECES = [honest for r in RECURRENCES for honest in forms_of(r)]
IMPLEMENTATIONS = [*SCANS, *CHUNKED, *GATES, *OF_PIECES]
