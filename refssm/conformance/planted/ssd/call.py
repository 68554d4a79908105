"""Planted bugs in Mamba-2's whole call: steps and their limits, D, gate, heads, states, chunks."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import Planting
from refssm.conformance.planted.recurrences import RESETS, lasts, starts, tiled
from refssm.conformance.planted.scan.pieces import in_any_form, in_sequences, late
from refssm.conformance.planted.selective_scan.forms import sigmoid, silu, softplus
from refssm.conformance.planted.ssd import around as call
from refssm.conformance.planted.ssd.around import EACH, SCANS, around, biased, gated, limited
from refssm.conformance.planted.ssd.gradients import adjoint, by_total
from refssm.conformance.planted.ssd.programs import (
    SsdArguments,
    chunkwise,
    earlier,
    recurrence,
    zero,
)
from refssm.ssd.mamba2 import MAMBA2

PLAIN, STATEFUL, PACKED = ((op,) for op in SCANS)
STEP = EACH[3:]
PIECES = tuple(op for op in MAMBA2.operators if op not in EACH)


def whole(*given):
    """The right recurrence."""
    return recurrence(SsdArguments(*given))


def whole_vjp(ds, dS, *given):
    """Its right gradients."""
    return adjoint(ds, dS, SsdArguments(*given))


class InCalls:
    """Planted bugs, each in several operators; `adapt(op)` adapts programs to one operator."""

    def __init__(self, adapt):
        self.adapt, self.bugs = adapt, []

    def plant(self, operators, *rows, by="value"):
        """Plant rows for one check in each of the operators."""
        for op in operators:
            planting = Planting(op, "float32", self.adapt(op))
            planting.plant(*rows, by=by)
            self.bugs += planting.bugs


def _program(op):
    """Turn program(g) -> y, S into a wrong program of an operator."""
    return lambda program: _without_right(call.form(op, program))


def _vjp(op):
    return lambda program: _without_right(call.gradient_form(op, program))


def _without_right(function):
    return lambda right, *args, **limits: function(*args, **limits)


def parts(**changed):
    """The right call with some of its parts replaced."""
    return around(whole, **changed)


def changed(change):
    """The right call of changed arguments."""
    return lambda g: around(whole)(change(g))


CALLS, AS_THEY_ARE = InCalls(in_any_form(_program)), InCalls(lambda op: None)
plant = CALLS.plant


def softened(soft):
    """A wrong softplus, before the limits."""
    return parts(steps=lambda g: limited(soft(biased(g)), g))


def _switched(at):
    """v itself above `at`, else log1p(e^v)."""
    return lambda v: np.where(v > at, v, np.log1p(np.exp(np.minimum(v, at))))


def _naive(v):
    """log(1 + e^v), but v itself above 20."""
    return np.where(v > 20, v, np.log(1 + np.exp(np.minimum(v, 20))))


def _of_first_head(a, core):
    return a + 0 * a if a.ndim < core + 1 else 0 * a + a[(..., slice(1), *[slice(None)] * core)]


def _heads_turned(a):
    """An array (…, g, h) laid out as (h, g)."""
    return np.swapaxes(a, -1, -2).reshape(a.shape) if a.ndim > 1 else a


# ---- steps and their limits
plant(EACH,
      ("softplus_missing", "dt + dt_bias as it is", softened(lambda v: v)),
      ("softplus_naive", "log(1 + e^v)", softened(lambda v: np.log(1 + np.exp(v)))),
      ("rectified", "max(v, 0) for softplus", softened(lambda v: np.maximum(v, 0))),
      ("bias_forgotten", "dt_bias left out", {"dt_bias": zero}),
      ("bias_twice", "dt_bias added twice", {"dt_bias": lambda b: 2 * b}),
      ("bias_after", "dt_bias added after the softplus",
       parts(steps=lambda g: limited(softplus(g.dt) + g.dt_bias[..., None], g))),
      ("bias_after_limits", "dt_bias added after softplus and limits",
       parts(steps=lambda g: limited(softplus(g.dt), g) + g.dt_bias[..., None])),
      ("bias_of_first_head", "one dt_bias for all heads",
       {"dt_bias": lambda b: _of_first_head(b, 0)}),
      ("limits_missing", "no limits", parts(steps=lambda g: softplus(biased(g)))),
      ("limits_before", "limits before the softplus",
       parts(steps=lambda g: softplus(limited(biased(g), g)))),
      ("lower_limit_only", "no upper limit",
       parts(steps=lambda g: np.maximum(softplus(biased(g)), g.dt_min).astype(g.dt.dtype))),
      ("upper_limit_only", "no lower limit",
       parts(steps=lambda g: np.minimum(softplus(biased(g)), g.dt_max).astype(g.dt.dtype))),
      ("limits_on_inputs_only", "Δ without limits in the decay",
       parts(logs=lambda g, step: softplus(biased(g)) * g.A[..., None])),
      ("limits_on_decay_only", "Δ without limits in Δ x",
       parts(inputs=lambda g, step: softplus(biased(g))[..., None] * g.x)),
      ("below_limit_dropped", "a step below dt_min taken as 0",
       parts(steps=lambda g: limited(softplus(biased(g)), g)
             * (softplus(biased(g)) >= g.dt_min))),
      ("step_in_bfloat16", "Δ rounded to bfloat16",
       parts(steps=lambda g: bfloat16(call.step_sizes(g)))))  # fmt: skip
plant(EACH + PIECES,
      ("softplus_twice", "softplus(softplus(v))", softened(lambda v: softplus(softplus(v)))),
      ("softplus_naive_below", "log(1 + e^v) with a switch at 20: few digits below −3",
       softened(_naive)))  # fmt: skip
plant(PIECES, ("softplus_naive", "log(1 + e^v)", softened(lambda v: np.log(1 + np.exp(v)))))
plant(SCANS,  # one step meets few extremes
      ("softplus_overflows", "log1p(e^v): infinite above 88",
       softened(lambda v: np.log1p(np.exp(v)))))  # fmt: skip
plant(SCANS, ("softplus_switched_at_7", "v itself above 7", softened(_switched(7))),
      by="value[float64]")  # fmt: skip
plant(PLAIN,
      ("softplus_switched_at_20", "v itself above 20, in double precision",
       softened(_switched(20))), by="value[float64]")  # fmt: skip

# ---- the recurrence
plant(EACH,
      ("step_missing_in_input", "x Bᵀ for Δ x Bᵀ", parts(inputs=lambda g, step: g.x)),
      ("step_missing_in_decay", "e^A for e^{Δ A}",
       parts(logs=lambda g, step: 0 * step + g.A[..., None])),
      ("step_squared", "Δ in x and in B", parts(inputs=lambda g, step: step[..., None] ** 2 * g.x)),
      ("sign", "e^{−Δ A}", {"A": np.negative}),
      ("A_as_logarithm", "−e^A for A", {"A": lambda A: -np.exp(A)}),
      ("A_of_first_head", "one rate for all heads", {"A": lambda A: _of_first_head(A, 0)}),
      ("undecayed", "S + Δ x Bᵀ", {"A": zero}),
      ("exchanged", "B and C exchanged", changed(lambda g: g.but(B=g.C, C=g.B))),
      ("dt_of_first_head", "the steps of the first head for all",
       changed(lambda g: g.but(dt=_of_first_head(g.dt, 1)))))  # fmt: skip
plant(PLAIN,
      ("A_turned", "A laid out (h, g) and read as (g, h)", {"A": _heads_turned}),
      ("decay_late", "Δ_{t−1} in the decay",
       parts(logs=lambda g, step: earlier(step) * g.A[..., None])),
      ("input_late", "Δ_{t−1} with x_t",
       parts(inputs=lambda g, step: earlier(step)[..., None] * g.x)))  # fmt: skip


def reading(read):
    """The call with another state read than that after the step."""
    return around(lambda *given: recurrence(SsdArguments(*given), read=read))


plant(EACH + PIECES,
      ("read_before", "the state read before it is written: y_t = S_{t−1} C_t",
       reading(lambda S, before, decayed: before + 0 * S)),
      ("read_decayed", "the decayed state read, before the input is added",
       reading(lambda S, before, decayed: decayed + 0 * S)))  # fmt: skip
for _name, _what, _wrong in (
    ("output", "C of the step before: C_{t−1} for C_t",
     lambda earlier: changed(lambda g: g.but(C=earlier(g.C, -2)))),
    ("B", "B of the step before: B_{t−1} for B_t",
     lambda earlier: changed(lambda g: g.but(B=earlier(g.B, -2)))),
    ("step", "dt of the step before: Δ_{t−1} for Δ_t, in the decay and in the input",
     lambda earlier: parts(steps=lambda g: earlier(call.step_sizes(g), -1))),
):  # fmt: skip
    for _operators, *_row in late(SCANS + PIECES, f"{_name}_late", _what, _wrong):
        plant(_operators, _row)


def _tiled(B, g):
    return tiled(B, g.x.shape[:-2])


def _first_group(B):
    return B[:, [0] * B.shape[1]] if B.ndim == 5 else B


plant(EACH,
      ("groups_tiled", "head k of all heads reads the group k mod G, not k // H",
       changed(lambda g: g.but(B=_tiled(g.B, g), C=_tiled(g.C, g)))),
      ("first_group", "B and C of the first group for all",
       changed(lambda g: g.but(B=_first_group(g.B), C=_first_group(g.C)))))  # fmt: skip

# ---- skip and gate
plant(EACH,
      ("D_forgotten", "no D x", {"D": zero}),
      ("D_after_gate", "D x added after the gate",
       parts(after=lambda s, g: s * silu(g.z) + call.skipped(g))),
      ("D_twice", "D x before and after the gate",
       parts(after=lambda s, g: gated(s, g) + call.skipped(g))),
      ("D_of_first_head", "one D for all heads", {"D": lambda D: _of_first_head(D, 0)}),
      ("D_times_step", "D Δ x", parts(after=lambda s, g: (
          s + call.skipped(g) * call.step_sizes(g)[..., None]) * silu(g.z))),
      ("D_is_one", "x for D x", {"D": np.ones_like}),
      ("gate_forgotten", "no gate", parts(after=lambda s, g: s + call.skipped(g))),
      ("sigmoid_gate", "σ(z) for silu(z)",
       parts(after=lambda s, g: (s + call.skipped(g)) * sigmoid(g.z))),
      ("gate_on_input", "x gated, not the output",
       parts(inputs=lambda g, step: call.driven(g, step) * silu(g.z),
             after=lambda s, g: s + call.skipped(g))),
      ("gate_of_first_number", "the gate of the first number of a head for all",
       changed(lambda g: g.but(z=0 * g.z + g.z[..., :1]))),
      ("gelu_gate", "z σ(1.702 z) for silu(z)", parts(after=lambda s, g: (
          s + call.skipped(g)) * g.z * sigmoid(g.z.dtype.type(1.702) * g.z))),
      ("D_in_float16", "D rounded to float16", {"D": float16}))  # fmt: skip
plant(PLAIN,
      ("D_turned", "D laid out (h, g) and read as (g, h)", {"D": _heads_turned}),
      ("gate_late", "z_{t−1} for z_t", {"z": lambda z: earlier(z, -2)}))  # fmt: skip
plant(SCANS + STEP,
      ("silu_overflows", "z e^z/(1 + e^z): NaN above 88", parts(after=lambda s, g: (
          s + call.skipped(g)) * (g.z * np.exp(g.z) / (1 + np.exp(g.z))))))  # fmt: skip


# ---- chunks of 64 steps
def by_chunks(**places):
    """The call with chunks of 64 steps whose parts are replaced."""
    return around(lambda *given: chunkwise(SsdArguments(*given), **places))


def _without_steps(g):
    """The decay of the carry as e^{A}, e^{2A}, …: Δ in the chunk, but not across."""

    def read(sums, log_a):
        return np.arange(1, log_a.shape[-1] + 1).astype(log_a.dtype) * g.A[..., None]

    return by_chunks(read=read, end=read)(g)


plant(SCANS,
      ("carry_lost", "the state lost between chunks of 64", by_chunks(keep=zero)),
      ("carry_undecayed", "a chunk's end without the decay of the state before",
       by_chunks(end=lambda T, s: 0 * T)),
      ("carry_read_undecayed", "the state before a chunk read without its decay",
       by_chunks(read=lambda T, s: 0 * T)),
      ("carry_without_steps", "the state decays across a chunk by e^A a step", _without_steps),
      ("carry_in_bfloat16", "states between chunks kept in bfloat16", by_chunks(keep=bfloat16)),
      ("end_without_last", "the last decay left out of the chunk's decay",
       by_chunks(end=lambda T, s: T - s)),
      ("inputs_late_to_end", "inputs decay to one step before the chunk's end",
       by_chunks(inside=lambda g: (
           recurrence(g)[0], recurrence(g.but(log_a=earlier(g.log_a)))[1]))))  # fmt: skip


# ---- states and resets
def _last(change):
    """The right outputs, with the last state of changed arguments."""
    return lambda g: (around(whole)(g)[0], around(whole)(change(g))[1])


def _one_step_early(g):
    y, S = around(whole)(g)
    l = g.x.shape[-2]
    return y, around(whole)(g.at(slice(l - 1)))[1] if l > 1 else g.S0 + 0 * S


def _gated_state(g, t):
    """The right outputs, and the last state times the gate of step t."""
    y, S = around(whole)(g)
    return y, S * silu(g.z[..., t, :, None])


def _start_in_every_chunk(g):
    def whole_(*given):
        a = SsdArguments(*given)
        return recurrence(a, carry=lambda S, t, before: S if t == 0 or t % 64 else (
            np.exp(a.log_a[..., t, None, None]) * a.S0))  # fmt: skip

    return around(whole_)(g)


plant(STATEFUL,
      *starts("S0", core=2),
      ("start_in_every_chunk", "every chunk of 64 steps begins with S0", _start_in_every_chunk),
      ("start_undecayed", "S_0 = S0 + Δ x_0 B_0ᵀ", parts(logs=lambda g, step: np.where(
          np.arange(step.shape[-1]) == 0, 0, call.logarithms(g, step)))),
      ("start_of_first_head", "S0 that of the first head for all",
       changed(lambda g: g.but(S0=_of_first_head(g.S0, 2)))))  # fmt: skip
plant(STATEFUL,
      ("last_one_step_early", "S_{l−2} for S_{l−1}", _one_step_early),
      ("last_from_rest", "the last state as if S0 had been 0",
       _last(lambda g: g.but(S0=0 * g.S0))),
      ("last_without_input", "the last state without the last input", _last(lambda g: g.but(
          x=np.where(np.arange(g.x.shape[-2])[:, None] == g.x.shape[-2] - 1, 0, g.x)))),
      ("last_without_limits", "the last state of steps without limits",
       _last(lambda g: g.but(dt_min=0.0, dt_max=np.inf))),
      ("last_gated", "the last state times the last gate", lambda g: _gated_state(g, -1)),
      by="state")  # fmt: skip
AS_THEY_ARE.plant(STATEFUL, *lasts(core=2), by="state")
plant(STEP,
      ("state_ignored", "from rest", {"S": zero}),
      ("state_in_bfloat16", "S rounded to bfloat16", {"S": bfloat16}),
      ("state_not_advanced", "the state before the step returned",
       lambda g: (around(whole)(g)[0], g.S0 + 0 * around(whole)(g)[1])),
      ("state_gated", "the next state times the gate",
       lambda g: _gated_state(g, 0)))  # fmt: skip
plant(PACKED,
      *RESETS,
      ("leak_through_state", "resets do not reach the state of the chunk before",
       by_chunks(seen=np.ones_like)),
      ("leak_to_the_end", "inputs before a reset are in the chunk's last state",
       by_chunks(inside=lambda g: (
           recurrence(g)[0], recurrence(g.but(resets=np.zeros_like(g.resets)))[1]))),
      ("bias_at_reset", "dt_bias forgotten where a sequence begins",
       parts(steps=lambda g: limited(softplus(
           g.dt + np.where(g.resets, 0, g.dt_bias[..., None])), g))))  # fmt: skip


# ---- gradients
def back(**formulas):
    """The right gradients with some formulas replaced."""
    return call.back_around(whole, whole_vjp, **formulas)


def constant_carry(first):
    """The gradients of states that are constants for the next step; not that before the first."""

    def without(ds, dS, *given):
        return adjoint(ds, dS, SsdArguments(*given), carry=lambda G, t: G * (first and t == 0))

    return call.back_around(whole, without)


def _of_total(ds, dS, *given):
    return adjoint(ds, dS, SsdArguments(*given), change=lambda p: {"dlog_a": by_total(p)})


GRADIENTS = InCalls(in_sequences(_vjp))
plant_back = GRADIENTS.plant
for _operators, _name, _first in (
    (SCANS + PIECES[:1], "carry_constant", False),
    (STATEFUL + PIECES[:1], "carry_constant_but_first", True),
):
    plant_back(
        _operators,
        (_name, "the carry taken as a constant: no gradient from one step to the one before",
         constant_carry(_first)),
        by="gradient",
    )  # fmt: skip
plant_back(
    EACH,
    ("mask_missing", "ddt beyond the limits, too", back(passed=lambda q: q.soft == q.soft)),
    ("mask_lower_only", "ddt above dt_max, too", back(passed=lambda q: q.soft >= q.dt_min)),
    ("mask_upper_only", "ddt below dt_min, too", back(passed=lambda q: q.soft <= q.dt_max)),
    ("mask_before_softplus", "ddt where dt + dt_bias is between the limits",
     back(passed=lambda q: (q.v >= q.dt_min) & (q.v <= q.dt_max))),
    ("bias_without_mask", "ddt_bias beyond the limits, too",
     back(ddt_bias=lambda q: (q.dstep * sigmoid(q.v)).sum(-1))),
    ("slope_missing", "ddt without the softplus' derivative", back(slope=lambda q: 1 + 0 * q.v)),
    ("slope_of_step", "the softplus' derivative at its value",
     back(slope=lambda q: sigmoid(q.soft))),
    ("slope_relu", "1 for v > 0, else 0", back(slope=lambda q: (q.v > 0) + 0 * q.v)),
    ("bias_missing", "ddt_bias = 0", {"dt_bias": zero}),
    ("dt_by_input_only", "ddt without A dlog_a", back(dstep=lambda q: (q.x * q.dv).sum(-1))),
    ("dt_by_decay_only", "ddt without x · d(Δ x)",
     back(dstep=lambda q: q.A[..., None] * q.dlog_a)),
    ("dA_sign", "dA with the other sign", {"A": np.negative}),
    ("dA_without_step", "dA = Σ dlog_a", back(dA=lambda q: q.dlog_a.sum(-1))),
    ("dD_ungated", "dD without the gate", back(dD=lambda q: (q.x * q.dy).sum((-2, -1)))),
    ("dD_of_last_number", "dD of the last number of a head, not their sum",
     back(dD=lambda q: (q.x * q.ds)[..., -1].sum(-1))),
    ("dx_without_D", "dx without D ds", back(dx=lambda q: q.step[..., None] * q.dv)),
    ("dx_without_step", "dx = d(Δ x) + D ds",
     back(dx=lambda q: q.dv + q.D[..., None, None] * q.ds)),
    ("dx_skip_ungated", "D dy beside the scan",
     back(dx=lambda q: q.step[..., None] * q.dv + q.D[..., None, None] * q.dy)),
    ("dz_constant", "dz = s dy σ(z)", back(dz=lambda q: q.s * q.dy * q.open)),
    ("dz_as_sigmoid", "dz = s dy z σ(1 − σ)",
     back(dz=lambda q: q.s * q.dy * q.gate * (1 - q.open))),
    ("dz_without_skip", "dz from S C alone, without D x",
     back(dz=lambda q: q.y * q.dy * (q.open + q.gate * (1 - q.open)))),
    ("gate_ignored", "ds = dy", back(ds=lambda q: q.dy)),
    ("gate_by_sigmoid", "ds = σ(z) dy", back(ds=lambda q: q.open * q.dy)),
    by="gradient",
)  # fmt: skip
plant_back(
    SCANS,
    ("dA_of_last_step", "dA of the last step only",
     back(dA=lambda q: (q.step * q.dlog_a)[..., -1])),
    ("dD_not_summed", "dD of the last step only",
     back(dD=lambda q: (q.x * q.ds)[..., -1, :].sum(-1))),
    ("bias_not_summed", "ddt_bias of the last step only", back(ddt_bias=lambda q: q.ddt[..., -1])),
    by="gradient",
)  # fmt: skip
plant_back(
    PLAIN,
    ("dx_in_float16", "dx rounded to float16", {"x": float16}),
    ("dlog_a_by_total", "sums from the end as e − cumsum(e) + sum(e): their digits cancel in ddt "
     "and dA", call.back_around(whole, _of_total)),
    by="gradient",
)  # fmt: skip
plant_back(
    STATEFUL + STEP,
    ("last_dropped", "the last state has no gradient",
     lambda dy, dS, g: back()(dy, 0 * dS, g)),
    ("start_gated", "dS0 times the first gate", lambda dy, dS, g: (
        lambda *told: (*told[:-1], told[-1] * silu(g.z[..., 0, :, None])))(*back()(dy, dS, g))),
    by="gradient",
)  # fmt: skip
plant_back(STATEFUL, ("dS0_missing", "dS0 = 0", {"S0": zero}), by="gradient")
plant_back(STEP, ("dS_missing", "dS = 0", {"S": zero}), by="gradient")
plant_back(
    PACKED,
    ("leaks", "what is carried back crosses resets", lambda dy, dS, g: back()(
        dy, dS, g.but(resets=np.zeros_like(g.resets)))),
    by="gradient",
)  # fmt: skip
USUAL = [Planting(op, "float32") for op in EACH]
for _planting in USUAL:
    _planting.usual()
BUGS = [bug for planting in (*USUAL, CALLS, AS_THEY_ARE, GRADIENTS) for bug in planting.bugs]
