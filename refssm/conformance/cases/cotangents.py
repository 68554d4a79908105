"""Cotangents: what the VJP of an operator is given beside the arguments of a case."""

from __future__ import annotations

import numpy as np

from refssm._declaration.arguments import several
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.scaled import has_scale, with_excess


def cotangents_of(case: Case, arrays, statics, views) -> tuple[list[np.ndarray], str]:
    """Cotangents of a case, random, one-hot or one broadcast number, and a view among `views`."""
    op, rng, cotangents, view = case.op, case.generator(700), [], ""
    shapes, types = op.output_shapes(*arrays, **statics), op.output_types(*arrays)
    for shape, dtype in zip(shapes, types, strict=True):
        style = int(rng.integers(4))
        d = random_like(shape, dtype, rng)
        if style == 1:
            d = d * (np.arange(d.size) == rng.integers(max(d.size, 1))).reshape(shape)
            view = "negative strides" if "negative strides" in views else "every other entry"
        elif style == 2 and d.size:
            d, view = np.broadcast_to(d.ravel()[:1].reshape((1,) * len(shape)), shape), "expanded"
        elif style == 3:
            view = "column-major"
        cotangents.append(case.type.rounded(d, real=not np.iscomplexobj(d)))
    if has_scale(op):
        with np.errstate(all="ignore"):
            outputs = several(op.reference(*(a.astype(float) if a.dtype.kind == "f" else a
                                             for a in arrays), **statics))  # fmt: skip
        dm = with_excess(op, cotangents, outputs)[-1]
        cotangents[-1] = case.type.rounded(dm, real=True)
    return cotangents, view if view in views else ""


def random_like(shape, dtype, rng) -> np.ndarray:
    """Normal random numbers in double precision, complex for a complex type."""
    d = rng.standard_normal(shape)
    return d + 1j * rng.standard_normal(shape) if dtype.kind == "c" else d
