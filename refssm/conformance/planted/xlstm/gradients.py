"""Planted bugs in the gradients of mLSTM."""

import numpy as np

from refssm.conformance.planted.arithmetic import float16
from refssm.conformance.planted.planting import InEach
from refssm.conformance.planted.scan.pieces import in_sequences
from refssm.conformance.planted.xlstm import programs
from refssm.conformance.planted.xlstm.formula import PACKED, PLAIN, SEQUENCES, STATEFUL, STEP
from refssm.conformance.planted.xlstm.programs import but_for, in_place_of
from refssm.conformance.planted.xlstm.through_m import constant_in

ALL = PLAIN + STATEFUL + PACKED + SEQUENCES


def _zero(g):
    """Zeros, except where there is NaN."""
    return 0 * g


def _of_S(now):
    """What S alone gives for log_f."""
    return np.where(now.resets, 0, (now.S_before * now.dS).sum((-1, -2)))


def _keys_of_S(now):
    """dk through S alone."""
    return now.g[..., None] * np.einsum("...np,...p->...n", now.G, now.v)


def _lost_at(size):
    return but_for(back=lambda now: (now.dS * (now.t % size != 0), now.ds * (now.t % size != 0)))


def _resets_forgotten(right, cotangents, g):
    """What is carried back crosses resets."""
    found = right(cotangents, g.but(resets=np.zeros_like(g.resets)))
    return right(cotangents, g) | {name: found[name] for name in ("k", "v")}


GRADIENTS = InEach(in_sequences(programs.in_gradient_form))
GRADIENTS.plant(
    *((ALL, *row) for row in (
        ("carry_constant",
         "the carry taken as a constant: no gradient from one step to the one before",
         but_for(back=lambda now: (0 * now.dS, 0 * now.ds))),
        ("normaliser_constant", "the denominator taken as a constant",
         but_for(denominator=lambda dd, now: 0 * dd)),
        ("normaliser_carry_constant", "no gradient from s to the step before",
         but_for(back=lambda now: (now.dS, 0 * now.ds))),
    )),
    (PLAIN + STEP, "normaliser_sign_missing", "d|sᵀ q| without its sign",
     but_for(sign=lambda a: np.sign(np.abs(a)))),
    (PLAIN + STEP, "normaliser_positive", "+ dy·y/d for the gradient of the denominator",
     but_for(denominator=lambda dd, now: -dd)),
    (PLAIN + STEP, "dq_without_normaliser", "dq = S dy/d: not through sᵀ q", in_place_of(
        "q", lambda now: np.einsum("...np,...p->...n", now.S, now.dnum))),
    (PLAIN + STEP, "dk_without_normaliser", "dk through S alone, not through s",
     in_place_of("k", _keys_of_S)),
    (PLAIN + STEP, "di_without_normaliser", "di through S alone, not through s", in_place_of(
        "i", lambda now: (now.k * _keys_of_S(now)).sum(-1))),
    (PLAIN + STATEFUL + STEP, "dlog_f_without_normaliser", "dlog_f through S alone",
     in_place_of("log_f", _of_S)),
    (PLAIN, "dlog_f_of_state_after", "dlog_f with the state after the step", in_place_of(
        "log_f", lambda now: (now.S * now.G).sum((-1, -2)) + (now.s * now.h).sum(-1))),
    (PLAIN + STEP, "di_not_through_exponential", "di = Σ k·dk e^{−i}: e^i missing", in_place_of(
        "i", lambda now: now.found["i"] * np.exp(-now.i))),
    (PLAIN, "dv_local", "dv_t of y_t alone", in_place_of(
        "v", lambda now: now.g[..., None] * now.dnum * (now.q * now.k).sum(-1, keepdims=True))),
    (PLAIN, "dq_of_state_before", "dq_t with the state before step t", in_place_of(
        "q", lambda now: np.einsum("...np,...p->...n", now.f[..., None, None] * now.S_before,
                                   now.dnum)
        + now.f[..., None] * now.s_before * now.da[..., None])),
    (PLAIN, "carry_lost_64", "the cotangents lost at blocks of 64", _lost_at(64)),
    (PLAIN, "dq_in_float16", "dq rounded to float16", {"q": float16}),
    (PLAIN, "dlog_f_in_float16", "dlog_f rounded to float16", {"log_f": float16}),
    *((PLAIN + STATEFUL + STEP, *row) for row in (
        ("m_constant_in_forget_gate",
         "a gradient through m, but not through that of e^{log_f + m − m'}", constant_in("forget")),
        ("m_constant_in_input_gate",
         "a gradient through m, but not through that of e^{i − m'}", constant_in("input")),
        ("m_constant_in_floor",
         "a gradient through m, but not through that of e^{−m}", constant_in("floor")),
    )),
    (STATEFUL, "dS0_missing", "dS0 = 0", {"S0": _zero}),
    (STATEFUL, "ds0_missing", "ds0 = 0", {"s0": _zero}),
    (STATEFUL, "dm0_missing", "dm0 = 0", {"m0": _zero}),
    (STATEFUL, "dS_dropped", "the last S has no gradient", {"dS": _zero}),
    (STATEFUL, "ds_dropped", "the last s has no gradient", {"ds": _zero}),
    (STATEFUL, "S0_forgotten", "the states computed again as if S0 were 0",
     lambda right, cotangents, g: right(cotangents, g.but(S0=0 * g.S0))),
    (STATEFUL, "m0_forgotten", "the states computed again as if m0 were 0",
     lambda right, cotangents, g: right(cotangents, g.but(m0=0 * g.m0))),
    (PACKED, "resets_forgotten", "what is carried back crosses resets", _resets_forgotten),
    by="gradient",
)  # fmt: skip
