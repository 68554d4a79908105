"""Ordinary calls of every operator, for the tests that run over the catalog."""

import numpy as np
import pytest

from refssm.catalog import OPERATORS

ROLES = [(op, role) for op in OPERATORS for role in ("reference", "jit") if role not in op.lacks]
MIRRORED = [op for op, role in ROLES if role == "jit"]
each_role = pytest.mark.parametrize(("op", "role"), ROLES, ids=[f"{op}-{r}" for op, r in ROLES])


def ordinary(op, dtype=float, batch=(), size=3):
    """Ones of every argument, one batch shape for all."""
    return [np.ones((*batch, *(size for _ in dims)), dtype) for dims in op.input_dims]


def statics(op, size=3):
    """Every keyword argument: a length."""
    return dict.fromkeys(op.static, size)


def several(y):
    """What an operator returned, always as a tuple."""
    return y if isinstance(y, tuple) else (y,)
