"""Forms of a recurrence by pieces: packed sequences with states, states at places, reverse time."""

import re
from dataclasses import replace

import numpy as np
import pytest

import refssm
from refssm._declaration.pieces import ByPieces
from refssm.catalog import OPERATORS
from refssm.conformance.cases.case import ordinary_case

BY_NAME = {op.name: op for op in OPERATORS}
NAMES = (
    *("linear_scan", "selective_scan", "mamba_scan", "ssd_recurrent", "ssd_chunked"),
    "mamba2_scan",
)
ENDS = np.array([2, 2, 7])
PLACES = np.array([0, 3, 3, 7])
ROLES = ("reference", "jit")
each_role = pytest.mark.parametrize("role", ROLES)


def names(*endings):
    found = [name + ending for ending in endings for name in NAMES if name + ending in BY_NAME]
    assert len(found) > 3
    return pytest.mark.parametrize("name", found)


def given(name, l=7, m=3):
    """Arguments, and keywords, of an ordinary case with these sizes."""
    op = BY_NAME[name]
    case = ordinary_case(op, "float64")
    case = replace(case, sizes={**case.sizes, "l": l, **({"m": m} if "m" in case.sizes else {})})
    return op, case.arrays, case.statics


def cut(op, arrays, window):
    """The arguments at some steps."""
    return [
        a[(..., window, *[slice(None)] * (len(dims) - dims.index("l") - 1))] if "l" in dims else a
        for a, dims in zip(arrays, op.input_dims, strict=False)
    ]


def several(y):
    return y if isinstance(y, tuple) else (y,)


@each_role
@names("_packed_stateful", "_packed_from")
def test_each_sequence_is_what_it_is_alone_and_one_without_steps_keeps_its_state(name, role):
    op, (*arrays, states, _), statics = given(name)
    alone = BY_NAME[name.replace("_packed", "")].implementation(role)
    y, *x = several(op.implementation(role)(*arrays, states, ENDS, **statics))
    core = len(op.input_dims[-2]) - 1
    for i, window in enumerate((slice(0, 2), slice(2, 2), slice(2, 7))):
        start = states[(..., i, *[slice(None)] * core)]
        wanted, *last = several(alone(*cut(op, arrays, window), start, **statics))
        rows = y[(..., window, *[slice(None)] * (len(op.output_dims[0]) - 1))]
        np.testing.assert_array_equal(rows, wanted)
        for one, other in zip(x, last, strict=True):
            np.testing.assert_array_equal(one[(..., i, *[slice(None)] * core)], other)
            if i == 1:
                np.testing.assert_array_equal(other, np.broadcast_to(start, other.shape))


@each_role
@names("_states")
def test_the_states_at_places_are_the_last_states_of_shorter_inputs(name, role):
    op, (*arrays, start, _), statics = given(name, m=4)
    stateful = BY_NAME[f"{name}ful".replace("_statesful", "_stateful")].implementation(role)
    y, x = op.implementation(role)(*arrays, start, PLACES, **statics)
    core = len(op.output_dims[1]) - 1
    for i, place in enumerate(PLACES):
        _, last = stateful(*cut(op, arrays, slice(place)), start, **statics)
        np.testing.assert_allclose(x[(..., i, *[slice(None)] * core)], last, rtol=1e-13)
    np.testing.assert_allclose(y, stateful(*arrays, start, **statics)[0], rtol=1e-13)


@each_role
@names("_reversed")
def test_reverse_time_is_the_scan_of_flipped_arguments_flipped(name, role):
    op, arrays, statics = given(name)
    forward = BY_NAME[name.removesuffix("_reversed")].implementation(role)
    turned = slice(None, None, -1)
    y = forward(*cut(op, arrays, turned), **statics)
    wanted = y[(..., turned, *[slice(None)] * (len(op.output_dims[0]) - 1))]
    np.testing.assert_array_equal(op.implementation(role)(*arrays, **statics), wanted)


@each_role
@names("_packed_stateful", "_packed_from")
def test_nan_of_one_sequence_does_not_reach_the_next(name, role):
    op, (*arrays, states, _), statics = given(name)
    whole = cut(op, arrays, slice(None))
    for a, dims in zip(whole, op.input_dims, strict=False):
        if "l" in dims:
            a[(..., slice(2), *[slice(None)] * (len(dims) - dims.index("l") - 1))] = np.nan
    y, *_ = several(op.implementation(role)(*whole, states, ENDS, **statics))
    late = y[(..., slice(2, None), *[slice(None)] * (len(op.output_dims[0]) - 1))]
    assert np.isfinite(late).all()
    assert np.isnan(y).any()


