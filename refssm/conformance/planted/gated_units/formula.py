"""Planted bugs in gated units: decays, roots, gates, candidates, what is kept and carried."""

import numpy as np

from refssm.activations import sigmoid, softplus
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.gated_units.forms import (
    MINIMAL,
    REAL,
    UNSCALED,
    before,
    scanned,
)
from refssm.conformance.planted.gated_units.programs import (
    but_for,
    gated_input,
    in_form,
    left,
    log_decay,
    minimal_parts,
    over,
    positive,
    real_parts,
    root_of,
    whole,
    written,
)
from refssm.conformance.planted.planting import Epsilon, InEach, Planting
from refssm.conformance.planted.recurrences import RESETS, starts
from refssm.conformance.planted.scan.programs import late

REAL_ROWS, MINIMAL_ROWS = (REAL[0], REAL[2]), (MINIMAL[0], MINIMAL[2])  # from rest and packed
REAL_ALL, MINIMAL_ALL = (*REAL, *UNSCALED), MINIMAL
SEQUENCES = (*REAL[:4], *UNSCALED, *MINIMAL[:4])
ALL = (*REAL_ALL, *MINIMAL_ALL)


def _told(s, **changes):
    """The same with other arguments."""
    return s._replace(told={**s.told, **changes})


def _root(function):
    """Another function of log a in place of the root."""
    return but_for(added=lambda s, logs: gated_input(s, logs, function))


def _logs(function):
    """Another logarithm of the decay."""
    return but_for(log_a=function)


def _started(scale):
    """Another input where a sequence begins from rest."""

    def added(s, logs):
        begins = scale(s, logs)
        return np.where(s.rest[..., None], begins, gated_input(s, logs))

    return but_for(added=added)


def _input_late(s, logs):
    """The input of the step before, with this step's root."""
    root = np.where(whole(s), 1, root_of(logs))
    return root * late(s.i * s.u)


def _clipped_root(number):
    return _root(lambda log_a: np.sqrt(np.maximum(-np.expm1(2 * log_a), number)))


def _softened_root(number):
    return _root(lambda log_a: np.sqrt(-np.expm1(2 * log_a) + log_a.dtype.type(number)))


def _lost(size):
    return but_for(carry=lambda x, t: x * (t == 0 or t % size != 0))


