"""Mistakes in recurrences with a matrix state, in every form, and the names that reports give them.

Each program is one loop over time whose state is values × keys. None of them uses the planted bugs'
own building blocks.
"""

import numpy as np
import pytest
from judging import judged, looks_like

from refssm._numerics.broadcasting import unbroadcast
from refssm.adapters import scaled
from refssm.conformance.calling.finding import operator_named

pytestmark = [pytest.mark.usefixtures("their_warnings_are_not_ours"), pytest.mark.long]


class Call:
    """The arguments of one call row by row, and the sequences in it."""

    def __init__(self, op, args, statics):
        self.op, self.statics, self.first = op, statics, 0
        self.given = dict(zip(op.inputs, args, strict=True))
        self.dims = dict(zip(op.inputs, op.input_dims, strict=True))
        self.keyed = "n" in self.dims.get("log_g", ())
        self.l = max(
            (a.shape[self.axis(n)] for n, a in self.given.items() if self.axis(n)), default=1
        )
        self.kind = np.result_type(*(a for a in args if a.dtype.kind in "fc"))
        self.batch = op.batch_shape(*args)
        marks = self.given.get("ends", self.given.get("places"))
        self.marks = [] if marks is None else marks[(0,) * (marks.ndim - 1)].tolist()
        self.between = list(enumerate(zip([0, *self.marks], self.marks, strict=False)))
        packed = "ends" in self.given
        self.begins = {first: i for i, (first, end) in self.between if packed and end > first}

    def axis(self, name):
        """The axis of time from the end; 0 without one."""
        dims = self.dims[name]
        return dims.index("l") - len(dims) if "l" in dims else 0

    def row(self, name, t):
        """An argument at step t."""
        axis, x = self.axis(name), self.given[name]
        return np.take(x, t, axis) if axis else x

    def start(self, i):
        """The state before sequence i, values × keys."""
        ours = "B" in self.given
        n, p = ((self.dims[name], name) for name in ("B" if ours else "k", "x" if ours else "v"))
        shape = tuple(self.given[name].shape[-1] for _, name in (p, n))
        S = self.given.get("S0", self.given.get("S", np.zeros(shape if ours else shape[::-1])))
        S = S[..., i, :, :] if "ends" in self.given else S
        return np.broadcast_to(S if ours else np.swapaxes(S, -1, -2), (*self.batch, *shape))

    def results(self, y, states):
        """The outputs, and the states that the form returns."""
        after = [self.start(0), *states]
        ended = [
            after[end] if end > first or "places" in self.given else self.start(i)
            for i, (first, end) in self.between
        ]
        y = np.stack(np.broadcast_arrays(*y), -2).astype(self.kind)
        y = y[..., 0, :] if self.op.form == "step" else y
        if len(self.op.outputs) == 1:
            return y
        S = np.stack(ended, -3) if "m" in self.op.output_dims[1] else states[-1]
        return y, (S if "B" in self.given else np.swapaxes(S, -1, -2)).astype(self.kind)


def looped(name, step):
    """A program of an operator from step(call, t, S) -> y_t, S_t."""
    op = operator_named(name)

    def program(*args, **statics):
        call = Call(op, args, statics)
        S, y, states = call.start(0), [], []
        for t in range(call.l):
            if t in call.begins:
                S, call.first = call.start(call.begins[t]), t
            if "resets" in call.given:
                S = np.where(call.given["resets"][..., t, None, None], 0, S)
            read, S = step(call, t, S)
            y.append(read)
            states.append(S)
        return call.results(y, states)

    return program


def times(S, k):
    """S k."""
    return (S @ k[..., None])[..., 0]


def delta(written=lambda v, beta, told: beta * (v - told), read="after", late=(), gates=np.exp):
    """A step of linear attention; β and gates are 1 where an operator has none."""

    def step(c, t, S):
        q, k, v = (c.row(n, max(t - 1, c.first) if n in late else t) for n in "qkv")
        log_g = c.row("log_g", t) if "log_g" in c.given else np.zeros(())
        decayed = S * gates(log_g if c.keyed else log_g[..., None])[..., None, :]
        new = written(v, c.row("beta", t)[..., None], times(decayed, k)) if "beta" in c.given else v
        now = {"before": S, "decayed": decayed}
        now["after"] = decayed + new[..., :, None] * k[..., None, :]
        return times(now[read], q), now["after"]

    return step


def ssd(read="after", late=(), decays=np.exp):
    """A step of state-space duality."""

    def step(c, t, S):
        x, B, C, log_a = (
            c.row(n, max(t - 1, c.first) if n in late else t) for n in ("x", "B", "C", "log_a")
        )
        decayed = S * decays(log_a)[..., None, None]
        now = {"before": S, "decayed": decayed}
        now["after"] = decayed + x[..., :, None] * B[..., None, :]
        return times(now[read], C), now["after"]

    return step


