"""Planted bugs in the gradients of RWKV-6."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.linear_attention.rwkv6 import programs
from refssm.conformance.planted.linear_attention.rwkv6.formula import PACKED, PLAIN, STATEFUL, STEP
from refssm.conformance.planted.linear_attention.rwkv6.programs import but_for, in_place_of
from refssm.conformance.planted.planting import InEach
from refssm.conformance.planted.scan.pieces import in_sequences
from refssm.linear_attention.rwkv6 import RWKV6_PACKED_STATEFUL

SEQUENCES = (RWKV6_PACKED_STATEFUL,)  # each with a state


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


def _of_first_member(p):
    """du of the first member of the batch, not of their sum."""
    du = p.found["u"]
    member = np.arange(du.shape[0]).reshape(-1, *(1,) * (du.ndim - 1)) if du.ndim > 3 else 0
    return np.where(member == 0, du, 0)


def _summed_over_time(terms):
    return terms.sum((-1, -3))


def _resets_forgotten(right, dy, dS, g):
    """What is carried back crosses resets."""
    found = right(dy, dS, g.but(resets=np.zeros_like(g.resets)))
    return right(dy, dS, g) | {name: found[name] for name in ("k", "v")}


# planted in the form by chunks, too
OF_BONUS = [
    ("du_missing", "du = 0", {"u": _zero}),
    ("dk_without_bonus", "dk = G v: not through u k vᵀ",
     in_place_of("k", lambda p: np.einsum("...np,...p->...n", p.G, p.g.v))),
    ("dv_without_bonus", "dv = Gᵀ k: not through u k vᵀ",
     in_place_of("v", lambda p: np.einsum("...np,...n->...p", p.G, p.g.k))),
    ("dr_without_bonus", "dr = S dy: not through u k vᵀ",
     in_place_of("r", lambda p: np.einsum("...np,...p->...n", p.S, p.dy))),
]  # fmt: skip
CARRY = "the carry taken as a constant: no gradient from one step to the one before"
GRADIENTS = InEach(in_sequences(programs.in_gradient_form))
GRADIENTS.plant(
    *((PLAIN + STATEFUL + STEP, *row) for row in OF_BONUS),
    (PLAIN + STATEFUL + PACKED + SEQUENCES, "carry_constant", CARRY,
     but_for(carry=lambda G, t: 0 * G)),
    (STATEFUL + SEQUENCES, "carry_constant_but_first", CARRY,
     but_for(carry=lambda G, t: G * (t == 0))),
    (PLAIN, "du_of_last_step", "du of the last step, not the sum over time",
     in_place_of("u", lambda p: (p.new * p.R)[..., -1, :, :].sum(-1))),
    (PLAIN + STATEFUL, "du_of_first_in_batch", "du of the first member, not summed over the batch",
     in_place_of("u", _of_first_member)),
    (PLAIN + STEP, "du_without_key", "du = Σ r (v · dy): without k",
     in_place_of("u", lambda p: _summed_over_time(p.g.v[..., None, :] * p.R))),
    (PLAIN, "du_in_bfloat16", "du rounded to bfloat16", {"u": bfloat16}),
    (PLAIN + STEP, "dr_of_state_after", "dr_t with S_t, as of gated linear attention",
     in_place_of("r", lambda p: np.einsum("...np,...p->...n", p.a * p.S + p.new, p.dy))),
    (PLAIN + STATEFUL, "dlog_w_with_own_output", "dlog_w also from y of its own step, which reads "
     "before the decay", in_place_of("log_w", lambda p: (p.a * p.S * (p.G + p.R)).sum(-1))),
    (PLAIN + STATEFUL, "dlog_w_of_new_state", "the state after the step for the decayed one",
     in_place_of("log_w", lambda p: ((p.a * p.S + p.new) * p.G).sum(-1))),
    (PLAIN, "dlog_w_late", "the state one step too late: S_t for S_{t−1}",
     in_place_of("log_w", lambda p: (p.a * (p.a * p.S + p.new) * p.G).sum(-1))),
    (PLAIN + STATEFUL, "da_for_dlog_w", "the derivative by the decay, not by its logarithm",
     in_place_of("log_w", lambda p: (p.S * p.G).sum(-1))),
    (PLAIN + STATEFUL, "dlog_w_missing", "dlog_w = 0", {"log_w": _zero}),
    (PLAIN, "dlog_w_of_last_value", "the last value's part, not the sum",
     in_place_of("log_w", lambda p: (p.a * p.S * p.G)[..., -1])),
    (PLAIN, "carried_without_gate", "the cotangent is carried back without its decay",
     but_for(back=lambda now, R, G: R + G)),
    (PLAIN, "carried_read_decayed", "what r reads decays on its way back",
     but_for(back=lambda now, R, G: now.a * (R + G))),
    (PLAIN + STATEFUL, "carried_with_bonus", "u on what r reads of the state",
     but_for(back=lambda now, R, G: now.u * R + now.a * G)),
    (PLAIN, "dr_of_first_head", "dr of the first head of a group", _of_first_head("r")),
    (PLAIN, "dk_of_first_head", "dk of the first head of a group", _of_first_head("k")),
    (PLAIN, "dv_local", "dv_t of y_t alone",
     in_place_of("v", lambda p: np.einsum("...np,...n->...p", p.u * p.R, p.g.k))),
    (PLAIN, "dr_in_float16", "dr rounded to float16", {"r": float16}),
    (PLAIN, "dlog_w_in_bfloat16", "dlog_w rounded to bfloat16", {"log_w": bfloat16}),
    (PLAIN, "carry_in_bfloat16", "the state's cotangent kept in bfloat16",
     but_for(carry=lambda G, t: bfloat16(G))),
    (PLAIN, "carry_lost_64", "the cotangent lost at blocks of 64",
     but_for(carry=lambda G, t: G * (t % 64 != 0))),
    (STATEFUL, "dS0_missing", "dS0 = 0", {"S0": _zero}),
    (STATEFUL, "dS0_without_first_read", "dS0 = e^log_w G: not through what the first step reads",
     lambda right, dy, dS, g: right(dy, dS, g) | {"S0": right(dy, dS, g, back=lambda now, R, G: (
         now.a * G if now.first else R + now.a * G))["S0"]}),
    (STATEFUL, "dS_dropped", "the last state has no gradient", {"dS": _zero}),
    (STATEFUL, "S0_forgotten", "the states computed again as if S0 were 0",
     lambda right, dy, dS, g: right(dy, dS, g.but(S0=0 * g.S0))),
    (PACKED, "resets_forgotten", "what is carried back crosses resets", _resets_forgotten),
    by="gradient",
)  # fmt: skip
