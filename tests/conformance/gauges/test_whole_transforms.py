"""A transform of two kernels at once: its roundings have the size of both, used or not."""

import numpy as np
import pytest
from honest.convolution.around import IMPLEMENTATIONS

from refssm.conformance.judging.grading import judge
from refssm.convolution import BIDIRECTIONAL_CONVOLUTION as BOTH
from refssm.convolution import BIDIRECTIONAL_CONVOLUTION_SHIFTED as SHIFTED


@pytest.mark.parametrize("l", [1, 3, 64])
def test_a_tap_that_has_no_effect_is_in_every_rounding(l):
    (honest,) = [h for h in IMPLEMENTATIONS if h.name == "with_the_last_tap"]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        u, k, kr = (rng.standard_normal(l).astype(np.float32) for _ in range(3))
        kr[-1] = 1000  # nothing is that long before the end
        assert judge(SHIFTED, honest.forward, u, k / 64, kr).grade in ("A", "B")


def test_a_small_kernel_has_the_roundings_of_the_large_one_beside_it():
    (honest,) = [h for h in IMPLEMENTATIONS if (h.op, h.name) == (BOTH.name, "one_transform")]
    u, k, kr = np.array([[0, 0.307], [0, 1.135], [0, 8.76e-13]])  # y = [kr_1 u_1, 0]
    assert judge(BOTH, honest.forward, u, k, kr).grade in ("A", "B")
    assert judge(BOTH, lambda u, k, kr: honest.forward(u, k, 0 * kr), u, k, kr).grade in ("C", "F")


def test_the_bound_still_sees_a_tap_that_is_used():
    rng = np.random.default_rng(0)
    u, k, kr = (rng.standard_normal(64).astype(np.float32) for _ in range(3))

    def later(u, k, kr):
        return SHIFTED.reference(u, k, np.roll(kr, 1, -1))

    assert judge(SHIFTED, later, u, k, kr).grade == "F"
