"""State-space duality, wrong and right, as public bug reports had it: what is said."""

import duality_programs as duality
import numpy as np
import pytest
from reporting import first_line, refused

pytestmark = pytest.mark.usefixtures("their_warnings_are_not_ours")
SINGLE = {"types": ("float32",)}
MERGED = {"layout": "b l (g h) p, b l (g h), b l g n, b l g n -> b l (g h) p"}


def told(name, function, *checks, **how):
    return first_line(name, function, *(checks or ("value",)), **(SINGLE | how))


@pytest.mark.long
def test_groups_that_are_tiled_are_named_and_repeated_ones_pass():
    line = told("ssd_recurrent", duality.of_groups(duality.tiled), **MERGED)
    assert line == "WRONG: head k of all heads read the group k mod G, not k // H"
    assert told("ssd_recurrent", duality.of_groups(duality.repeated), **MERGED).startswith("PASS")


@pytest.mark.long
def test_a_nan_in_a_tiled_group_gets_no_hint_on_masks():
    failures = refused("ssd_recurrent", duality.of_groups(duality.tiled), "nan", **SINGLE, **MERGED)
    assert failures
    assert not any("times NaN" in r.hint for r in failures)


@pytest.mark.long
@pytest.mark.parametrize("exp", [duality.zero_where_positive, duality.cut_off_at_zero])
def test_a_guard_against_positive_exponents_is_refused_without_a_false_cause(exp):
    line = told("ssd_chunked", duality.chunked(exp))
    assert line.startswith(("WRONG: a guard takes", "WRONG: worst y[", "INACCURATE: 14 bits"))


@pytest.mark.long
def test_the_exponential_itself_passes():
    assert told("ssd_chunked", duality.chunked(np.exp)).startswith("PASS")


def flushed(x):
    """An exponential below the smallest normal number is 0."""
    y = np.exp(x)
    return y if y.dtype.kind == "c" else np.where(y < np.finfo(y.dtype).tiny, 0, y).astype(y.dtype)


@pytest.mark.long
@pytest.mark.parametrize("dtypes", [("float32",), ("float32", "float64")])
def test_flushing_is_offered_where_only_an_exponential_is_subnormal(dtypes):
    how = SINGLE | {"dtypes": dtypes}
    (failure,) = refused("ssd_chunked", duality.chunked(flushed), "value", **how)
    assert failure.hint == "passes if subnormal numbers may be flushed to zero: declare ftz=True"
    assert told("ssd_chunked", duality.chunked(flushed), ftz=True, **how).startswith("PASS")


@pytest.mark.long
def test_an_exponential_that_is_wrong_where_it_is_small_is_not_offered_flushing():
    def halved(x):
        y = np.exp(x)
        return np.where(np.abs(y) < 1e-30, y / 2, y).astype(y.dtype)

    how = SINGLE | {"dtypes": ("float32", "float64")}
    (failure,) = refused("ssd_chunked", duality.chunked(halved), "value", **how)
    assert "ftz" not in failure.hint


@pytest.mark.long
def test_a_pointer_without_the_offset_of_the_batch_is_named_in_values_and_states():
    wrong = duality.from_state(duality.of_the_first_member)
    failures = refused("ssd_recurrent_stateful", wrong, "value", "state", **SINGLE)
    assert {r.check for r in failures} == {"value", "state"}
    assert {r.cause for r in failures} == {"the first member's state for all"}


@pytest.mark.long
def test_each_member_from_its_own_state_passes():
    right = duality.from_state(lambda S0: S0)
    assert told("ssd_recurrent_stateful", right, "value", "state", "split").startswith("PASS")


@pytest.mark.long
def test_zeros_for_the_state_of_an_empty_piece_are_said_with_its_length():
    checks = "value", "split", "empty"
    line = told("ssd_recurrent_stateful", duality.zeros_where_empty, *checks)
    assert line.startswith("WRONG: with l=0: worst S[")


@pytest.mark.long
def test_zeros_before_the_first_reset_are_no_result_that_was_kept():
    wrong, checks = duality.zero_before_the_first_reset, ("value", "nan", "repeat")
    failures = refused("ssd_recurrent_packed", wrong, *checks, **SINGLE)
    assert {r.check for r in failures} == {*checks}
    assert not any("kept" in r.cause for r in failures)
