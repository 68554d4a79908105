"""Linear attention with gates and delta rules: recurrences whose state maps keys to values.

    S_t = M_t S_{t-1} + β_t k_t v_tᵀ,    y_t = S_tᵀ q_t

Read `gated_linear` (M is a diagonal matrix of gates), `delta` (M = I − β k kᵀ), then `gated_delta`
and `kimi`, which have both, and `delta_dplr`, which is RWKV-7; `rwkv6` is `gated_linear`, but reads
before it writes. `chunked`, `rwkv6_chunked` and `delta_dplr_chunked` have the same by chunks,
`stages` and `stages_keyed` what a chunk is made of, `gates` what makes log_g and β.
The tests check that each agrees with the others where they are equal.
"""

from refssm._declaration.names import export
from refssm.linear_attention.chunked import *
from refssm.linear_attention.delta import *
from refssm.linear_attention.delta_dplr import *
from refssm.linear_attention.delta_dplr_chunked import *
from refssm.linear_attention.gated_delta import *
from refssm.linear_attention.gated_linear import *
from refssm.linear_attention.gates import *
from refssm.linear_attention.kimi import *
from refssm.linear_attention.rwkv6 import *
from refssm.linear_attention.rwkv6_chunked import *
from refssm.linear_attention.stages import *
from refssm.linear_attention.stages_keyed import *

export(globals())