def mamba2(read="after", late=(), soft=lambda v: np.logaddexp(0, v)):
    """A step of Mamba-2's whole call."""

    def step(c, t, S):
        dt, B, C = (c.row(n, max(t - 1, c.first) if n in late else t) for n in ("dt", "B", "C"))
        x, z, g = c.row("x", t), c.row("z", t), c.given
        low, high = (c.kind.type(c.statics[n]) for n in ("dt_min", "dt_max"))
        size = np.clip(soft((dt + g["dt_bias"]).astype(c.kind)), low, high)
        decayed = S * np.exp(g["A"] * size)[..., None, None]
        now = {"before": S, "decayed": decayed}
        now["after"] = decayed + (size[..., None] * x)[..., :, None] * B[..., None, :]
        out = times(now[read], C) + g["D"][..., None] * x
        return out * (z / (1 + np.exp(-z))), now["after"]

    return step


def naive(v):
    """log(1 + e^v), but v itself where it is large."""
    return np.where(v > 20, v, np.log(1 + np.exp(np.minimum(v, 20))))


FORMS = ("", "_stateful", "_packed", "_packed_stateful", "_states")
RULES = ("delta", "gated_delta", "kimi_delta")
KEYED = ("gated_linear", "kimi_delta")


def in_forms(*names, steps=True):
    """The operators of recurrences in every form, step by step and by chunks, and their steps."""
    for name in names:
        whole = f"{name}_recurrence" if name == "gated_linear" else f"{name}_rule"
        yield from (f"{whole}{form}" for form in FORMS)
        yield from (f"{whole}_chunked{form}" for form in FORMS[:-1])
        yield from [f"{name}_step"] * steps


LINEAR = [*in_forms("gated_linear", *RULES)]
SEQUENCES = [*in_forms("gated_linear", *RULES, steps=False)]
DUAL = [f"ssd_{kind}{form}" for kind in ("recurrent", "chunked") for form in FORMS]
WHOLE = [f"mamba2_scan{form}" for form in FORMS]
CAUSES = {
    "β on what is taken away only": (
        [*in_forms(*RULES)],
        delta(lambda v, beta, told: v - beta * told),
        "v − β Sᵀ k: β multiplies only what is taken away, not v",
    ),
    "β on the value only": (
        [*in_forms(*RULES)],
        delta(lambda v, beta, told: beta * v - told),
        "β v − Sᵀ k: β multiplies v only, not what is taken away",
    ),
    "the old state read": (
        [n for n in LINEAR if not n.startswith("delta_rule_chunked")],
        delta(read="before"),
        "the state read before it is written",
    ),
    "the old state read in duality": (
        [*DUAL, "ssd_step", "ssd_quadratic"],
        ssd(read="before"),
        ("the state read before it is written", "y = S C: the state before the step"),
    ),
    "the old state read in Mamba-2": (
        [*WHOLE, "mamba2_step"],
        mamba2(read="before"),
        "the state read before it is written",
    ),
    "the decayed state read": (
        [n for n in LINEAR if "chunked" not in n and not n.startswith("delta")],
        delta(read="decayed"),
        "the decayed state read, before the new value is written",
    ),
    "the decayed state read by chunks": (
        [n for n in LINEAR if "chunked" in n],
        delta(read="decayed"),
        "a query does not see its own step: the state read before the value is written",
    ),
    "the decayed state read in duality": (
        [*DUAL, "ssd_step", "ssd_quadratic"],
        ssd(read="decayed"),
        "the decayed state read, before the input is added",
    ),
    "the decayed state read in Mamba-2": (
        [*WHOLE, "mamba2_step"],
        mamba2(read="decayed"),
        "the decayed state read, before the input is added",
    ),
    "late queries": (SEQUENCES, delta(late="q"), "q of the step before: q_{t−1} for q_t"),
    "late keys": (SEQUENCES, delta(late="k"), "k of the step before: k_{t−1} for k_t"),
    "late C": (
        [*DUAL, "ssd_quadratic"],
        ssd(late="C"),
        "C of the step before: C_{t−1} for C_t",
    ),
    "late B": ([*DUAL, "ssd_quadratic"], ssd(late="B"), "B of the step before: B_{t−1} for B_t"),
    "late C of Mamba-2": (WHOLE, mamba2(late="C"), "C of the step before: C_{t−1} for C_t"),
    "late B of Mamba-2": (WHOLE, mamba2(late="B"), "B of the step before: B_{t−1} for B_t"),
    "late steps": (
        WHOLE,
        mamba2(late=("dt",)),
        "dt of the step before: Δ_{t−1} for Δ_t, in the decay and in the input",
    ),
    "the first key's gate": (
        [*in_forms(*KEYED)],
        delta(gates=lambda s: np.exp(s[..., :1])),
        "the gate of the first key used for all keys",
    ),
    "the last key's gate": (
        [*in_forms(*KEYED)],
        delta(gates=lambda s: np.exp(s[..., -1:])),
        "the gate of the last key used for all keys",
    ),
    "the mean gate": (
        [*in_forms(*KEYED)],
        delta(gates=lambda s: np.exp(s.sum(-1, keepdims=True) / s.shape[-1])),
        "one gate used for all keys: the mean of log_g",
    ),
    "softplus twice": (
        [*WHOLE, "mamba2_step"],
        mamba2(soft=lambda v: np.logaddexp(0, np.logaddexp(0, v))),
        "softplus(softplus(v))",
    ),
    "small steps lost": (
        [*WHOLE, "mamba2_step"],
        mamba2(soft=naive),
        "log(1 + e^v)",  # with a switch at 20 or without: both where no step is so large
    ),
}
"""By name: the operators, a step, and what the report says first."""


