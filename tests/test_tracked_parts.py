"""Products of two computed sums in a gradient: autodiff of a schedule multiplies parts of them."""

import numpy as np
import pytest

from refssm.conformance.gauge import gauges
from refssm.conformance.honest.scan import hillis_steele_vjp
from refssm.scan import LINEAR_SCAN

U = 2.0**-53


def ratio(seed, partial):
    """The largest error of autodiff's gradient of a, in units of u·K0.

    Decays near −1, some of them 0: state and cotangent cancel at the same steps.
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
