"""Files beside a case, for its author and for the judge: expected values and allowed errors."""

from pathlib import Path

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.calling.finding import short
from refssm.conformance.checks.linear_laws import of_integers
from refssm.conformance.exchange.call import TypedCall
from refssm.conformance.file_errors import UNREADABLE, arrays
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.allowed import bounds_of
from refssm.conformance.judging.grading import HEADROOM, span_product
from refssm.conformance.judging.verdict import says_nothing
from refssm.conformance.standard import Standard
from refssm.conformance.usage_error import UsageError

GAUGE = "gauge.npz"  # the gauges, for the judge
FIELDS = ("value", "rest", "k0", "k1", "peak", "normwise")


def entrywise(op: Operator, gauged: tuple[Gauge, ...]) -> bool:
    """True if each entry has its own tolerance."""
    return not op.contract.basis_free and all(g.measure is None for g in gauged)


def largest_errors(
    call: TypedCall, arrays, gauged, standard: Standard, *, exact: bool
) -> list[np.ndarray]:
    """For each output the largest |ŷ − y| of each entry that passes with grade A or B.

    Infinity where nothing is judged; zero where the expected value is an exact integer, NaN or
    infinite.
    """
    op, tolerances = call.op, []
    primals = arrays[len(op.outputs) * call.vjp :]
    product = 0.0 if call.vjp else span_product(op, primals)
    overflow_limit = min(standard.type.max, standard.computes.max) / HEADROOM
    for j, (gauge, slot) in enumerate(zip(gauged, call.outputs, strict=True)):
        dtype = standard.type.carrier if standard.type.half else np.dtype(slot.dtype)
        with np.errstate(all="ignore"):
            bounds = bounds_of(gauge, standard, dtype)
            tolerance = bounds.own
        finite = np.isfinite(gauge.value)
        judged = finite & np.isfinite(gauge.k0)
        if exact and j == 0 and of_integers(op, standard, primals, gauge):
            tolerance = np.zeros_like(tolerance)
        nothing = gauge.normwise and says_nothing(gauge.value, bounds.a, judged)
        if max(gauge.peak, product) > overflow_limit or nothing:
            tolerance = np.full_like(tolerance, np.inf)
        else:
            tolerance = np.where(finite, np.where(judged, tolerance, np.inf), 0.0)
        tolerances.append(tolerance)
    return tolerances


def nearest(value: np.ndarray) -> np.ndarray:
    """A value rounded to double precision."""
    return value.astype(np.result_type(np.float64, 1j if np.iscomplexobj(value) else 1.0))


def save(folder: Path, gauged: tuple[Gauge, ...]) -> None:
    """Write the gauges; a long double value is stored as a double and a remainder."""
    named = {}
    for j, g in enumerate(gauged):
        value = nearest(g.value)
        with np.errstate(all="ignore"):
            rest = np.where(np.isfinite(value), g.value - value, 0.0)
        parts = (value, nearest(rest), g.k0, g.k1, g.peak, g.normwise)
        named |= {f"{name}{j}": part for name, part in zip(FIELDS, parts, strict=True)}
    np.savez_compressed(folder / GAUGE, **named)


def load(path: Path, values) -> tuple[Gauge, ...]:
    """The gauges that `save` wrote; `values` is the number of outputs."""
    try:
        stored = arrays(path)
        return tuple(
            Gauge(
                _whole(stored[f"value{j}"], stored[f"rest{j}"]),
                stored[f"k0{j}"],
                stored[f"k1{j}"],
                float(stored[f"peak{j}"]),
                normwise=bool(stored[f"normwise{j}"]),
            )
            for j in range(values)
        )
    except UNREADABLE as error:
        raise UsageError(
            f"{path}: not written by `refssm cases write`: {short(f'{error}')}"
        ) from None


def _whole(value, rest) -> np.ndarray:
    if not rest.any():
        return value
    return value + rest.astype(np.result_type(rest, np.longdouble))
