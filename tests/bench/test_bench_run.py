import numpy as np
import pytest
from timed import AcceptsAll, Clock, StandIn, program, scan, taking

from refssm.bench import run as making
from refssm.bench import run as running
from refssm.bench.measuring.timing import LEAST
from refssm.bench.programs.program import MIRROR, PEER, REFERENCE, Absent, Judge
from refssm.bench.run import Bench, BenchSettings
from refssm.conformance.calling.finding import operator_named
from refssm.scan import LINEAR_SCAN


@pytest.fixture
def clock():
    return Clock(look=1e-3)


def bench(clock, judge=None, **settings):
    return Bench(
        BenchSettings(**settings), clock=clock, judge=judge or AcceptsAll(), sleep=lambda s: None
    )


def rows(clock, monkeypatch, own, judge=None, peers=(), **settings):
    """The rows of linear_scan by label; the mirror takes a second."""
    mirror = program(taking(clock, 1.0), "mirror", MIRROR, vjp=LINEAR_SCAN.vjp())
    monkeypatch.setattr(running, "ours", lambda op, device: [mirror])
    monkeypatch.setattr(running, "peers", lambda op, device: list(peers))
    made = bench(clock, judge, peers=bool(peers), **settings)
    return {
        (group.work.vjp, row.label): (group, row)
        for group in made.groups([(LINEAR_SCAN, own)])
        for row in group.rows
    }


@pytest.mark.long
def test_a_planted_slow_implementation_is_reported_slower(clock, monkeypatch):
    slow = program(taking(clock, 2.5), "slow")
    group, row = rows(clock, monkeypatch, [slow])[False, "slow"]
    found = group.times_base(row)
    assert found is not None
    assert found.low > 1
    assert found.value == pytest.approx(2.5, rel=1e-2)
    assert len(row.seconds) >= LEAST


@pytest.mark.long
def test_a_wrong_implementation_is_refused_with_the_line_of_the_judge(clock, monkeypatch):
    wrong = program(lambda a, b: scan(a, b) * 1.001, "wrong", REFERENCE)
    _, row = rows(clock, monkeypatch, [wrong], judge=Judge())[False, "wrong"]
    assert row.status == "refused"
    assert row.message.startswith("FAIL linear_scan/value[complex64]: ")
    assert "want" in row.message
    assert not row.timed


@pytest.mark.long
def test_a_right_value_with_a_wrong_gradient_is_timed_forward_only(clock, monkeypatch):
    def flipped(dx, a, b):
        da, db = LINEAR_SCAN.bare_vjp(dx, a, b)
        return -da, db

    wrong = program(scan, "flipped", REFERENCE, vjp=flipped)
    found = rows(clock, monkeypatch, [wrong], judge=Judge(), vjp=True)
    assert found[False, "flipped"][1].timed
    _, row = found[True, "flipped"]
    assert row.status == "refused"
    assert row.message.startswith("FAIL linear_scan/gradient[complex64]: ")


@pytest.mark.long
def test_a_peer_that_raises_is_a_row_that_says_so_and_the_others_are_timed(clock, monkeypatch):
    def raises(a, b):
        raise RuntimeError("no kernel\nfor this type")

    peers = [program(raises, "jax: bad", PEER), Absent("torch: none", "torch is not installed")]
    found = rows(clock, monkeypatch, [], peers=peers)
    _, row = found[False, "jax: bad"]
    assert row.status == "failed"
    assert row.message.startswith("raised RuntimeError: no kernel for this type")
    assert "\n" not in row.message
    _, absent = found[False, "torch: none"]
    assert (absent.status, absent.message) == ("skipped", "torch is not installed")
    assert found[False, "mirror"][1].timed


@pytest.mark.long
def test_a_peer_that_raises_while_it_is_timed_is_a_row_too(clock, monkeypatch):
    calls = []

    def third(a, b):
        calls.append(1)
        if len(calls) > 12:
            raise MemoryError("no room")
        return scan(a, b)

    found = rows(clock, monkeypatch, [], peers=[program(third, "jax: late", PEER)])
    _, row = found[False, "jax: late"]
    assert (row.status, row.message.startswith("raised MemoryError: no room")) == ("failed", True)


@pytest.mark.long
def test_an_implementation_without_a_gradient_says_so(clock, monkeypatch):
    found = rows(clock, monkeypatch, [program(scan, "no vjp")], vjp=True)
    assert found[True, "no vjp"][1].message == "it has no gradient"
    assert found[True, "mirror"][1].timed


@pytest.mark.long
def test_what_takes_too_long_is_not_called_at_its_full_size(clock, monkeypatch):
    sizes = []

    def crawling(a, b):
        sizes.append(b.size)
        clock.now += b.size * 0.005
        return scan(a, b)

    found = rows(clock, monkeypatch, [program(crawling, "crawling")])
    _, row = found[False, "crawling"]
    assert row.status == "skipped"
    assert "takes" in row.message
    assert max(sizes) < 2 * 256 * 16


