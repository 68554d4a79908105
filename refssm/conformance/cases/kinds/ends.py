"""Cases at the ends of domains, of operators whose arguments have few entries.

An argument with a time axis has thousands of entries in a check, and some lie near each end of its
domain. A step, or a discretization, has one number for each channel: a clamp at the end of a domain
would be met in few seeds. So some cases have numbers of the last 32nd part of their maps only.

And where a softplus is taken, one case has pre-activations above places at which programs change to
a linear function.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.cases.case import NOWHERE, PARTS_AT_ENDS, Case, Knob, plain_map, simplest
from refssm.conformance.cases.sampling import Choices, Sampler, sampler
from refssm.conformance.cases.sizes import core_dims
from refssm.conformance.number_types import number_type
from refssm.domains import DISCRETE, Domain

STEPS, SIZES, MEMBERS = (9, 5, 16), (2, 3, 1), 3
MANY = 16
KINDS = ("small steps", "low", "high", "mixed", "mixed")
NEAR_0, NEAR_1 = PARTS_AT_ENDS


def samplers(op: Operator, dtype, between: Mapping = NOWHERE) -> tuple[Sampler, ...]:
    """A sampler for each case of an operator; none in 16-bit types, which have small ranges."""
    if number_type(dtype).half:
        return ()
    kinds = KINDS if op.name.endswith("_step") or op.family == "discretize" else ()
    if any("bend" in domain.structured.get("bend", ()) for domain in op.inputs.values()):
        kinds = (*kinds, "bend")
    return tuple(cases_at_ends(op, dtype, kind, between) for kind in kinds)


@sampler
def cases_at_ends(draw: Choices, op: Operator, dtype, kind: str, between: Mapping = NOWHERE):
    """Cases of one kind, with small sizes and many members."""
    carrier = number_type(dtype).carrier
    core = {d: draw.one_of(STEPS if d == "l" else SIZES) for d in core_dims(op)}
    if kind == "bend":  # one step: no grade N of long sums of logarithms
        core |= {d: 1 for d in ("l", "n") if d in core}
    core |= {"r": 1} if "r" in core else {}
    usual = simplest(op)
    core |= {dim: int(usual.pop(dim)) for dim in core if dim in usual}
    for dim, (low, high) in between.items():
        core |= {dim: int(min(max(core[dim], low), high))} if dim in core else {}
    members, others = (MANY, MEMBERS) if kind == "bend" else (MEMBERS, 2)
    batch = {axis: members if axis == op.batch_names[-1] else others for axis in op.batch_names}
    real = carrier.kind == "f"
    knobs = {n: _knob(draw, d, kind, d.real or real) for n, d in op.inputs.items()}
    if kind == "bend" and "D" in knobs:  # what is added to the states' part dilutes its errors
        knobs["D"] = Knob(*end(op.inputs["D"], "low", knobs["D"].real), knobs["D"].real)
    return Case(op, carrier, core, batch, knobs, draw.below(2**32), None, usual)


def _knob(draw: Choices, domain: Domain, kind: str, real: bool) -> Knob:
    """The knob of one argument: at an end of its domain, or ordinary."""
    if kind == "bend":  # all else is simple, and one state: so few other roundings hide a bend
        (texture,) = domain.structured.get("bend", ("each",))
        name = end(domain, "high", real)[0] if texture == NEAR_1 else next(iter(domain.maps))
        return Knob(name, texture, real)
    side = draw.one_of(("low", "high")) if kind == "mixed" else kind
    if kind == "small steps":  # so what is small beside the identity has small entries, too
        side = "low" if domain.kind == "real" else ""
    if side not in ("low", "high") or not _has_ends(domain):
        gaps = kind == "small steps" and "gaps" in domain.textures
        return Knob(plain_map(domain), "gaps" if gaps else domain.tame_textures[0], real)
    name, texture = end(domain, side, real)
    return Knob(name, texture, real)


def _has_ends(domain: Domain) -> bool:
    """True if its entries are drawn one by one, and nothing is made of all of them."""
    return not (domain.kind in DISCRETE or domain.fit or domain.follows or domain.meets)


def end(domain: Domain, side: str, real: bool) -> tuple[str, str]:
    """The map and the texture with the smallest moduli above 0, or with the largest."""
    found = []
    for name in domain.maps:
        for texture, place in ((NEAR_0, 0.0), (NEAR_1, 1.0)):
            a = np.full(3, place)
            size = np.abs(domain.draw(name, a, np.array([0.0, 0.5, 1.0]), real))
            found.append((float(size.min() if side == "low" else size.max()), name, texture))
    inside = [one for one in found if one[0] > 0] or found
    _, name, texture = (min if side == "low" else max)(inside, key=lambda one: one[0])
    return name, texture
