"""Whether outputs and gradients of a mirror are within the judge's bounds, at sizes of a test."""

import numpy as np
import pytest
from on_target import given, taken
from rotation import ROTATION, of_turn

from refssm.conformance.judging.expected import expect, judged_type
from refssm.conformance.judging.grading import compare, grade_outputs
from refssm.conformance.standard import Standard
from refssm_gpu._launching.kernel import FIELDS as TYPES

TURN = TYPES[ROTATION % len(TYPES)]  # the type of this run


def held(arrays) -> Standard:
    """The standard of all mirrors: subnormal numbers may become zero, as CuPy compiles kernels."""
    return Standard.of(judged_type(arrays), ftz=True)


def assert_right(op, mirror, *arrays, **statics):
    """The mirror's outputs are within the judge's bound of the reference's."""
    y = taken(mirror(*given(*arrays), **statics))
    gauged = expect(op, arrays, statics, standard=held(arrays))
    y = y if isinstance(y, tuple) else (y,)
    verdict = grade_outputs(op, arrays, y, gauged, standard=held(arrays))
    assert verdict.ok, verdict


def assert_gradients_right(op, mirror_vjp, *arrays, **statics):
    """So are the gradients for a random cotangent, each entry by its own bound."""
    y = op.reference(*arrays, **statics)
    r = np.random.default_rng(y.size)
    dy = r.standard_normal(y.shape) + (
        1j * r.standard_normal(y.shape) if y.dtype.kind == "c" else 0
    )
    dy = dy.astype(y.dtype)
    found = taken(mirror_vjp(*given(dy, *arrays), **statics))
    gauged = expect(op, [dy, *arrays], statics, op.bare_vjp, held(arrays))
    for g, gauge, x in zip(found, gauged, arrays, strict=True):
        assert g.shape == x.shape
        verdict = compare(g, gauge, g.dtype, standard=held([g]))
        assert verdict.ok, verdict


def a_third(bugs):
    """Planted bugs as parameters: a third in each default run, all in the long one."""
    return [pytest.param(bug, marks=() if of_turn(bug, 3) else pytest.mark.long) for bug in bugs]


def dtype_of(kind):
    """The NumPy type of this name; skips the test where bfloat16 is missing."""
    if kind != "bfloat16":
        return np.dtype(kind)
    return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)


def normal(kind, *shape, seed=0):
    """Standard normal numbers of this type."""
    r = np.random.default_rng(seed)
    x = r.standard_normal(shape)
    return (x + 1j * r.standard_normal(shape) if np.dtype(kind).kind == "c" else x).astype(kind)