def test_what_needs_more_memory_than_there_is_is_not_called(clock, monkeypatch):
    from refssm.bench.programs import calls

    monkeypatch.setattr(calls, "available", lambda: 1000)
    monkeypatch.setattr(calls, "peak_of", lambda call: call() is not None and 900)
    _, row = rows(clock, monkeypatch, [program(scan, "large")])[False, "large"]
    assert row.status == "skipped"
    assert row.message.startswith("it needs about")


@pytest.mark.long
def test_a_declaration_that_declines_the_inputs_is_a_row(clock, monkeypatch):
    from refssm.subjects import constant_in_time

    for only in (constant_in_time, lambda x: None):
        special = program(scan, "special", only=only)
        _, row = rows(clock, monkeypatch, [special])[False, "special"]
        assert row.message == "it does not do this work: its declaration declines these inputs"


@pytest.mark.long
def test_the_copies_of_the_inputs_are_used_in_turn(clock, monkeypatch):
    places = []

    def seen(a, b):
        places.append(b.__array_interface__["data"][0])
        return scan(a, b)

    _, row = rows(clock, monkeypatch, [program(seen, "seen")])[False, "seen"]
    assert row.copies > 1
    assert len({*places}) >= min(row.copies, len(row.seconds) * row.repeats)


@pytest.mark.long
def test_inaccuracy_is_seen_beside_the_time(clock, monkeypatch):
    rough = program(lambda a, b: scan(a, b) * np.float32(1.001), "rough")
    found = rows(clock, monkeypatch, [rough])
    _, row = found[False, "rough"]
    _, mirror = found[False, "mirror"]
    for r, is_rough in ((row, True), (mirror, False)):
        assert None not in (r.relative, r.bits, r.ratio)
        assert ((r.relative or 0) > 5e-4) == is_rough
        assert ((r.bits or 0) < 15) == is_rough
        assert ((r.ratio or 0) > 100) == is_rough
    assert row.accuracy_at == "one member of each batch axis"


@pytest.mark.long
def test_a_mirror_given_as_a_file_is_timed_once(clock, monkeypatch):
    own = program(scan, "refssm.jit.scan::linear_scan")
    twin = program(scan, "mirror", MIRROR)
    monkeypatch.setattr(running, "ours", lambda op, device: [twin])
    (group,) = bench(clock).groups([(LINEAR_SCAN, [own])])
    assert [row.label for row in group.rows] == [own.label]


@pytest.mark.long
def test_an_interruption_leaves_the_rows_of_the_work_that_was_running(clock, monkeypatch):
    calls = []

    def interrupted(a, b):
        calls.append(1)
        if len(calls) == 14:
            raise KeyboardInterrupt
        return scan(a, b)

    monkeypatch.setattr(
        running, "ours", lambda op, device: [program(interrupted, "mirror", MIRROR)]
    )
    made = bench(clock)
    with pytest.raises(KeyboardInterrupt):
        list(made.groups([(LINEAR_SCAN, [])]))
    assert made.partial is not None
    assert made.partial.rows[0].seconds


@pytest.mark.long
def test_where_the_truth_costs_too_much_the_accuracy_is_that_of_the_judge(clock, monkeypatch):
    monkeypatch.setattr(running.Truth, "compute", lambda self, clock: False)
    own = program(taking(clock, 1.0), "own", REFERENCE)
    _, row = rows(clock, monkeypatch, [own], judge=Judge())[False, "own"]
    assert row.accuracy_at == "the judge's cases"
    assert (row.ratio or 0) > 0
    assert row.bits == 24
    assert row.relative is None


def test_inputs_that_are_larger_than_the_memory_are_not_drawn(clock, monkeypatch):
    monkeypatch.setattr(making, "available", lambda: 10**6)
    found = rows(clock, monkeypatch, [])
    ((_, row),) = found.values()
    assert (row.status, row.seconds) == ("skipped", ())
    assert "to draw the inputs needs about" in row.message


@pytest.mark.parametrize("sizes", ["small", "paper", "large", "one"])
def test_with_a_card_the_inputs_of_a_large_batch_are_drawn_for_a_smaller_one(monkeypatch, sizes):
    op, seen, whole = operator_named("dplr_kernel"), [], running.drawn

    def counted(op, size):
        seen.append(size.batch["d"])
        return whole(op, size)

    monkeypatch.setattr(running, "drawn", counted)
    made = Bench(BenchSettings(sizes=sizes, device="gpu"), card=StandIn())
    sized, single = made._sizes(op, [])[0], made._sizes(op, [])[-1]
    assert {a.shape[0] for a in made._drawn(op, sized)} == {sized.batch["d"]}
    assert {a.shape[0] for a in made._drawn(op, single)} == {1}
    assert seen == [64 if sizes == "large" else sized.batch["d"], 1]
