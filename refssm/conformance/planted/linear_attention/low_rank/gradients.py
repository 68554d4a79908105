"""Planted bugs in the gradients of delta_dplr."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.linear_attention.low_rank import programs
from refssm.conformance.planted.linear_attention.low_rank.programs import applied, in_place_of
from refssm.conformance.planted.linear_attention.programs import but_for, outer, recalled
from refssm.conformance.planted.planting import InEach
from refssm.conformance.planted.scan.pieces import in_sequences
from refssm.linear_attention.delta_dplr import (
    DELTA_DPLR,
    DELTA_DPLR_PACKED,
    DELTA_DPLR_PACKED_STATEFUL,
    DELTA_DPLR_STATEFUL,
    DELTA_DPLR_STEP,
)
from refssm.linear_attention.delta_dplr_chunked import DELTA_DPLR_BY_CHUNKS

PLAIN, STEP, STATEFUL = (DELTA_DPLR,), (DELTA_DPLR_STEP,), (DELTA_DPLR_STATEFUL,)
PACKED, SEQUENCES = (DELTA_DPLR_PACKED,), (DELTA_DPLR_PACKED_STATEFUL,)
CHUNKED = DELTA_DPLR_BY_CHUNKS.operators


def _zero(g):
    """Zeros, except where there is NaN."""
    return 0 * g


def _of_first_head(name):
    """The gradient from a group's first head in place of the sum over its heads."""

    def first(p):
        gradient = p.found[name]
        head = np.arange(gradient.shape[-3])[:, None, None] if gradient.ndim > 3 else 0
        return np.where(head == 0, gradient, 0)

    return in_place_of(name, first)


def _back(of):
    """The cotangent of the state before a step, otherwise."""
    return but_for(back=of)


def _resets_forgotten(right, dy, dS, g):
    """What is carried back crosses resets."""
    found = right(dy, dS, g.but(resets=np.zeros_like(g.resets)))
    return right(dy, dS, g) | {name: found[name] for name in ("k", "v")}


GRADIENTS = InEach(in_sequences(programs.in_gradient_form))
GRADIENTS.plant(
    (PLAIN + STATEFUL + PACKED + SEQUENCES + CHUNKED, "carry_constant", "the carry taken as a "
     "constant: no gradient from one step to the one before", but_for(carry=lambda G, t: 0 * G)),
    (STATEFUL + SEQUENCES, "carry_constant_but_first", "the carry taken as a constant: no gradient "
     "from one step to the one before", but_for(carry=lambda G, t: G * (t == 0))),
    (PLAIN + STEP, "da_missing", "da = 0", {"a": _zero}),
    (PLAIN + STEP, "db_missing", "db = 0", {"b": _zero}),
    (PLAIN + STEP, "da_sign", "da with the other sign", {"a": np.negative}),
    (PLAIN + STEP, "da_of_decayed", "da = diag(e^g) S w: of the decayed state",
     in_place_of("a", lambda p: p.gate * applied(p.before, p.w))),
    (PLAIN + STEP, "da_of_new_state", "da with S_t for S_{t−1}",
     in_place_of("a", lambda p: applied(p.S, p.w))),
    (PLAIN + STEP, "da_and_db_exchanged", "da and db exchanged",
     lambda right, *args: (lambda found: found | {"a": found["b"], "b": found["a"]})(right(*args))),
    (PLAIN + STEP, "db_of_decayed", "db with aᵀ diag(e^g) S", in_place_of(
        "b", lambda p: applied(p.G, recalled(p.gate[..., None] * p.before, p.g.a)))),
    (PLAIN + STEP, "db_of_new_state", "db with aᵀ S_t",
     in_place_of("b", lambda p: applied(p.G, recalled(p.S, p.g.a)))),
    (PLAIN, "dlog_g_of_new_state", "the state after the step for the decayed one",
     in_place_of("log_g", lambda p: (p.S * p.G).sum(-1))),
    (PLAIN, "dlog_g_through_removal", "the gate's gradient of diag(e^g) S + b (aᵀ S)",
     in_place_of("log_g", lambda p: (
         (p.gate[..., None] * p.before + outer(p.g.b, p.z)) * p.G).sum(-1))),
    (PLAIN, "da_for_dlog_g", "the derivative by the gate, not by its logarithm",
     in_place_of("log_g", lambda p: (p.before * p.G).sum(-1))),
    (PLAIN, "dlog_g_missing", "dlog_g = 0", {"log_g": _zero}),
    (PLAIN, "dlog_g_of_last_value", "the last value's part, not the sum",
     in_place_of("log_g", lambda p: (p.gate[..., None] * p.before * p.G)[..., -1])),
    (PLAIN, "carried_without_removal", "dS = diag(e^g) G: the removal is not carried back",
     _back(lambda now: now.gate[..., None] * now.G)),
    (PLAIN, "carried_with_exchanged", "dS = diag(e^g) G + b (aᵀ G): the matrix, not its transpose",
     _back(lambda now: now.gate[..., None] * now.G + outer(now.b, recalled(now.G, now.a)))),
    (PLAIN, "carried_without_gate", "the cotangent is carried back without its gate",
     _back(lambda now: now.G + outer(now.a, recalled(now.G, now.b)))),
    (PLAIN, "carried_decayed", "dS = diag(e^g) (G + a (bᵀ G)): the gate multiplies both",
     _back(lambda now: now.gate[..., None] * (now.G + outer(now.a, recalled(now.G, now.b))))),
    (PLAIN, "dq_of_state_before", "dq_t with S_{t-1}",
     in_place_of("q", lambda p: applied(p.before, p.dy))),
    (PLAIN, "dq_of_first_head", "dq of the first head of a group", _of_first_head("q")),
    (PLAIN, "dk_of_first_head", "dk of the first head of a group", _of_first_head("k")),
    (PLAIN, "dv_local", "dv_t of y_t alone", in_place_of(
        "v", lambda p: p.dy * (p.g.q * p.g.k).sum(-1, keepdims=True))),
    (PLAIN, "dq_in_float16", "dq rounded to float16", {"q": float16}),
    (PLAIN, "da_in_bfloat16", "da rounded to bfloat16", {"a": bfloat16}),
    (PLAIN, "dlog_g_in_bfloat16", "dlog_g rounded to bfloat16", {"log_g": bfloat16}),
    (PLAIN, "carry_lost_16", "the cotangent lost at blocks of 16",
     but_for(carry=lambda G, t: G * (t % 16 != 0))),
    (PLAIN, "carry_lost_64", "the cotangent lost at blocks of 64",
     but_for(carry=lambda G, t: G * (t % 64 != 0))),
    (STATEFUL, "dS0_missing", "dS0 = 0", {"S0": _zero}),
    (STATEFUL, "dS_dropped", "the last state has no gradient", {"dS": _zero}),
    (STATEFUL, "S0_forgotten", "the states computed again as if S0 were 0",
     lambda right, dy, dS, g: right(dy, dS, g.but(S0=0 * g.S0))),
    (PACKED, "resets_forgotten", "what is carried back crosses resets", _resets_forgotten),
    by="gradient",
)  # fmt: skip
