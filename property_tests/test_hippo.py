import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import refssm
from refssm.catalog import OPERATORS
from refssm.domains import Counts

CONSTRUCTORS = [op for op in OPERATORS if op.family == "hippo" and not op.inputs]
WINDOWED = [op for op in CONSTRUCTORS if "window" in op.parameters]
U = 2.0**-53


@st.composite
def keywords(draw, op):
    """A size up to 40, and random values of the other keywords within their bounds."""
    given = {}
    for name, domain in op.parameters.items():
        if isinstance(domain, Counts):
            given[name] = domain.multiple * draw(st.integers(1, 40 // domain.multiple))
        else:
            low, high = max(domain.least, 2.0**-20), min(domain.largest, 2.0**20)
            low = domain.least if domain.least < 0 else low
            given[name] = draw(st.floats(low, high))
    return given


@pytest.mark.parametrize("op", CONSTRUCTORS, ids=str)
@given(data=st.data())
def test_a_smaller_size_is_the_leading_block(op, data):
    given = data.draw(keywords(op))
    A, B = getattr(refssm, op.name)(**given)
    step = op.parameters["n"].multiple
    fewer = step * data.draw(st.integers(1, given["n"] // step))
    small_A, small_B = getattr(refssm, op.name)(**given | {"n": fewer})
    assert np.array_equal(small_A, A[:fewer, :fewer])
    assert np.array_equal(small_B, B[:fewer])


@pytest.mark.parametrize("op", WINDOWED, ids=str)
@given(data=st.data())
def test_the_window_is_a_unit_of_time(op, data):
    given = data.draw(keywords(op))
    window = given.pop("window")
    pairs = zip(
        getattr(refssm, op.name)(**given, window=window),
        getattr(refssm, op.name)(**given),
        strict=True,
    )
    for y, unit in pairs:  # three roundings each (plus π and √), and one for the product here
        assert (np.abs(y * window - unit) <= 8 * U * np.abs(unit)).all()


@given(n=st.integers(1, 40), beta=st.floats(2.0**-20, 2.0**20))
def test_laguerre_without_exponent_has_one_rate(n, beta):
    A, B = refssm.hippo_lagt(n=n, beta=beta)
    assert (np.diag(A) == -(1 + beta) / 2).all()
    assert np.array_equal(np.tril(A, -1), -np.tril(np.ones((n, n)), -1))
    assert (np.abs(B - np.sqrt(beta)) <= 4 * U * B).all()


@given(u=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=20), data=st.data())
def test_ring_draws_lie_in_the_ring_and_their_inputs_are_normalised(u, data):
    low = data.draw(st.floats(0, 1))
    high = data.draw(st.floats(low, 1))
    u1, u2 = np.array(u).reshape(-1, 2).T
    a, gamma = refssm.lru_ring(u1, u2, r_min=low, r_max=high)
    r = np.abs(a)
    least = 2.0**-537  # r² is rounded to a multiple of 2^-1074
    assert (r >= low * (1 - 8 * U) - least).all()
    assert (r <= high * (1 + 8 * U) + least).all()
    assert (np.abs(r**2 + gamma**2 - 1) <= 16 * U).all()
    assert ((gamma >= 0) & (gamma <= 1)).all()


@pytest.mark.parametrize("n", [1, 3, 20, 50])
def test_conjugate_poles_of_legs_have_the_trace_of_its_normal_part(n):
    w = refssm.s4d_legs(n=n)
    assert 2 * w.real.sum() == -n