@each_role
@names("_packed_stateful")
def test_the_gradient_of_a_sequence_without_steps_is_the_cotangent_of_its_last_state(name, role):
    op, (*arrays, states, _), statics = given(name)
    y, x = op.implementation("reference")(*arrays, states, ENDS, **statics)
    cotangents = np.ones_like(y), np.full_like(x, 3.0)
    *_, dx, none = op.vjp(role)(*cotangents, *arrays, states, ENDS, **statics)
    assert none is None
    core = len(op.input_dims[-2]) - 1
    assert (dx[(..., 1, *[slice(None)] * core)] == 3.0).all()


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ([1, 2], "`ends` must be whole numbers from 0 that rise to l=3, got [1, 2]"),
        ([2, 1, 3], "got [2, 1, 3]"),
        ([-1, 3], "got [-1, 3]"),
        ([3, 4], "got [3, 4]"),
        ([], "got []"),
        ([[1, 3], [2, 3]], "`ends` must be the same for the whole batch"),
    ],
    ids=str,
)
def test_ends_that_do_not_rise_to_the_length_are_refused(ends, told):
    a = b = np.ones((3, 1))
    x0 = np.ones((np.asarray(ends).shape[-1], 1))
    with pytest.raises(ValueError, match=re.escape(told)) as raised:
        refssm.linear_scan_packed_from(a, b, x0, np.array(ends, int))
    assert str(raised.value).startswith("linear_scan_packed_from: `ends`")


def test_ends_must_be_integers_and_places_lie_within_the_length():
    one = np.ones((3, 1))
    with pytest.raises(TypeError, match="`ends` has dtype float64, wanted integers"):
        refssm.linear_scan_packed_from(one, one, [[1.0]], [3.0])
    with pytest.raises(ValueError, match=r"`places` must be whole numbers that rise, from 0 to at"):
        refssm.selective_scan_states([1.0], [1.0], [0.0], [[1.0]], [[1.0]], [1.0], [2])


def test_many_wrong_ends_are_not_all_printed():
    one = np.ones((3, 1))
    with pytest.raises(ValueError, match=r"got \[9, 9, 9, 9, 9, 9, 9, 9, …\]"):
        refssm.linear_scan_packed_from(one, one, np.ones((20, 1)), [9] * 20)


def test_no_sequence_and_no_step_give_empty_results():
    y, x = refssm.selective_scan_packed_stateful(
        [], [], [0.0], np.ones((0, 1)), np.ones((0, 1)), np.ones((0, 1)), np.array([], int)
    )
    assert (y.shape, x.shape) == ((0,), (0, 1))


def test_one_matrix_for_each_step_acts_from_the_left():
    A = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 2.0], [0.0, 0.0]], [[3.0, 0.0], [1.0, 0.0]]])
    x = refssm.dense_scan_varying(A, [[5.0, 7.0], [0.0, 0.0], [0.0, 0.0]])
    assert x.tolist() == [[5.0, 7.0], [14.0, 0.0], [42.0, 14.0]]


def test_a_packed_short_convolution_sees_nothing_before_the_reset():
    y = refssm.short_convolution_packed([np.nan, 1.0, 2.0], [3.0, 5.0, 7.0], [False, True, False])
    assert np.isnan(y[0])
    assert y[1:].tolist() == [3.0, 11.0]


def sums(arguments, start, _, **statics):
    """Running sums of b (…, l) from a start (…, 1), and the last of them."""
    b = arguments[0] if start is None else np.concatenate([start, arguments[0]], axis=-1)
    y = np.cumsum(b, axis=-1)
    return (y, y[..., -1:]) if start is None else (y[..., 1:], y[..., -1:])


@pytest.mark.parametrize("numbers", [[2, 3], [[2, 3], [2, 3]]], ids=["bare", "with a batch"])
def test_a_gradient_gets_no_cotangent_with_an_axis_that_its_arguments_lack(numbers):
    seen = []

    def back(cotangents, arguments, start, _, **statics):
        dy, dx = cotangents
        seen.append((dy.shape, arguments[0].shape, dx.shape, start.shape))
        tail = np.cumsum(dy[..., ::-1], axis=-1)[..., ::-1] + dx
        return tail, dx + dy.sum(axis=-1, keepdims=True)

    pieces = ByPieces("running_sum", sums, back, sums, (-1,), -1, [1], only_states=False)
    b, numbers = np.arange(3.0), np.array(numbers)
    ones = np.ones((*numbers.shape[:-1], 3)), np.ones((*numbers.shape, 1))
    packed = pieces.sequences_back(ones, (b,), [np.ones((2, 1))], numbers)
    placed = pieces.at_places_back(ones, (b,), [np.ones(1)], numbers)
    assert len(seen) == 5  # two sequences, and three pieces between places
    assert all(dy == b and dx == start for dy, b, dx, start in seen)
    members = numbers.size // 2
    assert (packed[0] / members).tolist() == [3.0, 2.0, 2.0]
    assert (packed[1] / members).tolist() == [[3.0], [2.0]]
    assert (placed[0] / members).tolist() == [5.0, 4.0, 2.0]
    assert (placed[1] / members).tolist() == [5.0]
