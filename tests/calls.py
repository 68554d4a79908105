"""Ordinary calls of every operator, for tests that run over the catalog."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from refssm._declaration.signature import length_of
from refssm.catalog import OPERATORS
from refssm.domains import Numbers, covariances
from refssm.domains.kalman import dominant

WITH_ARGUMENTS = [op for op in OPERATORS if op.inputs]
CONSTRUCTORS = [op for op in OPERATORS if op.constructor]
ROLES = [(o, role) for o in WITH_ARGUMENTS for role in ("reference", "jit") if role not in o.lacks]
MIRRORED = [op for op, role in ROLES if role == "jit"]
each_role = pytest.mark.parametrize(("op", "role"), ROLES, ids=[f"{op}-{r}" for op, r in ROLES])


def ordinary(op, dtype: DTypeLike = float, batch=(), size=3, **sizes):
    """Ones for every argument, with one batch shape; flags are False except the last one."""
    sizes = {d: size for dims in op.input_dims for d in dims if not d[0].isdigit()} | sizes
    return [
        filled(op, name, (*batch, *(length_of(d, sizes) for d in dims)), dtype, l=sizes.get("l", 0))
        for name, dims in zip(op.inputs, op.input_dims, strict=True)
    ]


def filled(op, name, shape, dtype: DTypeLike = float, number: float = 1, l=3):
    """An array full of one number; flags are False except at the last place, offsets at the end.

    Covariances have it on the diagonal, beside what keeps them positive definite.
    """
    if name in op.offsets:
        return np.full(shape, l)
    if name in op.discrete:
        return np.arange(np.prod(shape)).reshape(shape) == np.prod(shape) - 1
    kind = np.dtype(dtype)
    real = op.inputs[name].real and kind.kind == "c"
    whole = np.full(shape, number, kind.type(0).real.dtype if real else kind)
    return (
        dominant(whole).astype(whole.dtype)
        if op.inputs[name] is covariances and np.isfinite(number)
        else whole
    )


def also_empty(op, zero: str) -> str:
    """The size that is 0, too, where `zero` is: no sequence has no step."""
    return "l" if op.offsets and zero == "m" else ""


def times(arrays, factors):
    """Multiply each array by its own factor; flags and offsets stay."""
    return [a if a.dtype.kind in "bi" else f * a for a, f in zip(arrays, factors, strict=True)]


def statics(op, size=3):
    """A value for every keyword argument: a size, its simplest number, or a divisor of any size."""
    numbers = {n: d.values[0] for n, d in op.parameters.items() if isinstance(d, Numbers)}
    numbers |= {n: 1 for n, d in op.parameters.items() if getattr(d, "divides", "")}
    return dict.fromkeys(op.static, size) | numbers


def several(y):
    """The outputs of an operator, always as a tuple."""
    return y if isinstance(y, tuple) else (y,)
