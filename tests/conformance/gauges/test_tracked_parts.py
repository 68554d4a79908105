"""Products of two computed sums in a gradient: autodiff of a schedule multiplies partial sums."""

import numpy as np
import pytest

from refssm._numerics.broadcasting import unbroadcast
from refssm.conformance.gauges.gauge import gauges
from refssm.scan import LINEAR_SCAN

U = 2.0**-53


def hillis_steele_vjp(dx, a, b):
    """Autodiff of Hillis and Steele's schedule, pass by pass."""
    dtype = np.result_type(dx, a, b)
    shape = np.broadcast_shapes(a.shape, b.shape)
    decay, x = (np.broadcast_to(y, shape).astype(dtype) for y in (a, b))
    passes, step = [], 1
    while step < shape[-2]:
        early, late = (..., slice(None, -step), slice(None)), (..., slice(step, None), slice(None))
        passes.append((early, late, decay, x))
        decay, x = decay.copy(), x.copy()
        x[late] += passes[-1][2][late] * passes[-1][3][early]
        decay[late] *= passes[-1][2][early]
        step *= 2
    da, db = np.zeros(shape, dtype), dx.astype(dtype)
    for early, late, decay, x in reversed(passes):
        before, da, dstate = da, da.copy(), db[late].copy()
        da[late] = dstate * x[early].conj() + before[late] * decay[early].conj()
        da[early] += before[late] * decay[late].conj()
        db[early] += dstate * decay[late].conj()
    return unbroadcast(da, a), unbroadcast(db, b)


def ratio(seed, partial):
    """The largest error of autodiff's gradient of a, in units of u·K0.

    Decays are near −1, some are 0: state and cotangent cancel at the same steps.
    """
    rng = np.random.default_rng(seed)
    a = -(1 - 10.0 ** -rng.uniform(2, 5, (33, 1)))
    a[rng.random((33, 1)) < 0.2] = 0
    b, dx = np.full_like(a, 0.86215076), np.ones_like(a)
    exact, _ = LINEAR_SCAN.bare_vjp(*(x.astype(np.longdouble) for x in (dx, a, b)))
    gauge, _ = gauges(LINEAR_SCAN.bare_vjp, dx, a, b, unit=U, partial=partial)
    error = np.abs(hillis_steele_vjp(dx, a, b)[0] - exact).astype(float)
    judged = gauge.k0 > 0
    return np.max(error[judged] / (U * gauge.k0[judged]))


@pytest.mark.parametrize("seed", [49, 53, 86, 100, 241, 347, 358])
def test_autodiff_of_a_schedule_is_no_worse_than_the_parts_it_multiplies(seed):
    assert ratio(seed, partial=True) <= 16


def test_without_the_parts_it_would_be_rejected():
    assert ratio(100, partial=False) > 1000


def test_a_product_with_an_input_is_charged_as_it_was():
    a, b = np.random.default_rng(2).standard_normal((2, 9, 3))
    plain, parts = (
        gauges(LINEAR_SCAN.reference, a, b, unit=U, partial=partial)[0] for partial in (False, True)
    )
    assert np.array_equal(plain.k0, parts.k0)


def test_a_bound_that_is_not_defined_is_no_bound():
    (gauge,) = gauges(lambda x: np.exp(-(x * x)), np.array([1e200, 0.0]), unit=U)
    assert gauge.value.tolist() == [0, 1]
    assert np.isinf([gauge.k0[0], gauge.k1[0]]).all()
    assert np.isfinite([gauge.k0[1], gauge.k1[1]]).all()
