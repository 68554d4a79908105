"""Compare what no choice of basis changes; eigenvectors are never compared entry by entry.

A decomposition is right for any phase, any order of the modes, and any basis of a double
eigenvalue. The operator's definition computes invariants from its outputs: quantities that none of
these choices changes. Two invariants are compared in the Frobenius norm, spectra after the best
matching.
"""

import numpy as np

from refssm._declaration.contract import Invariant
from refssm._declaration.operator import Operator
from refssm.conformance.gauges.gauge import Gauge, wide
from refssm.conformance.judging.verdict import (
    CLASSES,
    Verdict,
    kind_of,
    misfit,
    told_apart,
    types_in,
    worst_of,
    wrong,
)
from refssm.conformance.standard import HALF_PRECISION, Standard

OTHER_ORDER = "the modes come in another order than the operator's page promises"


def grade_invariants(
    op: Operator, outputs, gauged: tuple[Gauge, ...], standard: Standard
) -> Verdict:
    """Grade ‖ŷ − y‖_F against n·scale for each invariant; return the worst verdict."""
    types = types_in(op, (), standard)
    for y, gauge, dtype, name in zip(outputs, gauged, types, op.outputs, strict=True):
        unfit = misfit(y, gauge.value.shape, dtype, name, either=True) or _not_finite(y, name)
        if unfit:
            return wrong(unfit, kind=f"shape or type of `{name}`")
    got, want = (_invariants(op, ys) for ys in (outputs, [g.value for g in gauged]))
    size = max(1, *(n for g in gauged for n in g.value.shape))
    told = [_compared(a, b, size, standard) for a, b in zip(got, want, strict=True)]
    return worst_of(told) if told else Verdict("A")


def _invariants(op, outputs) -> list[Invariant]:
    """The invariants in long double if the machine has it, because residuals are differences."""
    assert op.definition is not None
    with np.errstate(all="ignore"):
        return list(op.definition(*wide(outputs, np.longdouble)))


def _not_finite(y, name) -> str:
    bad = np.argwhere(kind_of(y) != 0)
    if not bad.size:
        return ""
    place = tuple(int(j) for j in bad[0])
    return f"worst {name}{list(place)}: got {y[place]:.6g} ({CLASSES[kind_of(y[place])]})"


def _compared(got: Invariant, want: Invariant, size: int, standard: Standard) -> Verdict:
    """The grade of one invariant: A, C or F."""
    error, allowed = distance(got, want), standard.room * standard.u * size * want.scale
    ratio = standard.room * error / allowed if allowed else (0.0 if error == 0 else np.inf)
    grade = "A" if error <= allowed else "F"  # F for NaN
    if grade == "F" and error <= allowed * HALF_PRECISION / standard.u:
        grade = "C"
    bits = -np.log2(standard.u) - (max(0.0, np.log2(ratio)) if ratio > 0 else 0.0)
    if grade == "A":
        far = np.sqrt((np.abs(got.value - want.value) ** 2).sum()) > allowed
        notes = (OTHER_ORDER,) if want.ordered and far else ()
        return Verdict(grade, ratio, bits, notes=notes, allowed=standard.room)
    norm = " in norm" * (np.ndim(want.value) > 0)
    message = f"worst {want.name}: the error is {error:.2e}{norm}, allowed {allowed:.1e}"
    return Verdict(
        grade, ratio, max(0.0, bits), f"{message}{_where(got, want)}", allowed=standard.room
    )


def distance(got: Invariant, want: Invariant) -> float:
    """‖got − want‖_F; for spectra, after the matching with the least distance."""
    a, b = got.value, want.value
    if want.matched:
        b = b[matching(a, b)]
    return float(np.sqrt((np.abs(a - b) ** 2).sum()))


def matching(a, b) -> np.ndarray:
    """For each entry of `a` the index of its partner in `b`: least sum of squared distances."""
    from scipy.optimize import linear_sum_assignment  # a sixth of the imports of every process

    cost = np.abs(a[:, None] - b[None, :]).astype(float) ** 2
    return linear_sum_assignment(cost)[1]


def _where(got: Invariant, want: Invariant) -> str:
    """Text on the entry with the largest difference."""
    a, b = got.value, want.value
    b = b[matching(a, b)] if want.matched else b
    if not a.size:
        return ""
    i = np.unravel_index(int(np.argmax(np.abs(a - b))), a.shape)
    at = "" if want.matched or not i else f" at [{', '.join(map(str, i))}]"
    kind = complex if np.iscomplexobj(a) or np.iscomplexobj(b) else float
    got_there, wanted = told_apart(kind(a[i]), kind(b[i]))
    return f"; largest error{at}: got {got_there}, want {wanted}"
