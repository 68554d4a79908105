import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, laws

from refssm.conformance.judging.grading import judge
from refssm.norms import GATED_RMS_NORM, L2_NORM

each_role = pytest.mark.parametrize("role", ["reference", "jit"])
each_type = pytest.mark.parametrize("dtype", ["float32", "float64"])


def right(op, y, *arrays, **statics):
    """Assert that the judge accepts `y` as the output of `op`; the verdict shows the reason."""
    verdict = judge(op, lambda *_, **__: y, *arrays, **statics)
    assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data())
@laws
def test_each_group_is_normed_by_itself(dtype, role, data):
    example = data.draw(examples(GATED_RMS_NORM, dtype))
    (x, z, w), norm = example.arrays, GATED_RMS_NORM.implementation(role)
    eps, group = example.statics["eps"], example.statics["group"]
    starts = range(0, x.shape[-1], group)
    parts = [norm(*(a[..., i : i + group] for a in (x, z, w)), eps=eps) for i in starts]
    right(GATED_RMS_NORM, np.concatenate(parts, axis=-1), x, z, w, eps=eps, group=group)


@each_role
@each_type
@given(data=st.data())
@laws
def test_a_row_times_a_power_of_two_with_its_epsilon_is_the_same(dtype, role, data):
    (x,), norm = data.draw(examples(L2_NORM, dtype)).arrays, L2_NORM.implementation(role)
    power = data.draw(st.integers(-3, 3))
    y = norm(x * x.dtype.type(2.0**power), eps=2.0 ** (2 * power))
    right(L2_NORM, y, x, eps=1.0)
