"""The judge's error rules for HOPE's parts, where the answer is known."""

# pyright: reportAttributeAccessIssue=false
# (functions return tracked arrays)

import numpy as np
import pytest

from refssm.conformance.gauges.contracts import bounds
from refssm.conformance.gauges.gauge import gauges
from refssm.conformance.gauges.tracked import Tracked, tracing
from refssm.hope import HOPE_KERNEL, HOPE_TRANSFER
from refssm.hope.circle import all_pass, half_angles, slope
from refssm.hope.impulses import all_pass_responses

U = 2.0**-53


def step(dt):
    """A step size that is exact in the first gauge and has one rounding error in the second."""
    return Tracked(np.array(dt), np.array([0.0, dt]))


@pytest.fixture(autouse=True)
def _a_run():
    with tracing(U, 0.0):
        yield


def test_an_all_pass_is_off_by_a_rounding_but_at_the_ends_of_the_circle():
    p = all_pass(np.ones(1), step(0.25), 6)
    assert p.errors[..., 0].tolist() == [0, 1, 1, 0, 1, 1]
    # |∂p/∂dt| dt = |sin θ'|: two ways to compute it, ten operations each
    assert abs(p.errors[..., 1] - p.errors[..., 0] - abs(p.value.imag)).max() <= 20 * U


def test_a_cascade_is_off_by_a_rounding_a_stage():
    s = all_pass_responses(step(1.0), 4, 6)
    j, k = np.arange(4)[:, None], np.arange(6)
    assert np.array_equal(s.value, j == k)
    assert np.array_equal(s.errors[..., 0], np.broadcast_to(j, (4, 6)))
    # ∂s_j/∂dt = j (s_{j−1} − s_{j+1})/2 at dt = 1: one term each at k = j − 1 and j + 1
    assert np.array_equal(s.errors[..., 1], j + j / 2 * (abs(k - j) == 1))


def test_the_slope_is_off_by_a_sine():
    v = slope(np.ones(1), step(1.0), 8)
    sines = 2 * np.prod(half_angles(8, np.float64(1)), axis=0)
    assert abs(v.value - sines).max() <= 8 * U  # a quotient by 1, where x² + s² is rounded
    assert np.array_equal(v.errors[..., 0], 4 * (abs(v.value) + 1))
    assert np.array_equal(v.errors[..., 1], 4 * (abs(v.value) + 1) + 2 * abs(v.value))


@pytest.mark.parametrize("dt", [1e-4, 0.1, 1.0, 30.0])
def test_a_bound_grows_with_the_parameter_and_not_with_the_inverse_of_the_step(dt):
    for op in (HOPE_TRANSFER, HOPE_KERNEL):
        for n in (1, 8, 64):
            h = np.ones(n)
            program = op.definition or op.reference
            (gauge,) = gauges(program, h, np.float64(dt), unit=U, l=64)
            # i + 1 for p, at most 6 (1 + log₂(i+1)) for its power, 1 + 1 + log₂ n for the sum
            most = sum(i + 6 * (1 + np.ceil(np.log2(i))) for i in range(1, n + 1))
            assert gauge.k0.max() <= most + n * (3 + np.ceil(np.log2(n)))


@pytest.mark.parametrize("l", [1, 2, 9, 64, 65])
def test_the_bound_of_a_kernel_is_a_mean_over_the_nodes_there_are(l):
    arrays = [np.ones(1, np.float32), np.array(1, np.float32)]
    (gauge,) = bounds(HOPE_KERNEL, arrays, {"l": l}, None, unit=2.0**-24, floor=0.0)
    assert (gauge.k0 <= 6 + np.log2(2 * l)).all()  # the transform has log₂(2l) ‖K‖₂, and ‖K‖₂ ≤ 1
