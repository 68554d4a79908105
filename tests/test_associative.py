import doctest
from itertools import product

import numpy as np
import pytest
from schedules import SCHEDULES, each_schedule, letters, prefixes

import refssm.associative
from refssm.associative import (
    affine,
    affine_dense,
    associative_scan,
    blelloch,
    chunked,
    segmented,
    sequential,
)
from refssm.conformance.judging.grading import judge
from refssm.scan import LINEAR_SCAN, linear_scan

TYPES = ("float32", "float64", "complex64", "complex128")
LENGTHS = [*range(41), 53, 64, 65, 97, 127]


def random(seed, *shapes, dtype="float64"):
    """Random numbers of modulus about 1; complex for a complex dtype."""
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((2, *shape)) for shape in shapes]
    is_complex = np.dtype(dtype).kind == "c"
    return [(p[0] + 1j * p[1] if is_complex else p[0]).astype(dtype) for p in parts]


def test_the_examples_of_the_docstrings_run():
    tried = doctest.testmod(refssm.associative)
    assert tried.attempted
    assert not tried.failed


@each_schedule
def test_every_schedule_joins_the_words_in_order(schedule):
    for l in LENGTHS:
        assert associative_scan(np.add, letters(l), schedule).tolist() == prefixes(letters(l)), l


@each_schedule
def test_every_schedule_multiplies_matrices_in_order(schedule):
    for l in LENGTHS:
        matrices = np.random.default_rng(l).integers(0, 101, (l, 2, 2))
        y = associative_scan(lambda x, y: x @ y % 101, matrices, schedule)
        assert y.shape == matrices.shape
        product = np.eye(2, dtype=int)
        for k in range(l):
            product = product @ matrices[k] % 101
            assert np.array_equal(y[k], product), (l, k)


@each_schedule
def test_every_schedule_gives_the_cumulative_sum(schedule):
    for l in LENGTHS:
        x = np.random.default_rng(l).integers(-9, 9, (l, 3))
        assert np.array_equal(associative_scan(np.add, x, schedule), np.cumsum(x, axis=0)), l


@each_schedule
@pytest.mark.parametrize("l", [0, 1, 9])
def test_inputs_are_never_written_to_and_outputs_are_new(schedule, l):
    def in_place(earlier, later):
        later[0][...] += earlier[0]
        earlier[0][...] = -7
        return later

    x = np.arange(1, l + 1)
    (y,) = associative_scan(in_place, (x,), schedule)
    assert x.tolist() == list(range(1, l + 1))
    assert np.array_equal(y, np.cumsum(x))
    for combine in (np.add, lambda earlier, later: later):
        assert not np.shares_memory(associative_scan(combine, x, schedule), x)


@each_schedule
@pytest.mark.parametrize("types", list(product(TYPES, TYPES)), ids="-".join)
def test_the_result_has_the_common_type_at_every_length(schedule, types):
    for l in (0, 1, 5):
        a, b = (np.ones((l, 2), t) for t in types)
        y = associative_scan(affine, (a, b), schedule)
        assert [part.dtype for part in y] == [a.dtype, np.result_type(a, b)]
        levels = list(schedule(affine, (a, b)))
        assert {level.elements[1].dtype for level in levels} == {np.result_type(a, b)}


def test_types_widen_until_they_stay():
    def chain(earlier, later):
        (a, b, c), (a_later, b_later, c_later) = earlier, later
        return a_later * a, a_later * b + b_later, b_later * c + c_later

    a, b, c = np.full(4, 1j), np.ones(4, "float32"), np.ones(4, "int8")
    kinds = [y.dtype.char for y in associative_scan(chain, (a, b, c), sequential)]
    assert kinds == ["D", "D", "D"]
    assert associative_scan(np.add, np.ones(3, "int8"), blelloch).dtype == "int8"
    assert associative_scan(np.logical_xor, [True, True, True], blelloch).tolist() == [1, 0, 1]


@each_schedule
def test_any_strides_and_byte_order_and_lists_are_taken(schedule):
    x = np.arange(24.0).reshape(6, 4)
    wanted = np.cumsum(x[::-2, ::3], axis=0)
    for same in (x[::-2, ::3], x.astype(">f8")[::-2, ::3], x[::-2, ::3].tolist()):
        y = associative_scan(np.add, same, schedule)
        assert np.array_equal(y, wanted)
        assert y.dtype.isnative


