"""Arguments of selective scans and of state-space duality, for tests."""

from itertools import pairwise

import numpy as np
import pytest

TYPES = ("float32", "float64", "complex64", "complex128")
ROLES = ("reference", "jit")
each_role = pytest.mark.parametrize("role", ROLES)
each_type = pytest.mark.parametrize("dtype", TYPES)
REAL = ("dt", "z", "dt_bias", "resets")
SATURATED = 50  # above this, softplus and SiLU round to the identity, and their slopes to 1


def usual(op, seed, dtype="float64", batch=None, **sizes):
    """Arguments as in a model: step sizes above 0, decays below 1, ordinary magnitudes."""
    rng, arrays = np.random.default_rng(seed), []
    for name, shape in zip(op.inputs, shapes(op, batch, sizes), strict=True):
        a, b = rng.standard_normal((2, *shape))
        phases = np.dtype(dtype).kind == "c" and name not in REAL
        x = _arranged(op, name, a) + 1j * b * phases
        arrays.append(np.array(x if phases else x.real, _kind(name, dtype)))
    return arrays


def exact(op, seed, dtype="float64", batch=None, **sizes):
    """Arguments without decay, from small integers: nothing rounds, in any form."""
    rng, arrays = np.random.default_rng(seed), []
    for name, shape in zip(op.inputs, shapes(op, batch, sizes), strict=True):
        x = rng.integers(-2, 3, shape)
        if name in ("A", "log_a"):
            x = 0 * x
        elif name in ("dt", "z"):
            x = abs(x) + (SATURATED if "dt_bias" in op.inputs else 0)
        elif name == "dt_bias":
            x = abs(x)
        arrays.append(np.array(x > 0 if name == "resets" else x, _kind(name, dtype)))
    return arrays


def shapes(op, batch=None, sizes=None):
    """The shapes of the arguments; batch axes, and among them groups, only if sizes are given."""
    sizes, batch = {"l": 7, "n": 3, "p": 2} | (sizes or {}), batch or {}
    without = {-2} if "g" in op.batch_names and "g" not in batch else set()
    for axes, dims in zip(op.batch_axes, op.input_dims, strict=True):
        places = [i - len(axes) for i in range(len(axes) if batch else 0)]
        leading = [batch.get(axes[i], 1) for i in places if i not in without]
        yield (*leading, *(sizes[d] for d in dims))


def _arranged(op, name, a):
    if name == "dt" and "dt_bias" not in op.inputs:
        return np.exp(a - 1)
    if name in ("A", "log_a"):
        return -np.exp(a)
    return a < -0.5 if name == "resets" else a


def _kind(name, dtype):
    if name == "resets":
        return bool
    return np.finfo(dtype).dtype if name in REAL else dtype


def sequences(resets):
    """The windows of the packed sequences."""
    starts = [0, *np.flatnonzero(resets[1:]) + 1, len(resets)]
    return [slice(int(start), int(end)) for start, end in pairwise(starts)]


def alone(op, role, arrays, w, **statics):
    """The output of `op` for a window of time: arguments are cut along the axis l."""
    parts = []
    for a, dims in zip(arrays, op.input_dims, strict=True):
        behind = len(dims) - dims.index("l") - 1 if "l" in dims else None
        parts.append(a if behind is None else a[(..., w, *(slice(None),) * behind)])
    return op.implementation(role)(*parts, **statics)
