import itertools

import numpy as np
import pytest

from refssm._numerics.broadcasting import unbroadcast

SHAPES = [
    ((), ()),
    ((3,), (3,)),
    ((3,), (1,)),
    ((3,), ()),
    ((2, 3), (3,)),
    ((2, 3), (1, 3)),
    ((2, 3), (2, 1)),
    ((2, 3), (1, 1)),
    ((4, 1, 3), (1, 3)),
    ((4, 2, 3), (2, 1)),
    ((4, 2, 3), (4, 1, 3)),
    ((1, 1), (1, 1)),
    ((1, 5), (5,)),
    ((0, 3), (1, 3)),
    ((2, 0), (0,)),
    ((0,), (1,)),
]

KINDS = list(itertools.product([float, complex], repeat=2))


def by_definition(cotangent, primal):
    """Add every entry of the cotangent to the primal entry from which it was broadcast."""
    source = np.broadcast_to(np.arange(primal.size).reshape(primal.shape), cotangent.shape)
    total = np.zeros(primal.size, cotangent.dtype)
    for i in np.ndindex(*cotangent.shape):
        total[source[i]] += cotangent[i]
    total = total.reshape(primal.shape)
    return total if np.iscomplexobj(primal) else total.real


def integers(shape, dtype, seed):
    real, imag = np.random.default_rng(seed).integers(-8, 9, (2, *shape))
    return (real + 1j * imag).astype(dtype) if dtype is complex else real.astype(dtype)


@pytest.mark.parametrize(("wide", "narrow"), SHAPES, ids=str)
@pytest.mark.parametrize("kinds", KINDS, ids=str)
def test_the_inverse_of_broadcasting_is_the_sum_over_copies(wide, narrow, kinds):
    cotangent, primal = integers(wide, kinds[0], 1), integers(narrow, kinds[1], 2)
    folded = unbroadcast(cotangent, primal)
    assert folded.shape == primal.shape
    assert np.array_equal(folded, by_definition(cotangent, primal))
    assert np.iscomplexobj(folded) == (kinds[1] is complex)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "g"])
def test_precision_is_that_of_the_cotangent(dtype):
    for shape in ((1, 3), (2, 3)):
        folded = unbroadcast(np.ones((2, 3), dtype), np.ones(shape, dtype))
        assert folded.dtype == np.dtype(dtype)


def test_it_is_the_adjoint_of_broadcast_to():
    for seed, (wide, narrow) in enumerate(SHAPES):
        cotangent, tangent = integers(wide, float, seed), integers(narrow, float, 100 + seed)
        pushed = np.broadcast_to(tangent, wide)
        assert (cotangent * pushed).sum() == (unbroadcast(cotangent, tangent) * tangent).sum()