@each_schedule
def test_state_size_zero_and_further_axes_are_legal(schedule):
    assert associative_scan(np.add, np.ones((5, 0)), schedule).shape == (5, 0)
    A, b = np.ones((3, 2, 0, 0)), np.ones((3, 2, 0))
    assert [y.shape for y in associative_scan(affine_dense, (A, b), schedule)] == [A.shape, b.shape]


@each_schedule
def test_nan_reaches_later_places_only_and_nothing_warns(schedule):
    for l, k in ((1, 0), (13, 0), (13, 5), (16, 15)):
        x = np.ones(l, "float32")
        x[k] = np.nan
        y = associative_scan(np.add, x, schedule)
        assert np.isnan(y).tolist() == [i >= k for i in range(l)]
    largest = np.full(5, np.finfo("float32").max)
    assert np.isinf(associative_scan(np.add, largest, schedule)).tolist() == [False, *[True] * 4]


@each_schedule
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("l", [1, 2, 13, 64, 100])
def test_the_affine_scan_is_the_linear_scan(schedule, dtype, l):
    a, b = random(l, (l, 3), (l, 3), dtype=dtype)
    a /= np.maximum(abs(a), 1)

    def scan(a, b):
        return associative_scan(affine, (a, b), schedule)[1]

    assert judge(LINEAR_SCAN, scan, a, b).ok
    if schedule is sequential:
        assert np.array_equal(scan(a, b), linear_scan(a, b))


def test_the_judge_refuses_an_affine_operator_with_its_sides_exchanged():
    a, b = random(1, (9, 2), (9, 2))
    for schedule in SCHEDULES:
        y = associative_scan(lambda x, y: affine(y, x), (a, b), schedule)[1]
        assert not judge(LINEAR_SCAN, lambda *_, y=y: y, a, b).ok


@each_schedule
@pytest.mark.parametrize("axes", [(), (2,)], ids=str)
def test_the_dense_affine_scan_is_the_recurrence_on_integers(schedule, axes):
    rng = np.random.default_rng(2)
    A, b = rng.integers(-1, 2, (17, *axes, 3, 3)), rng.integers(-2, 3, (17, *axes, 3))
    products, x = associative_scan(affine_dense, (A, b), schedule)
    product, state = np.eye(3, dtype=int), np.zeros(3, int)
    for k in range(17):
        product = A[k] @ product
        state = np.einsum("...ij,...j->...i", A[k], state) + b[k]
        assert np.array_equal(products[k], product)
        assert np.array_equal(x[k], state)


def packed(l, resets, bad):
    """Elements that are `bad` before the last reset, and small integers from there on."""
    new = np.zeros(l, bool)
    new[list(resets)] = True
    a, b = np.random.default_rng(l).integers(-2, 3, (2, l, 2)).astype(float)
    a[: max(resets)] = b[: max(resets)] = bad
    return new, a, b


def multiplying(earlier, later):
    """Planted mistake: multiplies the past by 0 instead of leaving it out."""
    (r, a, b), (r_later, a_later, b_later) = earlier, later
    keep = 1 - r_later.astype(float)[:, None]
    return r | r_later, a_later * a * keep, a_later * b * keep + b_later


def leaks(combine, schedule, l, resets, bad):
    """True if anything from before the last reset appears after it."""
    new, a, b = packed(l, resets, bad)
    start = max(resets)
    flags, *y = associative_scan(combine, (new, a, b), schedule)
    assert flags.tolist() == np.logical_or.accumulate(new).tolist()
    alone = associative_scan(affine, (a[start:], b[start:]))
    return not all(np.array_equal(x[start:], z) for x, z in zip(y, alone, strict=True))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("schedule", [*SCHEDULES, *map(chunked, range(1, 12))], ids=repr)
def test_nothing_passes_a_reset_wherever_it_stands_on_the_grid_of_chunks(schedule, bad):
    for l, first in product((1, 2, 11), range(11)):
        for last in range(first, l):
            assert not leaks(segmented(affine), schedule, l, {first, last}, bad), (l, first, last)


@each_schedule
def test_the_check_for_leaks_sees_an_operator_that_multiplies_by_zero(schedule):
    assert all(leaks(multiplying, schedule, 11, {k}, np.nan) for k in range(1, 11))
    assert all(leaks(multiplying, schedule, 11, {k}, np.inf) for k in range(1, 11))


