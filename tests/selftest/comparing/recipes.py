"""The checks that people use now, written in NumPy from their published numbers.

Each compares with a loop in the same precision, as its users do, and stops at the first difference.
No line of the libraries is copied. Versions and files are those that were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from refssm._declaration.operator import Operator
from selftest.comparing import chunks
from selftest.comparing.inputs import (
    Draws,
    Trial,
    timed,
    trial_of,
)
from selftest.comparing.programs import Declined, Program

LONGEST_RIGHT = 1024
Close = Callable[[Operator, str, np.ndarray, np.ndarray], str]  # "" or what differs


@np.errstate(invalid="ignore", over="ignore")
def near(found, truth, rtol: float, atol: float) -> str:
    """|found − truth| ≤ atol + rtol |truth| in each entry, NaN never; "" if so."""
    error, allowed = np.abs(found - truth), atol + rtol * np.abs(truth)
    bad = ~((error <= allowed) | (found == truth))  # equal infinities differ by NaN
    if not bad.any():
        return ""
    k = int(np.argmax(np.where(bad, np.nan_to_num(error / allowed, nan=np.inf), 0)))
    told = f"{error.flat[k]:.2g}, {allowed.flat[k]:.2g} allowed"
    return f"{bad.sum()} of {bad.size} entries beyond; the worst by {told}"


def of_shape(found, truth) -> str:
    """Empty if shape and type agree."""
    if found.shape != truth.shape:
        return f"shape {found.shape}, not {truth.shape}"
    return "" if found.dtype == truth.dtype else f"type {found.dtype}, not {truth.dtype}"


def within(rtol: float, atol: float) -> Close:
    """The same tolerances for every result."""
    return lambda op, result, found, truth: near(found, truth, rtol, atol)


@dataclass(frozen=True, eq=False)
class Recipe:
    """A check that compares with a loop at the sizes of its own tests."""

    name: str
    source: str  # the version that was read, and where
    close: Close
    told: str  # the rule, the sizes and the inputs, for the page
    sizes: tuple[Mapping[str, int], ...]  # one trial each; batch and core sizes
    draws: Draws = field(default_factory=dict)
    of_gradient: bool = True
    own: tuple[str, ...] = ()  # operators with a test of theirs; others borrow the numbers
    value_only: tuple[str, ...] = ()  # families whose own test has no gradient
    sizes_of: Mapping[str, tuple[Mapping[str, int], ...]] = field(default_factory=dict)
    together: chunks.Together = chunks.usual  # what the stages of a chunk are given
    any_type: bool = False  # it does not look at the type of a result

    def run(self, program: Program) -> tuple[str, float]:
        """What differs, or "", and the seconds of reference, program and comparison."""
        spent = 0.0
        for trial in self._trials(program):
            for of_gradient in (False, True)[: 1 + self.has_gradient(program.op)]:
                why, seconds = self._one(program, trial, of_gradient)
                spent += seconds
                if why:
                    return why, spent
        return "", spent

    def has_gradient(self, op: Operator) -> bool:
        """True if it compares gradients of this operator."""
        return self.of_gradient and op.family not in self.value_only

    def sizes_for(self, op: Operator) -> tuple[Mapping[str, int], ...]:
        """The sizes of this operator's trials."""
        for name in (op.name, op.family):
            if name in self.sizes_of:
                return self.sizes_of[name]
        return tuple(map(chunks.in_chunks, self.sizes)) if op.name in chunks.STAGES else self.sizes

    def _trials(self, program: Program) -> Iterator[Trial]:
        # some right programs need memory that is quadratic in the length
        longest = LONGEST_RIGHT if program.right else np.inf
        for k, sizes in enumerate(self.sizes_for(program.op)):
            if sizes["l"] <= longest:
                yield trial(self, program.op, program.dtype, k)

    def _one(self, program: Program, trial: Trial, of_gradient: bool) -> tuple[str, float]:
        called = program.vjp if of_gradient else program.forward
        given = [*trial.cotangents, *trial.arrays] if of_gradient else trial.arrays
        truth = trial.gradients if of_gradient else trial.outputs
        names = [f"d{x}" for x in program.op.inputs] if of_gradient else program.op.outputs
        found, seconds = call(called, given, trial.statics)
        if isinstance(found, str):
            return found, truth.seconds + seconds
        if len(found) != len(truth.arrays):
            return f"{len(found)} results, not {len(truth.arrays)}", truth.seconds + seconds
        for name, y, t in zip(names, found, truth.arrays, strict=True):
            same = y.astype(t.dtype) if self.any_type and y.dtype.kind == t.dtype.kind else y
            why = of_shape(same, t) or self.close(program.op, name, same, t)
            if why:
                return f"{name} at l = {trial_length(trial)}: {why}", truth.seconds + seconds
        return "", truth.seconds + seconds


def trial_length(trial: Trial) -> int:
    """The length of a trial."""
    dims = [*zip(trial.op.input_dims, trial.arrays, strict=True)]
    lengths = [a.shape[d.index("l") - len(d)] for d, a in dims if "l" in d]
    return int(trial.statics.get("l", max(lengths, default=0)))


def call(program: Callable, given, statics) -> tuple[tuple[np.ndarray, ...] | str, float]:
    """The results and the seconds of one call, or how it failed; Declined if it says so."""
    try:
        with np.errstate(all="ignore"):
            return timed(program, given, statics)
    except NotImplementedError as error:
        raise Declined(str(error)) from error
    except Exception as error:  # whatever a wrong program raises, its test fails
        return f"raises {type(error).__name__}", 0.0


@cache
def trial(recipe: Recipe, op: Operator, dtype: str, k: int) -> Trial:
    """The k-th trial of a recipe."""
    sizes = recipe.sizes_for(op)[k]
    return trial_of(op, dtype, sizes, recipe.draws, seed=k, together=recipe.together)


def lengths(ls: tuple[int, ...], **sizes: int) -> tuple[Mapping[str, int], ...]:
    """The same sizes at several lengths."""
    return tuple({"l": l, **sizes} for l in ls)
