"""A batch in shares: how many there are, what each sees, and that nothing depends on threads."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, get_ident
from unittest.mock import patch

import numpy as np
import pytest
from small import setup
from threadpoolctl import threadpool_info, threadpool_limits

from refssm.jit._compiling import threads
from refssm.jit._compiling.threads import each_on_one_core
from refssm.layers import operators
from refssm.layers.catalog import NAMED
from refssm.layers.model import Model
from refssm.training import shares
from refssm.training.losses import cross_entropy_grad

LABELS = np.arange(6) % 3
SIGNALS = np.random.default_rng(0).standard_normal((6, 5, 1)).astype(np.float32)


def model(norm="layer"):
    return Model(NAMED["s5"], 1, 3, h=4, depth=2, norm=norm, sizes={"n": 2})


def cotangent(y, rows):
    return cross_entropy_grad(y, LABELS[rows], len(LABELS))


def found(made, role="jit", masks=None, cotangent=cotangent, steps=10):
    """The gradients with so many steps in a share."""
    p = made.init(np.random.default_rng(0))
    with patch.object(shares, "STEPS", steps):
        return shares.gradients(made, operators(role), p, SIGNALS, cotangent, masks)


def rows_seen(made, **options):
    seen = []

    def told(y, rows):
        seen.append((rows.start, rows.stop))
        return cotangent(y, rows)

    found(made, cotangent=told, **options)
    return sorted(seen)


@pytest.mark.parametrize(
    ("batch", "l", "count"),
    [(16, 1024, 4), (4, 2**14, 4), (50, 64, 1), (1, 2**16, 1), (3, 4096, 3), (5, 1500, 3)],
)
def test_a_share_has_at_most_4096_steps_of_time_or_one_sequence(batch, l, count):
    assert shares._count(model(), np.empty((batch, l, 1))) == count


def test_every_row_is_in_one_share():
    assert rows_seen(model()) == [(0, 2), (2, 4), (4, 6)]


def test_a_batch_whose_norm_averages_over_it_is_one_share():
    assert rows_seen(model("batch")) == [(None, None)]


def test_operators_that_do_not_say_how_to_use_cores_get_the_whole_batch():
    assert rows_seen(model(), role="reference") == [(None, None)]


def test_averages_of_a_norm_over_the_batch_come_back():
    assert found(model("batch"))[2].keys() == model("batch").averages().keys()


def test_gradients_are_the_same_bits_with_any_number_of_threads():
    results = []
    for count in (1, 2, 3):
        with patch.object(threads, "threads", lambda count=count: count):
            y, gradients, _ = found(model())
        results.append([y.tobytes(), *(g.tobytes() for g in gradients.values())])
    assert results[0] == results[1] == results[2]


def test_outputs_come_in_the_order_of_the_batch():
    y, _, _ = found(model())
    whole, _, _ = found(model(), steps=1000)
    distances = np.abs(y[:, None] - whole).max(-1)
    assert (distances.argmin(-1) == np.arange(len(y))).all()


def test_each_share_has_its_own_rows_of_the_dropout_masks():
    masks = [np.full((6, 5, 4), 2, np.float32) for _ in range(2)]
    for mask in masks:
        mask[:3] = 0  # of the first three sequences, both layers are dropped
    y, _, _ = found(model(), masks=masks)
    without, _, _ = found(model(), masks=[np.zeros_like(m) for m in masks])
    assert [bool(np.array_equal(a, b)) for a, b in zip(y, without, strict=True)] == [True] * 3 + [
        False
    ] * 3


def pools():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_blas_has_one_thread_in_a_share_and_its_own_number_again_after_an_error(error):
    if not pools():
        pytest.skip("threadpoolctl knows no BLAS here")
    inside = []

    def fail(y, rows):
        inside.append(pools())
        raise error("stop")

    with threadpool_limits(2, "blas"):
        before = pools()
        with pytest.raises(error, match="stop"):
            found(model(), cotangent=fail)
        assert pools() == before
    assert max(inside[0]) == 1


def test_two_trainings_at_once_take_turns_and_leave_blas_its_threads():
    if not pools():
        pytest.skip("threadpoolctl knows no BLAS here")
    both_here, seen = Barrier(2, timeout=60), []

    def train(name):
        both_here.wait()
        for _ in range(20):
            each_on_one_core(lambda i: seen.append((name, max(pools()))), range(3))

    before = pools()
    with ThreadPoolExecutor(2) as crew:
        list(crew.map(train, ["first", "second"]))
    names = [name for name, _ in seen]
    turns = [set(names[i : i + 3]) for i in range(0, len(names), 3)]
    assert all(len(turn) == 1 for turn in turns)
    assert {count for _, count in seen} == {1}
    assert pools() == before


def test_shares_inside_a_share_are_computed_by_its_own_thread():
    def inner(_):
        return each_on_one_core(lambda i: get_ident(), range(3))

    assert all(len(set(found)) == 1 for found in each_on_one_core(inner, range(2)))


def test_a_run_has_the_same_bits_with_any_number_of_threads():
    ends = []
    for count in (1, 2):
        with (
            patch.object(threads, "threads", lambda count=count: count),
            patch.object(shares, "STEPS", 12),
        ):
            trainer = setup(norm="layer", ops="jit", dropout=0.2).trainer()
            state = trainer.start()
            for _ in range(3):
                state, _ = trainer.step(state)
        ends.append({n: a.tobytes() for n, a in state.parameters.items()})
    assert ends[0] == ends[1]
