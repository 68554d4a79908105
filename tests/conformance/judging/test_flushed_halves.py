"""float16 kernels that compute in float32 and flush: what the declaration allows, and what not."""

import numpy as np
import pytest
from judging import judged

from refssm.conformance.standard import Standard
from refssm.testing import Budget

TINY = 2.0**-14  # the smallest normal number of float16
DECLARED = {"dtypes": ("float16",), "ftz": True, "accuracy": Budget(computes="float32")}


def flushed(x):
    return np.where(np.abs(x) < TINY, 0, x).astype(np.float16)


def kernel(a, b, state: type = np.float32):
    """A float16 scan in float32 arithmetic whose results are flushed to zero below 2^-14."""
    a, b = a.astype(np.float32), b.astype(np.float32)
    x, s = np.zeros(b.shape, np.float32), np.zeros_like(b[..., 0, :])
    for k in range(b.shape[-2]):
        s = (a[..., k, :] * s + b[..., k, :]).astype(state).astype(np.float32)
        x[..., k, :] = s
    return flushed(x)


def state_in_half(a, b):
    return kernel(a, b, np.float16)


def value(function, **declared):
    (line,) = judged("linear_scan", function, "value", profile="default", **declared)
    return line


@pytest.mark.parametrize("seed", range(3))
def test_results_that_are_flushed_once_pass(seed):
    assert value(kernel, **DECLARED, seed=seed).verdict == "pass"


def test_a_state_in_float16_is_not_float32_arithmetic():
    line = value(state_in_half, **DECLARED)
    assert (line.verdict, line.grade) == ("inaccurate", "C")


def test_a_state_in_float16_passes_where_float16_is_declared():
    declared = DECLARED | {"accuracy": Budget()}
    assert value(state_in_half, **declared).verdict == "pass"


def test_results_that_are_all_subnormal_may_be_flushed_with_the_declaration_only():
    small = DECLARED | {"where": ("a=0..0.5", "b=1e-6..1e-5")}
    assert value(kernel, **small).verdict == "pass"
    line = value(kernel, **(small | {"ftz": False}))
    assert (line.verdict, line.grade) == ("wrong", "F")
    assert line.failing == line.examples > 0


# judged type, arithmetic, ν of the arithmetic, ν of the judged type
STANDARDS = [
    ("float16", "float32", 2.0**-126, TINY),
    ("float16", "", TINY, TINY),
    ("bfloat16", "float32", 2.0**-126, 2.0**-126),
    ("float32", "tf32", 2.0**-126, 2.0**-126),
    ("float32", "float16", TINY, 2.0**-126),
    ("float64", "float32", 2.0**-126, 2.0**-1022),
]


@pytest.mark.parametrize(("dtype", "computes", "tiny", "own"), STANDARDS)
def test_what_is_flushed_is_flushed_in_the_type_that_has_it(dtype, computes, tiny, own):
    held = Standard.of(dtype, Budget(computes=computes), ftz=True)
    assert held.floor * held.u == tiny  # one rounding of the arithmetic
    # a copy, after multiplication by the allowed ratio: its own smallest number, once
    assert held.copied * held.u * held.room == max(own, held.room * tiny)
    assert Standard.of(dtype, Budget(computes=computes)).floor == tiny