@each_schedule
def test_a_segmented_scan_scans_each_piece_alone(schedule):
    words, places = letters(17), [0, 3, 4, 9, 16]
    resets = np.isin(np.arange(17), places[1:])  # with or without a reset at the first place
    for first in (False, True):
        resets[0] = first
        y = associative_scan(segmented(np.add), (resets, words), schedule)[1]
        pieces = np.split(words, places[1:])
        assert y.tolist() == [word for piece in pieces for word in prefixes(piece)]


def test_resets_may_differ_along_leading_axes():
    resets, x = np.eye(3, 2, dtype=bool), np.ones((3, 2, 4), int)
    _, y = associative_scan(segmented(np.add), (resets, x), blelloch)
    assert y[..., 0].tolist() == y[..., 3].tolist() == [[1, 1], [2, 1], [3, 2]]
    _, same = associative_scan(segmented(np.add), (resets.astype(int), x), blelloch)
    assert np.array_equal(same, y)


def refused(message, combine, elements, error=ValueError):
    """Assert the message, from the scan and from its levels."""
    for name, scan in (("associative_scan", associative_scan), ("sequential", sequential)):
        with pytest.raises(error) as caught:
            scan(combine, elements)  # the schedule also raises before it yields the first level
        assert str(caught.value) == message.format(name)


def test_wrong_elements_are_refused_by_name():
    time = "{}: `elements` must be arrays with time along axis 0, got "
    refused(time + "a number", np.add, 3.0)
    refused(time + "a number", affine, (np.ones(3), 1.0))
    refused(time + "()", affine, ())
    lengths = "{}: `elements` must have one length, got [3, 4]"
    refused(lengths, affine, (np.ones((3, 2)), np.ones((4, 2))))
    words = "{}: `elements` must have dtype object for words, got strings"
    refused(words, np.strings.add, ["a", "b"])


def test_an_operator_that_returns_another_form_is_refused_whatever_the_length():
    for l in (0, 1, 3):
        x, pair = np.ones((l, 2)), (np.ones((l, 2)), np.ones(l))
        must = "{}: `combine` must return "
        array, arrays = (
            "an array of shape (0, 2)",
            "an array of shape (0, 2), an array of shape (0,)",
        )
        for combine, came in (
            (lambda x, y: (x, y), f"a tuple ({array}, {array})"),
            (lambda x, y: (x + y)[..., 0], "an array of shape (0,)"),
            (lambda x, y: (x + y).sum(0), "an array of shape (2,)"),
            (lambda x, y: None, "a NoneType"),
        ):
            refused(f"{must}{array}, got {came}", combine, x)
        for combine, came in (
            (lambda x, y: y[0], array),
            (lambda x, y: y[:1], f"a tuple ({array})"),
            (lambda x, y: [*y], "a list"),
            (lambda x, y: y[::-1], "a tuple (an array of shape (0,), an array of shape (0, 2))"),
        ):
            refused(f"{must}a tuple ({arrays}), got {came}", combine, pair)


def test_an_operator_that_drops_a_place_is_refused_where_it_does():
    message = r"`combine` must return an array of shape \(2,\), got an array of shape \(1,\)"
    with pytest.raises(ValueError, match=message):
        associative_scan(lambda x, y: (x + y)[:1], np.ones(4), blelloch)


@pytest.mark.parametrize("size", [0, -3, 2.0, True, None, "4"])
def test_a_chunk_that_is_no_positive_integer_is_refused(size):
    with pytest.raises(ValueError, match="chunked: `size` must be an integer >= 1, got ") as caught:
        chunked(size)
    assert str(caught.value).endswith(repr(size))
    assert repr(chunked(np.int64(4))) == "chunked(4)"  # pyright: ignore[reportArgumentType]


def test_a_schedule_without_its_chunk_is_refused():
    wanted = "associative_scan: `schedule` must be a Schedule, as blelloch or chunked\\(64\\), got "
    for wrong in (chunked, "blelloch", None):
        with pytest.raises(TypeError, match=wanted):
            associative_scan(np.add, np.ones(3), wrong)  # pyright: ignore[reportArgumentType]


def test_resets_that_do_not_lie_along_the_elements_are_refused():
    message = (
        r"segmented: `resets` must have the leading axes of each part, \(0,\), got shape \(0, 2\)"
    )
    with pytest.raises(ValueError, match=message):
        associative_scan(segmented(np.add), (np.zeros((3, 2), bool), np.ones(3)))
