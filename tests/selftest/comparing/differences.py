"""JAX's check of a gradient, in NumPy: one random direction against a central difference."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from refssm._declaration.operator import Operator
from selftest.comparing.inputs import Trial, trial_of
from selftest.comparing.programs import Program
from selftest.comparing.recipes import call, near, of_shape

EPS, TOLERANCE = 1e-4, 2e-3  # of JAX: the step, and rtol = atol of a gradient in float32
SIZES = {"l": 12, "chunk": 4, "n": 3, "t": 3, "r": 1}  # others, as the batch: 2


@dataclass(frozen=True)
class CheckGrads:
    """A program's VJP against differences of the program itself; no reference takes part."""

    name: str
    source: str
    told: str
    own: tuple[str, ...] = ()

    def run(self, program: Program) -> tuple[str, float]:
        """What differs, or "", and the seconds."""
        trial, rng = _small(program.op, program.dtype), np.random.default_rng(0)
        tangents = [_like(a, rng) for a in trial.arrays]
        given = [trial.arrays, trial.arrays, *_moved(trial.arrays, tangents)]
        calls = [call(program.forward, arrays, trial.statics) for arrays in given]
        spent = sum(seconds for _, seconds in calls)
        found = [results for results, _ in calls if not isinstance(results, str)]
        if len(found) < len(calls):
            return next(why for why, _ in calls if isinstance(why, str)), spent
        cotangents = [_like(y, rng) for y in found[0]]
        gradients, seconds = call(program.vjp, [*cotangents, *trial.arrays], trial.statics)
        if isinstance(gradients, str):
            return gradients, spent + seconds
        with np.errstate(all="ignore"):
            return _differs(found, tangents, cotangents, gradients), spent + seconds


def _moved(arrays, tangents) -> list[list[np.ndarray]]:
    """The arguments a small step forward and backward, in their own type."""
    steps = [(t * t.dtype.type(EPS)).astype(t.dtype) for t in tangents]
    return [[a + sign * s for a, s in zip(arrays, steps, strict=True)] for sign in (1, -1)]


def _differs(found, tangents, cotangents, gradients) -> str:
    """Compare two equal calls, then Re⟨J tangent, cotangent⟩ with Re⟨tangent, gradient⟩."""
    primal, again, plus, minus = found
    for y, z in zip(primal, again, strict=True):
        if why := of_shape(y, z) or _near(y, z, TOLERANCE * y.size):
            return f"two calls: {why}"
    if [g.shape for g in gradients] != [t.shape for t in tangents]:
        return "gradients of another shape"
    slopes = [
        np.where(p == m, 0, p - m) * p.real.dtype.type(0.5 / EPS)
        for p, m in zip(plus, minus, strict=True)
    ]
    wanted, came = _inner(slopes, cotangents), _inner(tangents, gradients)
    why = _near(np.array(came), np.array(wanted), TOLERANCE)
    return why and f"slope {came:.4g}, by differences {wanted:.4g}"


def _near(found, truth, tolerance: float) -> str:
    """As `near`, with NaN equal to NaN."""
    both = np.isnan(found) & np.isnan(truth)
    return near(np.where(both, 0, found), np.where(both, 0, truth), tolerance, tolerance)


def _inner(xs, ys) -> np.float32:
    return np.float32(sum(np.vdot(x, y).real for x, y in zip(xs, ys, strict=True)))


def _like(a, rng):
    x = rng.standard_normal(a.shape)
    return (x + 1j * rng.standard_normal(a.shape) if a.dtype.kind == "c" else x).astype(a.dtype)


@cache
def _small(op: Operator, dtype: str) -> Trial:
    return trial_of(op, dtype, SIZES, {}, seed=0)