ROOTS = [
    ("root_linear", "1 − a for √(1 − a²)", _root(lambda log_a: -np.expm1(log_a))),
    ("root_missing", "no root: a x + i u", _root(np.ones_like)),
    ("square_without_root", "1 − a² for its root", _root(lambda log_a: -np.expm1(2 * log_a))),
    ("root_without_square", "√(1 − a) for √(1 − a²)",
     _root(lambda log_a: np.sqrt(-np.expm1(log_a)))),
    ("root_by_difference", "√(1 − a·a): no digits where a is near 1",
     _root(lambda log_a: np.sqrt(1 - np.exp(log_a) * np.exp(log_a)))),
    ("root_by_difference_of_exponential", "√(1 − e^{2 log a}): no digits where a is near 1",
     _root(lambda log_a: np.sqrt(1 - np.exp(2 * log_a)))),
    ("root_clipped", "√(max(1 − a², 1e-6))", Epsilon(1e-6, _clipped_root)),
    ("root_softened", "√(1 − a² + 1e-8)", Epsilon(1e-8, _softened_root)),
    ("root_of_four", "√(1 − a⁴): the logarithm doubled twice",
     _root(lambda log_a: np.sqrt(-np.expm1(4 * log_a)))),
    ("exchanged", "√(1 − a²) x + a i u: the weights of state and input exchanged", but_for(
        decay=root_of, added=lambda s, logs: np.exp(logs) * (s.i * s.u))),
    ("input_decays", "a (x + √(1 − a²) i u): the input decays, too",
     but_for(added=lambda s, logs: np.exp(logs) * gated_input(s, logs))),
]  # fmt: skip
DECAYS = [
    ("eight_forgotten", "a = e^{−softplus(a_param) r}: no factor 8",
     _logs(lambda s: log_decay(s) / 8)),
    ("softplus_of_minus", "softplus(−a_param) for softplus(a_param)",
     _logs(lambda s: -8 * softplus(-s.a_param) * s.r)),
    ("softplus_missing", "e^{a_param} for softplus(a_param)",
     _logs(lambda s: -8 * np.exp(s.a_param) * s.r)),
    ("sigmoid_for_softplus", "σ(a_param) for softplus(a_param)",
     _logs(lambda s: -8 * sigmoid(s.a_param) * s.r)),
    ("softplus_without_digits", "log(1 + e^{a_param}): no digits below −17",
     _logs(lambda s: -8 * np.log(1 + np.exp(s.a_param)) * s.r)),
    ("gate_missing", "r left out of the decay",
     _logs(lambda s: -8 * softplus(s.a_param) + 0 * s.r)),
    ("gates_exchanged", "r and i exchanged", but_for(
        log_a=lambda s: -8 * softplus(s.a_param) * s.i,
        added=lambda s, logs: gated_input(_told(s, i=s.r), logs))),
    ("input_gate_missing", "√(1 − a²) u: i left out", but_for(
        added=lambda s, logs: gated_input(_told(s, i=np.ones_like(s.i)), logs))),
    ("decay_in_base_two", "2^{log a}", but_for(decay=np.exp2)),
    ("gate_not_exponentiated", "1 + log a for e^{log a}", but_for(decay=lambda logs: 1 + logs)),
]  # fmt: skip
REAL_BUGS = InEach(in_form)
REAL_BUGS.plant(*ROOTS, *DECAYS, of=(*REAL[:3], REAL[4]))
REAL_BUGS.plant(*ROOTS[:6], *DECAYS[:3], *DECAYS[5:8], of=UNSCALED)
REAL_BUGS.plant(
    ("start_unscaled", "1 in place of √(1 − a²) where a sequence begins, as rg_lru_unscaled_start",
     _started(lambda s, logs: s.i * s.u + 0 * logs)),
    of=REAL_ROWS,
)  # fmt: skip
REAL_BUGS.plant(
    ("start_scaled", "√(1 − a²) where a sequence begins, too, as rg_lru",
     _started(lambda s, logs: root_of(logs) * (s.i * s.u))),
    ("start_ungated", "u where a sequence begins: neither root nor i",
     _started(lambda s, logs: s.u + 0 * logs * s.i)),
    of=UNSCALED,
)  # fmt: skip
REAL_BUGS.plant(
    ("start_unscaled_in_first_only", "1 in place of √(1 − a²) at the first step of a row only, not "
     "at resets", but_for(added=lambda s, logs: gated_input(
         s._replace(rest=s.rest & (np.arange(s.rest.shape[-1]) == 0)), logs))),
    ("start_unscaled_at_resets_only",
     "1 in place of √(1 − a²) at resets only, not at the first step",
     but_for(added=lambda s, logs: gated_input(
         s._replace(rest=s.rest & (s.resets != 0)), logs))),
    of=UNSCALED[1:],
)  # fmt: skip
REAL_BUGS.plant(
    ("reset_without_root", "the root left out at resets", _started(
        lambda s, logs: np.where((s.resets != 0)[..., None], s.i * s.u + 0 * logs,
                                 gated_input(s, logs)))),
    of=REAL[2:3],
)  # fmt: skip
REAL_BUGS.plant(
    ("decay_late", "r_{t−1} for r_t", _logs(
        lambda s: -8 * softplus(s.a_param) * np.roll(s.r, 1, axis=-2))),
    ("decay_early", "r_{t+1} for r_t", _logs(
        lambda s: -8 * softplus(s.a_param) * np.roll(s.r, -1, axis=-2))),
    ("input_late", "i_{t−1} u_{t−1} for i_t u_t", but_for(added=_input_late)),
    of=(*REAL[:3], *UNSCALED),
)  # fmt: skip


def _lerp(s):
    """x + z (g(h) − x)."""
    return _by_steps(s, lambda z, g, x: x + z * (g - x))


def _by_steps(s, step):
    z, g = written(s), positive(s.h)
    x = np.broadcast_to(s.start, np.broadcast_shapes(
        z.shape, g.shape, s.start.shape, (*s.rest.shape, 1))).copy()  # fmt: skip
    state = np.zeros_like(x[..., 0, :])
    for t in range(x.shape[-2]):
        begins, rest = s.first[..., t, None], s.rest[..., t, None]
        state = np.where(rest, 0, np.where(begins, s.start[..., t, :], state))
        x[..., t, :] = state = step(z[..., t, :], g[..., t, :], state)
    return x


def _in_logarithms(s):
    """e^{L} Σ e^{log b − L}, without the maximum taken out; a state by log|x|."""
    log_a, log_b = -softplus(s.k), -softplus(-s.k) + np.log(positive(s.h))
    L = np.cumsum(np.where(s.rest[..., None], 0, log_a), axis=-2)
    driven = np.cumsum(np.exp(log_b - L), axis=-2)
    return np.exp(L) * (driven + s.start[..., :1, :])


def _of_state(change):
    """The state where a sequence begins, changed."""
    return over(lambda s: scanned(*minimal_parts(s), s._replace(start=change(s.start))))


def _of(function):
    """Another function of the candidate."""
    return but_for(of=lambda h: function(h).astype(h.dtype))


