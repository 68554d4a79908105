from itertools import pairwise

import numpy as np
import pytest
from schedules import SCHEDULES, each_schedule, letters, prefixes

from refssm.associative import (
    Schedule,
    ScheduleStep,
    associative_scan,
    blelloch,
    chunked,
    hillis_steele,
)


def counted(combine):
    """`combine`, and a list of the number of places in each call."""
    counts = []

    def counting(earlier, later):
        counts.append(len(later))
        return combine(earlier, later)

    return counting, counts


def test_the_schedule_is_sequential_unless_said():
    add, counts = counted(np.add)
    associative_scan(add, np.ones(6))
    assert counts == [0, 1, 1, 1, 1, 1]  # 0: the call that finds the types


def work_and_depth(name, l):
    """Combines and steps, as docstrings and the docs page state."""
    if l < 2:
        return 0, 0
    log2, ceiling = l.bit_length() - 1, (l - 1).bit_length()
    if name == "sequential":
        return l - 1, l - 1
    if name == "hillis_steele":
        return ceiling * l - 2**ceiling + 1, ceiling
    if name == "blelloch":
        return 2 * l - l.bit_count() - l.bit_length(), log2 + (l // 3).bit_length()
    size = int(name[len("chunked(") : -1])
    chunks = -(-l // size)
    carries = size > 1 and l > size + 1
    return 2 * l - min(size, l) - chunks, min(size, l) - 1 + chunks - 1 + carries


@each_schedule
def test_work_and_depth_are_as_documented(schedule):
    for l in range(130):
        work, depth = work_and_depth(schedule.__name__, l)
        add, counts = counted(np.add)
        associative_scan(add, np.ones(l), schedule)
        assert counts.pop(0) == 0
        assert (sum(counts), len(counts)) == (work, depth), l
        assert len(list(schedule(np.add, np.ones(l)))) == 1 + depth
        assert all(counts), "an empty step"


@each_schedule
@pytest.mark.parametrize("l", [0, 1, 2, 13, 16, 37])
def test_a_level_writes_the_places_it_names_and_no_other(schedule, l):
    levels = list(schedule(np.add, letters(l)))
    assert levels[0].name == "start"
    assert levels[0].elements.tolist() == letters(l).tolist()
    assert levels[0].changed.size == 0
    assert len({level.name for level in levels}) == len(levels)
    for before, after in pairwise(levels):
        differ = [k for k in range(l) if before.elements[k] != after.elements[k]]
        assert after.changed.tolist() == differ
    assert levels[-1].elements.tolist() == associative_scan(np.add, letters(l), schedule).tolist()


@each_schedule
def test_no_step_can_be_left_out_and_no_step_runs_backwards(schedule):
    for l in (2, 3, 13, 16, 17):
        steps = list(schedule.steps(l))
        for i, step in enumerate(steps):
            assert (step.earlier < step.later).all()
            short = Schedule(lambda _, i=i, steps=steps: iter(steps[:i] + steps[i + 1 :]))
            assert associative_scan(np.add, letters(l), short).tolist() != prefixes(letters(l))


@pytest.mark.parametrize("l", [1, 2, 7, 16, 37])
def test_after_pass_k_of_hillis_steele_a_place_holds_the_last_2_to_the_k(l):
    words = "".join(letters(l))
    for k, level in enumerate(hillis_steele(np.add, letters(l))):
        assert level.elements.tolist() == [words[max(0, i + 1 - 2**k) : i + 1] for i in range(l)]
        assert level.name == (f"pass {k} (step {2 ** (k - 1)})" if k else "start")


@pytest.mark.parametrize("l", [2, 3, 7, 16, 37, 64])
def test_after_up_k_of_blelloch_each_whole_block_of_2_to_the_k_stands_at_its_end(l):
    words, levels = "".join(letters(l)), list(blelloch(np.add, letters(l)))
    ups = [level for level in levels if level.name.startswith("up")]
    assert [level.name for level in ups] == [f"up {k} (step {2 ** (k - 1)})" for k in range(1, 7)][
        : len(ups)
    ]
    assert 2 ** len(ups) <= l < 2 ** (len(ups) + 1)
    for k, level in enumerate(ups, start=1):
        ends = range(2**k - 1, l, 2**k)
        assert level.changed.tolist() == list(ends)
        assert [level.elements[i] for i in ends] == [words[i + 1 - 2**k : i + 1] for i in ends]


@pytest.mark.parametrize("l", [3, 7, 16, 37, 64])
def test_blelloch_goes_down_from_the_largest_step_and_writes_prefixes_only(l):
    words = prefixes(letters(l))
    downs = [level for level in blelloch(np.add, letters(l)) if level.name.startswith("down")]
    steps = [int(level.name.split("step ")[1][:-1]) for level in downs]
    assert steps == [2**k for k in range(len(steps) - 1, -1, -1)]
    for step, level in zip(steps, downs, strict=True):
        assert level.changed.tolist() == list(range(3 * step - 1, l, 2 * step))
        assert [level.elements[i] for i in level.changed] == [words[i] for i in level.changed]
    assert sum(level.changed.size for level in downs) == l - l.bit_length()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 13, 14])
