"""The judge checks itself, and each reference against its oracle, before it judges others."""

from fractions import Fraction
from functools import cache

import numpy as np

from refssm import oracle
from refssm._declaration.arguments import several
from refssm._declaration.operator import Operator
from refssm.conformance.cases.case import Case, Knob
from refssm.conformance.cases.scaled import with_excess
from refssm.conformance.cases.sizes import core_dims
from refssm.conformance.gauges.contracts import bounds
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.gauges.recurrences.scales import of_the_reference
from refssm.conformance.judging.expected import expect_of_oracle, unit_roundoff
from refssm.conformance.judging.grading import grade_outputs, judge
from refssm.conformance.standard import C
from refssm.domains import DISCRETE, Domain, Static
from refssm.scan import LINEAR_SCAN

CERTIFIED_SIZES = ({"l": 1, "n": 1}, {"l": 4, "n": 2}, {"l": 7, "n": 3})


def refuse_if_wrong() -> None:
    """Judge an exact integer scan that is right, late, or NaN; RuntimeError if not A, F, F."""
    a = np.array([[1.0], [-2.0], [3.0], [0.0]], dtype=np.float32)
    b = np.array([[5.0], [7.0], [-11.0], [13.0]], dtype=np.float32)
    x, exact = Fraction(0), []
    for a_k, b_k in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True):
        x = Fraction(a_k) * x + Fraction(b_k)
        exact.append(float(x))
    right = np.array(exact, dtype=np.float32).reshape(4, 1)
    late = np.concatenate([right[:1] * 0, right[:-1]])
    poisoned = np.where(right == 13, np.float32(np.nan), right)
    grades = [judge(LINEAR_SCAN, lambda *_, y=y: y, a, b).grade for y in (right, late, poisoned)]
    if grades != ["A", "F", "F"]:
        raise RuntimeError(
            f"refssm grades exact integers wrongly on this machine: {grades}, want A F F"
        )


def certify(op: Operator) -> str:
    """Why the reference of `op` cannot be trusted (value or VJP differs from the oracle), or ""."""
    try:
        op.implementation("oracle")
    except (ModuleNotFoundError, AttributeError) as error:
        return f"there is no oracle: {error}"
    for case in _small_cases(op):
        with np.errstate(all="ignore"):
            y = op.reference(*case.arrays, **case.statics)
        outputs = several(y)
        if not all(np.isfinite(y).all() for y in outputs):
            return "refssm's reference is not finite on a case without special values"
        wanted = expect_of_oracle(op, case.arrays, case.statics)
        verdict = grade_outputs(op, case.arrays, outputs, wanted)
        if verdict.grade != "A":
            return f"refssm's reference disagrees with its oracle: {verdict.message}"
        slip = adjoint_slip(op, op.bare_vjp, case) if op.differentiable else 0.0
        if not slip <= C:
            return f"refssm's VJP disagrees with the derivative of its oracle: ratio {slip:.2g}"
    return ""


def adjoint_slip(op: Operator, vjp, case: Case) -> float:
    """|Re⟨dy, J t⟩ − Re⟨vjp(dy), t⟩| in units of u·K of the VJP, with J t from the oracle.

    The largest over the arguments, with one tangent for each argument, so that a large gradient
    does not hide the error of a small one. It has the signs of the gradient, so that no entry of a
    wrong gradient cancels another.
    """
    arrays, rng = case.arrays, case.generator(600)
    shapes, types = op.output_shapes(*arrays, **case.statics), op.output_types(*arrays)
    cotangents = [_direction(rng, s, t.kind == "c") for s, t in zip(shapes, types, strict=True)]
    outputs = several(op.reference(*arrays, **case.statics))
    cotangents = with_excess(op, cotangents, outputs)
    gauged = expect_vjp(op, cotangents, arrays, case.statics)
    pulled = [g for g in vjp(*cotangents, *arrays, **case.statics) if g is not None]
    places = [i for i, name in enumerate(op.inputs) if name not in op.discrete]
    sizes = (float(np.abs(c * y).sum()) for c, y in zip(cotangents, outputs, strict=True))
    noise, slips = oracle.RESOLUTION * sum(sizes), [0.0]
    for i, g, gauge in zip(places, pulled, gauged, strict=True):
        tangents: list[np.ndarray] = [np.zeros(a.shape) for a in arrays]
        tangents[i] = _along(g, _direction(rng, arrays[i].shape, np.iscomplexobj(arrays[i])))
        pushed = oracle.derivative(op, arrays, tangents, **case.statics)
        slips.append(_slip(cotangents, pushed, g, gauge, tangents[i], noise))
    return max(slips, key=lambda slip: (slip != slip, slip))  # NaN counts as the largest


