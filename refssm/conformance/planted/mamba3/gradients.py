"""Planted bugs in the gradients of Mamba-3."""

import numpy as np

from refssm.conformance.planted.arithmetic import float16
from refssm.conformance.planted.mamba3 import programs
from refssm.conformance.planted.mamba3.formula import PACKED, PLAIN, SEQUENCES, STATEFUL, STEP
from refssm.conformance.planted.mamba3.programs import but_for, in_place_of, moment, share
from refssm.conformance.planted.planting import InEach
from refssm.conformance.planted.scan.pieces import in_sequences

ALL = PLAIN + STATEFUL + PACKED + SEQUENCES


def _zero(g):
    """Zeros, except where there is NaN."""
    return 0 * g


def _without(*parts):
    """Nothing carried back through some parts of the state."""

    def back(now):
        pairs = zip(programs.PARTS, now.carried, strict=True)
        return [0 * x if name in parts else x for name, x in pairs]

    return but_for(back=back)


def _lost_at(size):
    return but_for(back=lambda now: [x * (now.t % size != 0) for x in now.carried])


def _resets_forgotten(right, cotangents, g):
    """What is carried back crosses resets."""
    found = right(cotangents, g.but(resets=np.zeros_like(g.resets)))
    return right(cotangents, g) | {name: found[name] for name in ("k", "v")}


def _of_own(now):
    """dφ of this step alone."""
    return moment(now.q_t, now.dq_t) + moment(now.k_t, now.dk_t)


def _slope(now, dphase):
    t = np.tanh(now.angles)
    return now.angles.dtype.type(np.pi) * (1 - t * t) * now.dt[..., None] * dphase


def _of_turning(now):
    """What the angles give for dt."""
    return now.angles.dtype.type(np.pi) * (np.tanh(now.angles) * now.dphase).sum(-1)


GRADIENTS = InEach(in_sequences(programs.in_gradient_form))
GRADIENTS.plant(
    *((ALL, *row) for row in (
        ("carry_constant", "the carry taken as a constant: no gradient to the step before",
         _without(*programs.PARTS)),
        ("last_pair_constant", "the last key and value taken as constants",
         _without("key", "value")),
        ("phase_carry_constant", "no gradient from the sum of angles to the step before",
         _without("phase")),
    )),
    (PLAIN + STATEFUL, "key_carry_constant", "the last key taken as a constant", _without("key")),
    (PLAIN + STATEFUL, "value_carry_constant", "the last value taken as a constant",
     _without("value")),
    (PLAIN + STEP, "dangles_of_keys", "the angle's gradient through k alone, not through q",
     in_place_of("angles", lambda now: _slope(now, now.dphase - moment(now.q_t, now.dq_t)))),
    (PLAIN, "dangles_local", "dangles of this step's q and k alone",
     in_place_of("angles", lambda now: _slope(now, _of_own(now)))),
    (PLAIN + STEP, "dangles_without_tanh", "the slope of tanh taken as 1", in_place_of(
        "angles", lambda now: now.angles.dtype.type(np.pi) * now.dt[..., None] * now.dphase)),
    (PLAIN + STEP, "moment_sign", "the angle's gradient with the other sign",
     but_for(moment=lambda x, dx: -moment(x, dx))),
    (PLAIN + STEP, "ddt_without_angles", "ddt without that of the angles",
     in_place_of("dt", lambda now: now.found["dt"] - _of_turning(now))),
    (PLAIN + STEP, "ddt_of_angles_alone", "ddt of the angles alone",
     in_place_of("dt", _of_turning)),
    (PLAIN + STATEFUL + STEP, "ddt_without_before", "ddt without that of β", in_place_of(
        "dt", lambda now: now.found["dt"] - (1 - share(now.trap)) * now.a * now.b)),
    (PLAIN + STATEFUL + STEP, "dlog_g_without_before", "dlog_g without that of β", in_place_of(
        "log_g", lambda now: now.found["log_g"] - np.where(now.resets, 0, now.before * now.b))),
    (PLAIN + STATEFUL + STEP, "dtrap_without_before", "dtrap of γ alone, not of β", in_place_of(
        "trap", lambda now: share(now.trap) * (1 - share(now.trap)) * now.dt * now.w)),
    (PLAIN + STEP, "dtrap_not_through_logistic", "dλ for dtrap", in_place_of(
        "trap", lambda now: now.dt * (now.w - now.a * now.b))),
    (PLAIN + STEP, "dq_not_turned_back", "dq' for dq: not turned back",
     in_place_of("q", lambda now: now.dq_t)),
    (PLAIN + STEP, "dk_not_turned_back", "dk' for dk: not turned back",
     in_place_of("k", lambda now: now.dk_t)),
    (PLAIN + STEP, "dq_turned_again", "dq turned once more, not back",
     in_place_of("q", lambda now: programs.rotated(now.dq_t, now.phase))),
    (PLAIN, "carry_lost_64", "the cotangents lost at blocks of 64", _lost_at(64)),
    (PLAIN, "dq_in_float16", "dq rounded to float16", {"q": float16}),
    (PLAIN, "dangles_in_float16", "dangles rounded to float16", {"angles": float16}),
    (STATEFUL, "dphase0_missing", "no gradient for the first angles", {"phase0": _zero}),
    (STATEFUL, "dS0_missing", "dS0 = 0", {"S0": _zero}),
    (STATEFUL, "dkey0_missing", "no gradient for the first key", {"key0": _zero}),
    (STATEFUL, "dvalue0_missing", "no gradient for the first value", {"value0": _zero}),
    (STATEFUL, "dphase_dropped", "the last angles have no gradient", {"dphase": _zero}),
    (STATEFUL, "dS_dropped", "the last S has no gradient", {"dS": _zero}),
    (STATEFUL, "dkey_dropped", "the last key has no gradient", {"dkey": _zero}),
    (STATEFUL, "dvalue_dropped", "the last value has no gradient", {"dvalue": _zero}),
    (STATEFUL, "S0_forgotten", "the states computed again as if S0 were 0",
     lambda right, cotangents, g: right(cotangents, g.but(S0=0 * g.S0))),
    (PACKED, "resets_forgotten", "what is carried back crosses resets", _resets_forgotten),
    by="gradient",
)  # fmt: skip
