"""Helpers of tests of scans and short convolutions: roles and arguments."""

import numpy as np
import pytest

from refssm.scan import (
    DIAGONAL_SSM,
    DIAGONAL_SSM_BIDIRECTIONAL,
    DIAGONAL_SSM_REAL,
    DIAGONAL_SSM_REAL_STATEFUL,
    DIAGONAL_SSM_STATEFUL,
    DIAGONAL_SSM_VARYING,
    DIAGONAL_SSM_VARYING_STATEFUL,
)

FROM_REST = [DIAGONAL_SSM, DIAGONAL_SSM_VARYING, DIAGONAL_SSM_REAL]
STATEFUL = [DIAGONAL_SSM_STATEFUL, DIAGONAL_SSM_VARYING_STATEFUL, DIAGONAL_SSM_REAL_STATEFUL]
DIAGONAL = [*FROM_REST, *STATEFUL, DIAGONAL_SSM_BIDIRECTIONAL]
VARYING = (DIAGONAL_SSM_VARYING, DIAGONAL_SSM_VARYING_STATEFUL)
PAIRED = (DIAGONAL_SSM_REAL, DIAGONAL_SSM_REAL_STATEFUL)  # each stored mode counts twice

ROLES = ("reference", "jit")
TYPES = ("float32", "float64", "complex64", "complex128")
each_role = pytest.mark.parametrize("role", ROLES)
each_type = pytest.mark.parametrize("dtype", TYPES)


def is_complex(dtype):
    return np.dtype(dtype).kind == "c"


def random(seed, *shapes, dtype="float64"):
    """Random numbers of modulus about 1; complex for a complex dtype."""
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((2, *shape)) for shape in shapes]
    return [(p[0] + 1j * p[1] if is_complex(dtype) else p[0]).astype(dtype) for p in parts]


def integers(seed, *shapes, dtype="float64"):
    """Random integers from -2 to 2, so that nothing rounds."""
    rng = np.random.default_rng(seed)
    parts = [rng.integers(-2, 3, (2, *shape)) for shape in shapes]
    return [(p[0] + 1j * p[1] if is_complex(dtype) else p[0]).astype(dtype) for p in parts]


def shapes_of(op, **sizes):
    """The core shapes of the arguments: sizes by letter; "2n" is twice n."""
    sizes = {"l": 6, "n": 3, "m": 2, "p": 2, "t": 3} | sizes
    double = {f"2{letter}": 2 * size for letter, size in sizes.items()}
    return [tuple((sizes | double)[d] for d in dims) for dims in op.input_dims]


def drawn(op, seed, draw=integers, dtype="float64", **sizes):
    """Random arguments of `op`; real or boolean where it requires them."""
    arrays = draw(seed, *shapes_of(op, **sizes), dtype=dtype)
    real = [domain.kind == "real" for domain in op.inputs.values()]
    arrays = [a.real.copy() if r else a for a, r in zip(arrays, real, strict=True)]
    flags = [name in op.discrete for name in op.inputs]
    return [a.real > 0 if f else a for a, f in zip(arrays, flags, strict=True)]


def several(y):
    """The outputs of an operator, always as a tuple."""
    return y if isinstance(y, tuple) else (y,)


def same(y, wanted):
    """True if all outputs are equal in numbers, shape and type."""
    pairs = list(zip(several(y), several(wanted), strict=True))
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)
