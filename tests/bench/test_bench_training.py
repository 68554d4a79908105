"""Training steps side by side: rows, bars, messages, and the same gradients in JAX."""

from collections import defaultdict
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from docs.build import profile
from docs.build.bars import OF_STEPS, bar_of, standing
from refssm.bench.results.rows import SKIPPED, Row, Work, WorkRows
from refssm.bench.training import steps
from refssm.bench.training.steps import StartingPoint, model_of, step_of
from refssm.bench.work.steps import DEPTH, SETTINGS, WITH_PEER, asked
from refssm.conformance.usage_error import UsageError
from refssm.layers import operators
from refssm.layers.catalog import NAMED
from refssm.training.losses import cross_entropy_grad

SMALL = {name: replace(s, batch=2, l=9) for name, s in WITH_PEER.items()}
each = pytest.mark.parametrize("setting", SMALL.values(), ids=SMALL)


@each
@pytest.mark.long
def test_reference_and_mirror_have_a_row_each_and_jax_says_if_it_is_absent(setting):
    (group,) = steps.groups([setting], peers=True, budget=0.01)
    labels = [row.label for row in group.rows]
    assert labels[:2] == ["reference", "mirror"]
    assert all(row.timed and row.peak is not None for row in group.rows[:2])
    if find_spec("jax") is None:
        (row,) = group.rows[2:]
        assert row.status == SKIPPED
        assert "jax is not installed" in row.message
    else:
        assert all(row.timed for row in group.rows[2:])


@each
def test_steps_on_the_same_batch_make_the_loss_smaller(setting):
    step = step_of(StartingPoint(setting), "reference")
    losses = [step() for _ in range(8)]
    assert losses[-1] < losses[0]


def test_a_step_that_raises_is_a_row_that_says_so(monkeypatch):
    def broken(given, role):
        raise MemoryError("no room")

    monkeypatch.setattr(steps, "step_of", broken)
    (group,) = steps.groups([SMALL["s5"]], peers=False, budget=0.01)
    assert [row.status for row in group.rows] == ["failed", "failed"]
    assert "no room" in group.rows[0].message


def test_an_unknown_layer_names_the_known_ones():
    with pytest.raises(UsageError, match=r"'s6' is timed; wanted one of s4, s4d, "):
        asked(["s6"])


def test_without_a_name_those_with_a_peer_are_timed():
    assert [s.layer for s in asked([])] == ["s5", "mamba"]
    assert {*WITH_PEER} == {*OF_STEPS}


@pytest.mark.parametrize("name", NAMED)
def test_a_step_of_every_layer_can_be_timed(name):
    (setting,) = asked([name])
    sizes = {letter: min(2, size) for letter, size in setting.sizes.items()}
    assert np.isfinite(step_of(StartingPoint(replace(setting, batch=2, l=3, sizes=sizes)), "jit")())


@pytest.mark.long
def test_a_layer_without_a_model_in_jax_has_a_row_that_says_so():
    pytest.importorskip("jax", reason="pip install -e '.[subjects]'")
    (group,) = steps.groups([replace(SETTINGS["rnn"], batch=2, l=3)], peers=True, budget=0.01)
    assert group.rows[2].message == "refssm.bench has no model of rnn in JAX"


def test_a_bar_is_for_the_size_that_it_names():
    s5 = SETTINGS["s5"]
    rows = [
        Row("mirror", "mirror", "numba", seconds=(1.0,) * 7),
        Row("jax: jax_tree", "peer", "jax", seconds=(2.0,) * 7),
    ]
    work = Work(s5.name, s5.letters, "float32", vjp=False)
    assert bar_of(WorkRows(work, rows)) is OF_STEPS["s5"]
    assert bar_of(WorkRows(replace(work, size=s5.letters | {"l": 9}), rows)) is None
    found = standing(WorkRows(work, rows))
    assert found is not None
    assert (found.least, found.came.value, found.met) == (3, 2.0, False)


@pytest.mark.long
@each
def test_a_profile_has_the_whole_first_and_no_part_is_longer(setting):
    (name, whole), *parts = profile.profile(setting)
    assert name == "all"
    assert {"gelu" if setting.layer == "s5" else "silu", "layer_norm"} <= {n for n, _ in parts}
    assert sum(seconds for _, seconds in parts) <= whole
    assert [s for _, s in parts] == sorted((s for _, s in parts), reverse=True)


def test_what_is_watched_adds_the_time_of_each_call():
    spent, ticks = defaultdict(float), iter([1.0, 3.0, 10.0, 14.0])
    ops = profile.timed(spent, lambda: next(ticks))
    x = np.ones(3, np.float32)
    assert np.array_equal(ops.gelu(x), operators("jit").gelu(x))
    ops.gelu(x)
    assert spent == {"gelu": 6.0}


def test_products_of_a_share_are_counted_for_forward_and_both_gradients():
    setting = WITH_PEER["s5"]
    count, rate = profile.products(setting, size=16)
    l, h, n, depth = 4096, 128, 64, 4  # 2 l h n for B and for C, 2 l h h for W; three times
    assert count == 3 * depth * 2 * l * (h * n + n * h + h * h)
    assert rate > 0


@each
def test_the_same_model_in_jax_has_the_same_loss_and_gradients(setting):
    pytest.importorskip("jax", reason="pip install -e '.[subjects]'")
    from refssm.bench.training import jax_models

    given = StartingPoint(setting)
    model, u, labels = model_of(setting), given.signals, given.labels
    y, ours, _ = model.gradients(
        operators("reference"), given.parameters, u, lambda y: cross_entropy_grad(y, labels)
    )
    for layer in jax_models.LAYERS[setting.layer].values():
        loss, theirs = jax_models.value_and_gradients(layer, DEPTH, given.parameters, u, labels)
        assert abs(loss - steps.cross_entropy(y, labels)) <= 64 * 2**-24 * abs(loss)
        for name, g in ours.items():
            # float32 sums over all entries of the batch, in two orders, through every block
            bound = 2**-24 * 64 * DEPTH * u.size * np.abs(g).max()
            assert np.abs(theirs[name] - g).max() <= bound, name
