import gc

import pytest
from timed import Clock, taking

from refssm.bench.measuring import timing
from refssm.bench.measuring.timing import Times, TimingPlan, interleaved, median, one, ratio


def called(clock, seconds):
    return taking(clock, seconds, lambda i: i)


def test_a_call_that_takes_longer_has_longer_times_whatever_the_order():
    clock = Clock()
    calls = [called(clock, 1.0), called(clock, 3.0)]
    fast, slow = interleaved(calls, [TimingPlan(9, 1), TimingPlan(9, 2)], clock).seconds
    assert fast == pytest.approx([1.0] * 9, abs=1e-5)
    assert slow == pytest.approx([3.0] * 9, abs=1e-5)
    assert ratio(slow, fast).value == pytest.approx(3, abs=1e-4)


def test_every_round_has_another_order_and_all_calls_once():
    seen = []
    calls = [lambda i, k=k: seen.append((i, k)) for k in range(4)]
    interleaved(calls, [TimingPlan(12, 1)] * 4)
    rounds = [seen[i : i + 4] for i in range(0, 48, 4)]
    assert all(sorted(k for _, k in found) == [0, 1, 2, 3] for found in rounds)
    assert [{i for i, _ in found} for found in rounds] == [{r} for r in range(12)]
    assert len({tuple(k for _, k in found) for found in rounds}) > 6
    before = {(found[i - 1][1], found[i][1]) for found in rounds for i in (1, 2, 3)}
    assert len(before) == 12  # everyone has had everyone before it


def test_repeats_use_the_copies_in_turn():
    seen = []
    interleaved([seen.append], [TimingPlan(2, 3)])
    assert seen == [0, 1, 2, 3, 4, 5]


def test_a_call_with_few_rounds_takes_part_in_the_first():
    clock = Clock()
    few, many = interleaved(
        [called(clock, 1)] * 2, [TimingPlan(1, 1), TimingPlan(8, 1)], clock
    ).seconds
    assert (len(few), len(many)) == (1, 8)


def test_a_call_that_raises_takes_part_no_more_and_stops_no_other():
    def raising(i):
        seen.append(i)
        if i == 2:
            raise MemoryError("no room")

    seen = []
    times = interleaved([raising, lambda i: i], [TimingPlan(7, 1)] * 2)
    assert {k: str(error) for k, error in times.failed.items()} == {0: "no room"}
    assert seen == [0, 1, 2]
    assert len(times.seconds[1]) == 7


def test_an_interrupted_run_leaves_the_times_so_far():
    def interrupted(i):
        if i == 3:
            raise KeyboardInterrupt
        return i

    times = Times()
    with pytest.raises(KeyboardInterrupt):
        interleaved([interrupted], [TimingPlan(7, 1)], Clock(), times=times)
    assert [len(s) for s in times.seconds] == [3]


def test_collection_is_off_during_a_timing_and_on_again_after_it():
    states = []
    assert gc.isenabled()
    one(lambda i: states.append(gc.isenabled()), 2, 0)
    assert states == [False, False]
    assert gc.isenabled()


def test_outputs_are_freed_after_the_clock_is_read():
    class Output:
        def __del__(self):
            clock.now += 100

    clock = Clock()
    assert one(lambda i: Output(), 1, 0, clock) < 1


def test_a_plan_has_seven_rounds_at_least_and_repeats_short_calls():
    assert TimingPlan.of(10.0, 1.0) == TimingPlan(7, 1)
    assert TimingPlan.of(10.0, 1.0, least=1) == TimingPlan(1, 1)
    assert TimingPlan.of(1e-5, 1.0) == TimingPlan(timing.MOST, 100)
    assert TimingPlan.of(0.0, 1.0).repeats == timing.REPEATS


def test_the_interval_of_seven_times_is_the_smallest_and_the_largest():
    found = median([5, 1, 2, 3, 4, 7, 6])
    assert (found.value, found.low, found.high) == (4, 1, 7)


def test_the_interval_of_many_times_leaves_out_the_ends():
    # P(Bin(20, 1/2) <= 5) = 0.0207 and P(... <= 6) = 0.0577: the sixth smallest and largest
    found = median(range(1, 21))
    assert (found.low, found.high) == (6, 15)


def test_a_ratio_pairs_rounds_so_that_a_slow_minute_does_not_count():
    mirror = [1, 1, 1, 10, 10, 10, 10]
    found = ratio([2 * t for t in mirror], mirror)
    assert (found.low, found.value, found.high) == (2, 2, 2)
