"""Planted bugs in the gradients of linear attention."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.linear_attention import programs
from refssm.conformance.planted.linear_attention.forms import RECURRENCES, packed, stateful
from refssm.conformance.planted.linear_attention.formula import (
    ALL,
    BOTH,
    BOTH_STEPS,
    GATED,
    KEYED,
    LINEAR,
    OF_HEADS,
    OF_KEYS,
    RULE,
    RULE_STEPS,
    RULES,
)
from refssm.conformance.planted.linear_attention.programs import (
    but_for,
    in_place_of,
    outer,
    recalled,
)
from refssm.conformance.planted.planting import InEach
from refssm.conformance.planted.scan.pieces import in_sequences

STATEFUL, PACKED = (tuple(map(form, RECURRENCES)) for form in (stateful, packed))
SEQUENCES = tuple(recurrence.operators[3] for recurrence in RECURRENCES)  # each with a state


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


def _summed(p, by_key):
    """The gradient of a gate from what it is for each key."""
    return by_key if p.g.log_g.shape[-1] == by_key.shape[-1] else by_key.sum(-1, keepdims=True)


def _back(of):
    """The cotangent of the state before a step, otherwise."""
    return but_for(back=of)


def _resets_forgotten(right, dy, dS, g):
    """What is carried back crosses resets."""
    found = right(dy, dS, g.but(resets=np.zeros_like(g.resets)))
    return right(dy, dS, g) | {name: found[name] for name in ("k", "v")}


CONSTANT = (
    ("carry_constant", "the carry taken as a constant: no gradient from one step to the one before",
     but_for(carry=lambda G, t: 0 * G)),
    ("carry_constant_but_first", "the carry taken as a constant: no gradient from one step to the "
     "one before", but_for(carry=lambda G, t: G * (t == 0))),
)  # fmt: skip
GRADIENTS = InEach(in_sequences(programs.in_gradient_form))
GRADIENTS.plant(
    *((ALL + STATEFUL + PACKED + SEQUENCES, *row) for row in CONSTANT[:1]),
    *((STATEFUL + SEQUENCES, *row) for row in CONSTANT[1:]),
    by="gradient",
)
GRADIENTS.plant(
    (RULES + RULE_STEPS, "dk_without_correction", "dk = β G r: not through Sᵀ k",
     in_place_of("k", lambda p: p.rate * p.by_r)),
    (RULES + RULE_STEPS, "dk_of_correction_only", "dk = −β S w",
     in_place_of("k", lambda p: -p.rate * p.by_w)),
    (RULES, "dk_sign", "dk = β (G r + S w)",
     in_place_of("k", lambda p: p.rate * (p.by_r + p.by_w))),
    (RULES + RULE_STEPS, "dbeta_without_correction", "dβ = v · w: not through Sᵀ k",
     in_place_of("beta", lambda p: (p.g.v * p.w).sum(-1))),
    (RULES + RULE_STEPS, "dv_without_beta", "dv = w", in_place_of("v", lambda p: p.w)),
    (BOTH + BOTH_STEPS, "dlog_g_without_correction", "dlog_g = Σ Z ∘ G: not through the correction",
     in_place_of("log_g", lambda p: _summed(p, (p.Z * p.G).sum(-1)))),
    (GATED, "dlog_g_of_new_state", "the state after the step for the decayed one",
     in_place_of("log_g", lambda p: _summed(p, (p.S * p.dZ).sum(-1)))),
    (GATED, "da_for_dlog_g", "the derivative by the gate, not by its logarithm",
     in_place_of("log_g", lambda p: p.found["log_g"] / np.exp(p.g.log_g))),
    (GATED, "dlog_g_missing", "dlog_g = 0", {"log_g": _zero}),
    (OF_HEADS, "dlog_g_of_last_key", "the last key's part, not the sum",
     in_place_of("log_g", lambda p: (p.Z * p.dZ).sum(-1)[..., -1:])),
    (OF_KEYS, "dlog_g_of_last_value", "the last value's part, not the sum",
     in_place_of("log_g", lambda p: (p.Z * p.dZ)[..., -1])),
    (RULES, "carried_without_correction", "dS = a G: the correction is not carried back",
     _back(lambda now: now.a[..., None] * now.G)),
    (GATED, "carried_without_gate", "the cotangent is carried back without its gate",
     _back(lambda now: now.dZ)),
    (OF_KEYS, "carried_in_wrong_order", "the gate before the correction in what is carried back",
     _back(lambda now: now.a[..., None] * now.G - outer(now.k, now.beta * recalled(
         now.a[..., None] * now.G, now.k)))),
    (ALL, "dq_of_state_before", "dq_t with S_{t-1}", in_place_of(
        "q", lambda p: np.einsum("...np,...p->...n", p.Z, p.dy))),
    (ALL, "dq_of_first_head", "dq of the first head of a group", _of_first_head("q")),
    (ALL, "dk_of_first_head", "dk of the first head of a group", _of_first_head("k")),
    (LINEAR + RULE, "dv_local", "dv_t of y_t alone", in_place_of(
        "v", lambda p: p.rate * p.dy * (p.g.q * p.g.k).sum(-1, keepdims=True))),
    (ALL, "dq_in_float16", "dq rounded to float16", {"q": float16}),
    (KEYED, "dlog_g_in_bfloat16", "dlog_g rounded to bfloat16", {"log_g": bfloat16}),
    (ALL, "carry_lost_64", "the cotangent lost at blocks of 64",
     but_for(carry=lambda G, t: G * (t % 64 != 0))),
    (STATEFUL, "dS0_missing", "dS0 = 0", {"S0": _zero}),
    (STATEFUL, "dS_dropped", "the last state has no gradient", {"dS": _zero}),
    (STATEFUL, "S0_forgotten", "the states computed again as if S0 were 0",
     lambda right, dy, dS, g: right(dy, dS, g.but(S0=0 * g.S0))),
    (PACKED, "resets_forgotten", "what is carried back crosses resets", _resets_forgotten),
    by="gradient",
)  # fmt: skip