def test_chunks_are_scanned_from_rest_then_their_ends_then_the_rest_carried(size):
    l, word = 13, "".join(letters(13))
    starts = [i // size * size for i in range(l)]
    ends = [*range(size - 1, l - 1, size), l - 1]
    since = list(range(l))  # the first place of each place's string
    for level in chunked(size)(np.add, letters(l)):
        kind, _, number = level.name.partition(" ")
        if kind == "inside":
            since = [starts[i] if i % size <= int(number) else i for i in range(l)]
        elif kind == "total":
            since = [0 if i in ends[: int(number) + 1] else since[i] for i in range(l)]
        elif kind == "carry":
            since = [0] * l
        assert level.elements.tolist() == [word[since[i] : i + 1] for i in range(l)]
    assert since == [0] * l


@each_schedule
def test_levels_are_snapshots_that_no_one_else_writes_to(schedule):
    x = np.arange(1, 12)
    kept, copied = [], []
    for level in schedule(np.add, x):
        kept.append(level.elements)
        copied.append(level.elements.copy())
    assert all(map(np.array_equal, kept, copied))
    spoilt = []
    for level, wanted in zip(schedule(np.add, x), copied, strict=True):
        spoilt.append(np.array_equal(level.elements, wanted))
        level.elements[:] = -1
        level.changed[:] = -1
    assert all(spoilt)


def test_ones_own_schedule_is_a_list_of_steps():
    @Schedule
    def halves(l):
        """Both halves at once, then the first half's end into the second."""
        half = l // 2
        for k in range(1, half):
            later = np.array([k, half + k])
            yield ScheduleStep(f"place {k}", later - 1, later)
        yield ScheduleStep("carry", np.full(l - half, half - 1), np.arange(half, l))

    assert repr(halves) == "halves"
    assert halves.__doc__ == "Both halves at once, then the first half's end into the second."
    assert associative_scan(np.add, letters(8), halves).tolist() == prefixes(letters(8))
    assert [level.name for level in halves(np.add, letters(4))] == ["start", "place 1", "carry"]


def nested(earlier, later):
    """Not associative, so the result shows the order of the brackets."""
    return 2 * earlier + later


def test_other_brackets_give_other_numbers_to_an_operator_that_is_not_associative():
    x = np.arange(1, 12)
    results = {tuple(associative_scan(nested, x, schedule).tolist()) for schedule in SCHEDULES}
    assert len(results) == len(SCHEDULES) - 2  # chunks of 1 and of 64 are sequential here


@pytest.mark.parametrize("l", [1, 2, 3, 6, 11])
def test_jax_sets_the_brackets_of_blelloch(l):
    jax = pytest.importorskip("jax")
    x = np.arange(1, l + 1, dtype="int32")
    y = jax.lax.associative_scan(nested, jax.numpy.asarray(x))
    assert np.asarray(y).tolist() == associative_scan(nested, x, blelloch).tolist()
    y = jax.lax.associative_scan(nested, jax.numpy.asarray(x), reverse=True)
    assert np.asarray(y).tolist() == associative_scan(nested, x[::-1], blelloch)[::-1].tolist()


@pytest.mark.parametrize("l", [1, 2, 3, 6, 11])
def test_pytorch_sets_the_brackets_of_blelloch(l):
    torch = pytest.importorskip("torch")
    module = pytest.importorskip("torch._higher_order_ops.associative_scan")
    x = np.arange(1, l + 1, dtype="int32")[:, None]
    y = module.associative_scan(nested, torch.tensor(x), dim=0, combine_mode="generic")
    assert y.tolist() == associative_scan(nested, x, blelloch).tolist()


@each_schedule
def test_a_combine_that_answers_in_fewer_digits_leaves_the_elements_theirs(schedule):
    def narrowing(earlier, later):
        return (earlier + later).astype("float32")

    x = np.full(5, 0.1)
    y = associative_scan(narrowing, x, schedule)
    assert y.dtype == np.float64
    assert y[0] == 0.1
    assert associative_scan(narrowing, x[:1], schedule)[0] == 0.1