def _along(g, direction):
    """The moduli of `direction` with the signs (phases) of g, itself where g is 0 or no number."""
    with np.errstate(all="ignore"):
        turned = np.abs(direction) * g / np.abs(g)
    return np.where(np.isfinite(turned), turned, direction)


def _slip(cotangents, pushed, g, gauge, t, noise) -> float:
    """The difference of the identity's two sides for one argument; 0 below the oracle's noise."""
    left = sum(_inner(c, p) for c, p in zip(cotangents, pushed, strict=True))
    scale = float((gauge.k0 * abs(t)).sum())
    scale += sum(float(abs(c * p).sum()) for c, p in zip(cotangents, pushed, strict=True))
    difference = abs(left - _inner(g, t))
    if difference <= noise:  # false for NaN
        return 0.0
    return difference / scale / unit_roundoff(np.float64) if scale else difference


def expect_vjp(op: Operator, cotangents, arrays, statics) -> tuple[Gauge, ...]:
    """The gauges of the reference's VJP in double precision, with its own values."""
    u = unit_roundoff(np.float64)
    floor = float(np.finfo(np.float64).tiny)  # decays may underflow
    with of_the_reference():
        return bounds(op, [*cotangents, *arrays], statics, op.bare_vjp, unit=u, floor=floor)


def _inner(a, b) -> float:
    """Re⟨a, b⟩, summed in long double."""
    return float(np.sum((np.conj(a) * b).real.astype(np.longdouble)))


def _direction(rng, shape, is_complex):
    real = rng.standard_normal(shape)
    return real + 1j * rng.standard_normal(shape) if is_complex else real


def _small_cases(op: Operator):
    """Small cases in double precision: three sizes, each with other maps of the domains."""
    for step, sizes in enumerate(CERTIFIED_SIZES):
        kinds = ["f8", "c16"] if op.inputs else ["f8"]
        kinds = ["c16"] if any(d.kind == "complex" for d in op.inputs.values()) else kinds
        for kind in kinds:
            knobs = {
                name: Knob(_map(d, step), "each", kind == "f8" or d.real)
                for name, d in op.inputs.items()
            }
            core = {dim: sizes.get(dim, 2) for dim in core_dims(op)}
            batch = dict.fromkeys(op.batch_names, 2)
            counts = {name: _count(c, step, sizes["l"]) for name, c in op.parameters.items()}
            core |= {dim: _smallest(op.parameters[dim], step) for dim in core if dim in counts}
            counts = {name: value for name, value in counts.items() if name not in core}
            yield Case(op, np.dtype(kind), core, batch, knobs, step, None, counts)


def _map(domain: Domain, step: int) -> str:
    """Map number `step` of the domain, cyclically; of flags and offsets only the last tame ones."""
    names = domain.tame[-2:] if domain.kind in DISCRETE else list(domain.maps)
    return names[step % len(names)]


def _smallest(counts: Static, step: int) -> int:
    """The value at rank `step` among the parameter's values."""
    return int(sorted(set(counts.values))[step])


def _count(counts: Static, step: int, l: int) -> int | float:
    """Value number `step`, cyclically; preferably of those that divide l with a remainder."""
    values = [v for v in counts.values if 1 < v < l and l % v] or list(counts.values)
    return values[step % len(values)]


certified = cache(certify)  # once for each operator
