"""The programs that are compared: planted bugs by group, and honest implementations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from honest import Honest

from refssm._declaration.arguments import several
from refssm._declaration.operator import Operator
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.checks.checks import types_of
from refssm.conformance.diagnosis.suspects import bugs_of_operator
from refssm.conformance.planted import PlantedBug
from selftest import soak
from selftest.comparing import reported, tasks
from selftest.comparing.inputs import trial_of

NAMES = (
    *("linear_scan", "diagonal_ssm", "selective_scan", "mamba_scan_stateful"),
    *("ssd_recurrent", "ssd_chunked", "causal_convolution", "short_convolution"),
    *("cauchy_kernel", "vandermonde_kernel_real", "diagonal_kernel_zoh_real", "dplr_kernel"),
    *("gated_linear_recurrence_chunked", "gated_delta_rule_chunked", "kimi_delta_rule_chunked"),
    *("mamba2_scan", "rwkv6_chunked", "delta_dplr_chunked", "mlstm_chunked"),
    *("chunk_writes", "chunk_states", "chunk_outputs"),
)
SMALL = {"l": 16, "n": 4, "b": 2, "d": 2, "chunk": 8}
SURELY, HARDLY = 1e-2, 1e-5  # of the RMS of the right results
RIGHT, APART, TASK = "right", "apart", "task"
GROUPS = {
    "results": "wrong by 1 % or more on a small ordinary input",
    "precision": "off by less than 1 % there",
    "borders": "right there; wrong only at some lengths, sizes or values",
    "special": "wrong for NaN, infinity or zero",
    "state": "a wrong last state",
    "conduct": "overwrites arguments, misreads strides, differs from call to call",
    "gradients": "right results, a wrong gradient",
}
CHECKS = {
    "gradient": "gradients",
    "nan": "special",
    "zero": "special",
    "state": "state",
    **dict.fromkeys(("unchanged", "readonly", "strides", "alias", "repeat"), "conduct"),
}


class Declined(Exception):
    """A right program is not made for the input."""


@dataclass(frozen=True, eq=False)
class Program:
    """A program and its VJP; one of them may be wrong, the other is the reference's."""

    op: Operator
    name: str
    dtype: str
    group: str  # one of GROUPS, RIGHT, APART, or TASK
    what: str  # its description; "" if it is right
    found: Found

    @property
    def right(self) -> bool:
        """True for an honest implementation."""
        return self.group == RIGHT

    @property
    def forward(self) -> Callable:
        """The program."""
        return self.found.forward

    @property
    def vjp(self) -> Callable:
        """Its gradient."""
        assert self.found.vjp is not None
        return self.found.vjp


def programs_of(name: str) -> list[Program]:
    """The wrong and the right programs of one operator, in single precision."""
    op = operator_named(name)
    planted = [bug for bug in bugs_of_operator(name, op.family) if single(bug)]
    wrong = [_wrong(op, bug, group_of(op, bug)) for bug in planted]
    return [*map(_right, right_ones(name)), *wrong]


def others() -> list[Program]:
    """The bugs that nobody planted for the judge."""
    return [_wrong(operator_named(bug.op), bug, APART) for bug in reported.BUGS]


def of_tasks() -> list[Program]:
    """The programs that pass the tests of public tasks."""
    return [_wrong(operator_named(bug.op), bug, TASK) for bug in tasks.BUGS]


def single(bug: PlantedBug) -> bool:
    """True if the bug shows in single precision."""
    return dtype_of(bug) in ("float32", "complex64")


def dtype_of(bug: PlantedBug) -> str:
    """The type in which the bug shows."""
    return bug.caught_by.rstrip("]").partition("[")[2]


def right_ones(name: str) -> list[Honest]:
    """The honest implementations that accept every input and need no library."""
    return [h for h in soak.here(name) if not (h.only or h.needs)]


def _right(h: Honest) -> Program:
    op = operator_named(h.op)
    found = h.found()
    found = Found(op, found.forward, found.vjp or op.bare_vjp, declared=found.declared)
    return Program(op, h.name, types_of(op)[0], RIGHT, "", found)


def _wrong(op: Operator, bug: PlantedBug, group: str) -> Program:
    forward, vjp = bug.in_reference
    if not bug.of_gradient:  # else in_reference has the reference itself as its forward program
        vjp = op.bare_vjp
    return Program(op, bug.name, dtype_of(bug), group, bug.what, Found(op, forward, vjp))


def group_of(op: Operator, bug: PlantedBug) -> str:
    """The group of a planted bug: by the check that catches it, or by its error on `SMALL`."""
    check = bug.caught_by.partition("[")[0]
    if check in CHECKS:
        return CHECKS[check]
    off = error_of(op, bug)
    return "results" if not off < SURELY else "precision" if off > HARDLY else "borders"


def error_of(op: Operator, bug: PlantedBug) -> float:
    """The largest RMS error of a result on `SMALL`, of the RMS; infinite if the bug raises."""
    trial = trial_of(op, dtype_of(bug), SMALL, {}, seed=0)
    try:
        with np.errstate(all="ignore"):
            found = several(bug.forward(*(np.copy(a) for a in trial.arrays), **trial.statics))
    except Exception:  # a bug may raise anything
        return np.inf
    pairs = [*zip(found, trial.outputs.arrays, strict=True)]
    if any(np.shape(y) != t.shape for y, t in pairs):
        return np.inf
    return max(float(_rms(y - t) / (_rms(t) or 1)) for y, t in pairs)


def _rms(x):
    return np.sqrt(np.mean(np.square(np.abs(x), dtype=float)))
