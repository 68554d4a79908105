"""Honest implementations of the family `linear_attention`."""

from honest.libraries import in_libraries
from honest.linear_attention.chunked import IMPLEMENTATIONS as CHUNKED
from honest.linear_attention.gates import IMPLEMENTATIONS as GATES
from honest.linear_attention.low_rank import IMPLEMENTATIONS as LOW_RANK
from honest.linear_attention.programs import IMPLEMENTATIONS as SCANS
from honest.linear_attention.rwkv6 import IMPLEMENTATIONS as RWKV6
from honest.linear_attention.stages import IMPLEMENTATIONS as STAGES
from honest.recurrences import forms_of
from refssm.conformance.planted.linear_attention.forms import RECURRENCES
from refssm.linear_attention.delta_dplr import DELTA_DPLR_RULE

OF_PIECES = [honest for r in (*RECURRENCES, DELTA_DPLR_RULE) for honest in forms_of(r)]
IN_LIBRARIES = [
    "gated_linear_recurrence_chunked",
    "delta_rule_chunked",
    "gated_delta_rule_chunked",
    "kimi_delta_rule_chunked",
    "rwkv6_chunked",
    "gated_delta_step",
    "kimi_delta_step",
    "delta_dplr_step",
]
PEERS = in_libraries("recurrences", IN_LIBRARIES)
IMPLEMENTATIONS = [*SCANS, *LOW_RANK, *CHUNKED, *STAGES, *GATES, *OF_PIECES, *RWKV6, *PEERS]