def two_each():
    """Two operators of each cause, in other forms from cause to cause."""
    for i, (cause, (names, *_)) in enumerate(CAUSES.items()):
        yield from ((names[(i + k) % len(names)], cause) for k in (0, len(names) // 2))


@pytest.mark.parametrize(("name", "cause"), [*two_each()])
def test_a_mistake_has_its_name_in_any_form(name, cause):
    _, step, what = CAUSES[cause]
    assert looks_like(name, looped(name, step)).startswith(what)


@pytest.mark.parametrize("name", [*LINEAR, *DUAL, "ssd_step", *WHOLE, "mamba2_step"][::4])
def test_the_loop_without_a_mistake_is_right(name):
    step = mamba2 if "mamba2" in name else ssd if "ssd" in name else delta
    checks = ["value", "state"] if operator_named(name).form == "stateful" else ["value"]
    assert all(line.verdict == "pass" for line in judged(name, looped(name, step()), *checks))


def constant_carry(name, step, kept):
    """The gradients of a recurrence whose state is a constant for the next step.

    The first state is no constant if it is `kept`.
    """
    op, one = operator_named(name), operator_named(step)
    names = [n for n in one.inputs if n != "S"]

    def vjp(*given, **statics):
        count = len(op.outputs)
        (dy, *dlast), args = given[:count], given[count:]
        c, dS0 = Call(op, args, statics), 0
        ours = "B" in c.given
        S = c.start(0).astype(c.kind) if ours else np.swapaxes(c.start(0), -1, -2).astype(c.kind)
        found = {n: [] for n in names}
        for t in range(c.l):
            rows = [c.row(n, t) for n in names]
            dS = dlast[0] if dlast and t == c.l - 1 else np.zeros_like(S)
            *gradients, back = one.bare_vjp(dy[..., t, :], dS, *rows, S, **statics)
            for n, gradient in zip(names, gradients, strict=True):
                found[n].append(gradient)
            if t == 0:
                dS0 = back if kept else 0 * back
            _, S = one.reference(*rows, S, **statics)
        made = [np.stack(found[n], c.axis(n)) if c.axis(n) else sum(found[n]) for n in names]
        return (*made, unbroadcast(dS0, c.given["S0"])) if "S0" in c.given else tuple(made)

    return vjp


ONE_BY_ONE = {
    "gated_linear_recurrence": ("gated_linear_step", False),
    "delta_rule_stateful": ("delta_step", False),
    "gated_delta_rule": ("gated_delta_step", False),
    "kimi_delta_rule_stateful": ("kimi_delta_step", True),
    "ssd_recurrent": ("ssd_step", False),
    "mamba2_scan": ("mamba2_step", False),
    "mamba2_scan_stateful": ("mamba2_step", True),
}


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_a_carry_that_is_a_constant_for_each_step_is_named(name):
    vjp = constant_carry(name, *ONE_BY_ONE[name])
    told = looks_like(name, operator_named(name).reference, "gradient", vjp=vjp)
    assert told.startswith("the carry taken as a constant: no gradient from one step to the one")


def test_queries_that_are_not_scaled_are_named_where_the_adapter_is_declared():
    program = looped("gated_delta_rule", delta())
    told = looks_like("gated_delta_rule", program, adapters=(scaled(),))
    assert told.startswith("`q` is not scaled, but the function declares scaled('q')")


def by_total(dy, *args):
    """The right gradients of duality, with that of log_a by a difference of sums."""
    op = operator_named("ssd_recurrent")
    batch = op.batch_shape(*args)
    pairs = zip(args, op.input_dims, strict=True)
    wide = [np.broadcast_to(a, (*batch, *a.shape[a.ndim - len(dims) :])) for a, dims in pairs]
    dx, _, dB, dC = op.bare_vjp(dy, *wide)
    e = (dy * op.reference(*wide)).sum(-1) - (wide[0] * dx).sum(-1)
    dlog_a = e - np.cumsum(e, -1) + e.sum(-1, keepdims=True)
    return tuple(unbroadcast(g, a) for g, a in zip((dx, dlog_a, dB, dC), args, strict=True))


def test_sums_from_the_end_by_a_total_are_named():
    right = operator_named("ssd_recurrent").reference
    told = looks_like("ssd_recurrent", right, "gradient", vjp=by_total)
    assert told.startswith("sums from the end as e − cumsum(e) + sum(e)")


def guarded(log_a):
    """e^{log_a}, but 0 where that could overflow."""
    return np.where(log_a > 0, 0, np.exp(log_a))


@pytest.mark.parametrize("name", ["ssd_recurrent", "ssd_recurrent_packed_stateful", "ssd_step"])
def test_a_guard_against_positive_logarithms_is_named(name):
    told = looks_like(name, looped(name, ssd(decays=guarded)))
    assert told.startswith("a guard takes e^x as 0 where x > 0")