CANDIDATES = [
    ("tanh", "tanh(h) for g(h)", _of(np.tanh)),
    ("candidate_as_it_is", "h for g(h)", _of(lambda h: h)),
    ("sigmoid_only", "σ(h) also where h ≥ 0", _of(sigmoid)),
    ("half_forgotten", "h where h ≥ 0, without ½", _of(lambda h: np.where(h >= 0, h, sigmoid(h)))),
    ("relu", "max(h, 0) + ½: no σ below 0", _of(lambda h: np.maximum(h, 0) + 0.5)),
    ("half_below", "h + ½ also where h < 0", _of(lambda h: h + 0.5)),
    ("exponential_below", "e^h/2 below 0", _of(lambda h: np.where(h >= 0, h + 0.5, np.exp(h) / 2))),
    ("elu", "elu(h) + 1 for g(h)", _of(lambda h: np.where(h >= 0, h + 1, np.exp(h)))),
    ("softplus", "softplus(h) for g(h)", _of(softplus)),
    ("sides_exchanged", "σ(h) where h ≥ 0, h + ½ below", _of(
        lambda h: np.where(h >= 0, sigmoid(h), h + 0.5))),
]  # fmt: skip
GATES = [
    ("gates_exchanged", "z and 1 − z exchanged", but_for(kept=written, open_=left)),
    ("kept_by_difference", "1 − σ(k): no digits where z is near 1",
     but_for(kept=lambda s: 1 - written(s))),
    ("lerp", "x + z (g(h) − x): no digits of g(h) beside a large x", over(_lerp)),
    ("not_written_by_z", "(1 − z) x + g(h): z left out", but_for(open_=lambda s: 1 + 0 * s.k)),
    ("state_not_closed", "x + z g(h): 1 − z left out", but_for(kept=lambda s: 1 + 0 * s.k)),
    ("gate_before_sigmoid", "k taken for z", but_for(kept=lambda s: 1 - s.k, open_=lambda s: s.k)),
    ("gate_through_tanh", "(1 + tanh k)/2 for σ(k)", but_for(
        kept=lambda s: (1 - np.tanh(s.k)) / 2, open_=lambda s: (1 + np.tanh(s.k)) / 2)),
    ("gate_and_candidate_exchanged", "k and h exchanged", over(lambda s: scanned(*minimal_parts(
        _told(s, k=s.h, h=s.k)), s))),
]  # fmt: skip
MINIMAL_BUGS = InEach(in_form)
MINIMAL_BUGS.plant(*CANDIDATES, *GATES, of=(*MINIMAL[:3], MINIMAL[4]))
MINIMAL_BUGS.plant(
    ("in_logarithms", "e^{log b − Σ log a} without the largest taken out: overflow",
     over(_in_logarithms)),
    ("gate_late", "k_{t−1} for k_t", over(lambda s: scanned(*minimal_parts(
        _told(s, k=np.roll(s.k, 1, axis=-2))), s))),
    ("candidate_late", "h_{t−1} for h_t", over(lambda s: scanned(*minimal_parts(
        _told(s, h=np.roll(s.h, 1, axis=-2))), s))),
    of=MINIMAL[:2],
)  # fmt: skip
MINIMAL_BUGS.plant(
    ("start_through_g", "g(x0) for x0: the state taken for a candidate", _of_state(positive)),
    ("start_positive", "|x0| for x0, as its logarithm needs", _of_state(np.abs)),
    of=(MINIMAL[1], MINIMAL[4]),
)  # fmt: skip

KEPT = InEach(in_form)
KEPT.plant(
    ("state_in_bfloat16", "the state kept in bfloat16", but_for(keep=bfloat16)),
    ("state_in_float16", "the state kept in float16", but_for(keep=float16)),
    of=ALL,
)  # fmt: skip
KEPT.plant(
    ("carry_lost_64", "the state lost at blocks of 64", _lost(64)),
    ("carry_lost_256", "the state lost at blocks of 256", _lost(256)),
    ("exclusive", "x_{t−1} returned for x_t", over(
        lambda s: before(scanned(*(real_parts if "u" in s.told else minimal_parts)(s), s), s))),
    of=(REAL[0], REAL[1], UNSCALED[0], MINIMAL[0], MINIMAL[1]),
)  # fmt: skip


def _usual(op):
    planting = Planting(op, "float32")
    planting.usual()
    if op.name.endswith(("_from", "_step")):
        planting.plant(*starts("x" if op.form == "step" else "x0", core=1))
    if "resets" in op.inputs:
        planting.plant(*RESETS)
    for name in [n for n in ("u", "h") if n in op.inputs and "l" in op.input_dims[0]]:
        planting.plant(
            ("nan_spread", "masked by multiplication: 0 · NaN reaches the past",
             {name: lambda x: x + 0 * x.sum(axis=-2, keepdims=True)}), by="nan")  # fmt: skip
    for name in [n for n in ("r", "i") if n in op.inputs]:
        planting.plant(
            (f"{name}_through_sigmoid", f"σ({name}): it was after σ already", {name: sigmoid}),
            (f"{name}_in_bfloat16", f"{name} rounded to bfloat16", {name: bfloat16}),
        )  # fmt: skip
    return planting.bugs


USUAL = [
    bug for op in (*REAL[:3], REAL[4], *UNSCALED, *MINIMAL[:3], MINIMAL[4]) for bug in _usual(op)
]
BUGS = [*USUAL, *REAL_BUGS.bugs, *MINIMAL_BUGS.bugs, *KEPT.bugs]
