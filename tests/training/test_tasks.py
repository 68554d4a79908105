"""Facts about each task: shapes, what counts, frequencies, and that the signal has the answer."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from training.small import setup

from refssm.training.loop import Plan
from refssm.training.setup import Setup
from refssm.training.tasks import TASKS, TrainingError
from refssm.training.tasks.catalog import sizes_of
from refssm.training.tasks.digits import nearest_of, scanned
from refssm.training.tasks.noise import waves

pytest.importorskip("sklearn", reason="the digits are in scikit-learn")

NAMES = [name for name in TASKS if name != "waves"]  # that one is of these tests
COUNT, DEVIATIONS = 4000, 6  # of a normal number: a chance of 2e-9, for one fixed seed
SMALL = {
    "induction_head": {"symbols": 5, "l": 6},
    "associative_recall": {"symbols": 7, "pairs": 4},
    "copying": {"symbols": 5, "copied": 3, "blanks": 4},
    "selective_copying": {"symbols": 6, "copied": 3, "blanks": 5},
    "delay": {"l": 16, "lag": 3},
    "padded_digits": {"noise": 5},
    "pendulum": {"l": 4},
    "tones": {"l": 256},
    "listops": {"l": 24, "depth": 3, "most": 6},
    "pathfinder": {},
    "membrane": {"l": 32},
}
EACH = pytest.mark.parametrize("name", NAMES)
SYMBOLIC = pytest.mark.parametrize(
    "name", ["induction_head", "associative_recall", "copying", "selective_copying"]
)


@cache
def made(name, small=False):
    return TASKS[name](**SMALL.get(name, {}) if small else {})


@cache
def drawn(name):
    """Many examples of a task with small sizes."""
    return made(name, small=True).batch(np.random.default_rng(1), COUNT)


def near(share, wanted, count):
    """Whether a frequency is that of a binomial number of this probability."""
    return abs(share - wanted) <= DEVIATIONS * np.sqrt(wanted * (1 - wanted) / count)


SHAPES = {
    "digits": ((64, 1), (), "mean", 10),
    "permuted_digits": ((64, 1), (), "mean", 10),
    "padded_digits": ((128, 1), (), "last", 10),
    "induction_head": ((30,), (), "last", 19),
    "associative_recall": ((21,), (), "last", 5),
    "copying": ((120,), (120,), "each", 8),
    "selective_copying": ((144,), (144,), "each", 14),
    "delay": ((256, 1), (256, 1), "each", 1),
    "pendulum": ((50, 576), (50, 2), "each", 2),
    "tones": ((1024, 1), (), "mean", 10),
    "listops": ((256,), (), "mean", 10),
    "pathfinder": ((256, 1), (), "mean", 2),
    "membrane": ((256, 1), (256, 1), "each", 1),
}


def test_every_task_is_described_here():
    assert set(SHAPES) == set(NAMES)


@EACH
def test_signals_and_answers_have_the_shapes_of_the_usual_sizes(name):
    task, (signal, answer, read, classes) = made(name), SHAPES[name]
    for given in (task.batch(np.random.default_rng(0), 3), task.test.rows(slice(3))):
        assert (given.signals.shape, given.labels.shape) == ((3, *signal), (3, *answer))
    assert (task.read, task.classes, task.name) == (read, classes, name)
    kind = np.dtype(np.float32) if task.draw is None or not task.symbols else np.dtype(int)
    assert given.signals.dtype == kind


@EACH
def test_the_same_seed_gives_the_same_batch_and_the_test_is_always_the_same(name):
    one, same, other = (
        made(name).batch(np.random.default_rng(s), 40).signals.tobytes() for s in (5, 5, 6)
    )
    assert one == same != other
    again = TASKS[name]()
    for a, b in zip(made(name).test, again.test, strict=True):
        assert (a is None) == (b is None)
        assert np.array_equal(a, b) or a is None


@pytest.mark.parametrize(
    "name", ["delay", "padded_digits", "selective_copying", "tones", "pathfinder", "membrane"]
)
def test_no_example_of_the_test_is_trained_on(name):
    rows = {row.tobytes() for row in made(name).batch(np.random.default_rng(0), COUNT).signals}
    assert not rows & {row.tobytes() for row in made(name).test.signals}


def induction(u):
    """What follows the first trigger; the trigger is the last symbol."""
    return u[list(u[:-1]).index(u[-1]) + 1]


def recall(u, keys=3):
    return dict(zip(u[:-1:2], u[1::2], strict=True))[u[-1]] - keys


def copied(u):
    return [x for x in u if x < u.max() - 1]


ANSWERS = {
    "induction_head": induction, "associative_recall": recall, "copying": copied,
    "selective_copying": copied,
}  # fmt: skip


def right(name, given):
    """The share of counted answers that follow from the signals by the rule of the task."""
    found = np.array([ANSWERS[name](u) for u in given.signals])
    labels = given.labels
    if given.weights is not None:
        labels = labels[given.weights > 0].reshape(len(labels), -1)
    return (found == labels).mean()


@SYMBOLIC
def test_the_signal_has_the_answer_so_the_best_accuracy_is_one(name):
    given = drawn(name)
    assert right(name, given) == made(name).marks["best"] == 1
    late = given._replace(signals=np.roll(given.signals, 1, 0))  # another signal's answer
    assert right(name, late) < 1


@SYMBOLIC
def test_chance_is_the_accuracy_of_one_answer_for_all_signals(name):
    given, task = drawn(name), made(name, small=True)
    labels = given.labels if given.weights is None else given.labels[given.weights > 0]
    assert task.marks["chance"] == 1 / task.classes
    for answer in range(task.classes):
        assert near((labels == answer).mean(), task.marks["chance"], labels.size)
    skewed = np.where(labels == 0, 1, labels)
    assert not near((skewed == 1).mean(), task.marks["chance"], labels.size)


@pytest.mark.parametrize("name", ["copying", "selective_copying"])
def test_only_the_last_answers_count(name):
    weights = drawn(name).weights
    assert (weights == (np.arange(weights.shape[1]) >= weights.shape[1] - 3)).all()


def test_the_trigger_of_an_induction_head_stands_twice_and_first_at_a_uniform_place():
    u = drawn("induction_head").signals
    assert ((u == 4).sum(-1) == 2).all()
    assert (u[:, -1] == 4).all()
    first = (u == 4).argmax(-1)
    assert [near((first == k).mean(), 1 / 4, COUNT) for k in range(4)] == [True] * 4
    others = u[u != 4]
    assert [near((others == s).mean(), 1 / 4, others.size) for s in range(4)] == [True] * 4


def test_recall_shows_uniform_keys_each_with_one_value_and_asks_one_of_them():
    u = drawn("associative_recall").signals
    keys, values, asked = u[:, :-1:2], u[:, 1::2], u[:, -1]
    assert (keys.max(), values.min(), values.max()) == (2, 3, 6)
    for row, its in zip(keys, values, strict=True):
        assert len(set(zip(row, its, strict=True))) == len(set(row))
    assert (keys == asked[:, None]).any(-1).all()
    assert all(near((keys == k).mean(), 1 / 3, keys.size) for k in range(3))
    assert all(near((asked == k).mean(), 1 / 3, COUNT) for k in range(3))


def test_copying_gives_symbols_blanks_a_mark_and_blanks():
    u = drawn("copying").signals
    assert u.shape[1] == 4 + 2 * 3
    assert (u[:, :3] < 3).all()
    assert (u[:, 3:6] == 3).all()
    assert (u[:, 6] == 4).all()
    assert (u[:, 7:] == 3).all()


def test_selective_copying_has_its_symbols_at_uniform_places_before_the_marks():
    u = drawn("selective_copying").signals
    assert (u[:, 8:] == 5).all()
    there = u[:, :8] < 4
    assert (there.sum(-1) == 3).all()
    assert (u[:, :8][~there] == 4).all()
    assert all(near(share, 3 / 8, COUNT) for share in there.mean(0))


def test_the_delayed_wave_is_the_signal_and_only_steps_after_the_lag_count():
    given, task = drawn("delay"), made("delay", small=True)
    counted = given.weights[..., None] > 0
    assert (counted[0, :, 0] == (np.arange(16) >= 3)).all()
    shifted = np.concatenate([np.zeros_like(given.signals[:, :3]), given.signals[:, :-3]], 1)
    assert (np.where(counted, given.labels - shifted, 0) == 0).all()
    assert (np.where(counted, given.labels - given.signals, 0) != 0).any()
    assert task.marks == {"chance": 1.0, "best": 0.0}


def test_waves_have_the_power_one_and_no_frequency_above_a_quarter():
    u = waves(np.random.default_rng(0), 2000, 64)
    # a sum of 8 waves: its square has the mean 1, and that of a signal the variance 1/8
    assert abs((u**2).mean() - 1) <= DEVIATIONS * np.sqrt(1 / 8 / len(u))
    spectrum = np.abs(np.fft.rfft(u))
    kept = np.arange(33)
    kept = (kept > 0) & (kept <= 8)
    # an FFT errs by log2 l roundings of the norm of its input, back and forth
    assert spectrum[:, ~kept].max() <= 2 * 6 * 2.0**-53 * np.linalg.norm(spectrum, axis=-1).max()
    assert spectrum[:, kept].min() > 0


def test_digits_are_1437_and_360_with_pixels_from_minus_one_to_one():
    for name in ("digits", "permuted_digits"):
        task = made(name)
        assert (len(task.signals), len(task.test_signals)) == (1437, 360)
        assert (task.signals.min(), task.signals.max()) == (-1, 1)
        both = np.concatenate([task.signals, task.test_signals])
        assert (both * 8 == np.round(both * 8)).all()


def test_permuted_digits_are_digits_in_one_other_order():
    one, other = made("digits").signals[..., 0], made("permuted_digits").signals[..., 0]
    order = np.random.default_rng(0).permutation(64)
    assert (one[:, order] == other).all()
    assert (one != other).any()
    assert (made("digits").labels == made("permuted_digits").labels).all()


def test_padded_digits_are_digits_and_then_normal_noise_that_says_nothing():
    given, (digits, labels) = drawn("padded_digits"), scanned("padded_digits")
    pixels, noise = given.signals[:, :64, 0], given.signals[:, 64:, 0]
    known = {row.tobytes(): label for row, label in zip(digits[:-360], labels[:-360], strict=True)}
    assert all(
        known[row.tobytes()] == label for row, label in zip(pixels, given.labels, strict=True)
    )
    assert abs(noise.mean()) <= DEVIATIONS / np.sqrt(noise.size)
    assert abs((noise**2).mean() - 1) <= DEVIATIONS * np.sqrt(2 / noise.size)
    for digit in range(10):
        its = noise[given.labels == digit]
        assert abs(its.mean()) <= DEVIATIONS / np.sqrt(its.size)


@pytest.mark.parametrize("name", ["digits", "permuted_digits", "padded_digits"])
def test_the_marks_of_digits_are_the_commonest_class_and_the_nearest_neighbour(name):
    signals, labels = (a.astype(float) for a in scanned(name))
    test, train = signals[-360:], signals[:-360]
    nearest = [((train - x) ** 2).sum(-1).argmin() for x in test]
    share = float((labels[:-360][nearest] == labels[-360:]).mean())
    counts = [(labels[:-360] == c).sum() for c in range(10)]
    chance = float((labels[-360:] == np.argmax(counts)).mean())
    assert made(name).marks == {"chance": chance, "nearest neighbour": share}
    assert (nearest_of(test.astype(np.float32), train.astype(np.float32)) == nearest).all()


@EACH
def test_every_task_trains_and_tests_with_its_figure(name):
    plan = Plan(steps=2, batch=4, warm_up=0)
    how = {"h": 4, "depth": 1, "norm": "layer", "sizes": {"n": 2}, "ops": "reference"}
    trainer = Setup(name, "s5", plan=plan, task_sizes=SMALL.get(name, {}), **how).trainer()
    state, facts = trainer.step(trainer.start())
    figure = "error" if name in ("delay", "pendulum", "membrane") else "accuracy"
    assert set(facts) == {"step", "loss", figure, "gradient", "rate"}
    assert set(trainer.test(state)) == {"test_loss", f"test_{figure}"}


UNFIT = {
    "induction_head": ({"l": 2}, "induction_head: wanted l ≥ 3, got 2"),
    "associative_recall": ({"symbols": 3}, "associative_recall: wanted symbols ≥ 4, got 3"),
    "copying": ({"symbols": 2}, "copying: wanted symbols ≥ 3, got 2"),
    "selective_copying": ({"blanks": 0}, "selective_copying: wanted blanks ≥ 1, got 0"),
    "delay": ({"lag": 300}, "delay: wanted l − lag ≥ 1, got -44"),
    "padded_digits": ({"noise": 0}, "padded_digits: wanted noise ≥ 1, got 0"),
    "pendulum": ({"l": 101}, "pendulum: wanted l ≤ 100, got 101"),
    "tones": ({"l": 255}, "tones: wanted l ≥ 256, got 255"),
    "listops": (
        {"l": 64, "depth": 2, "most": 3},
        "listops: of 10000 expressions none has 16 to 64 symbols; "
        "wanted more than depth=2 or most=3",
    ),
    "pathfinder": ({"side": 15}, "pathfinder: wanted side ≥ 16, got 15"),
    "membrane": ({"l": 1410}, "membrane: wanted l + ahead ≤ 1425, got 1410 + 16"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_size_that_does_not_fit_is_refused_with_what_is_wanted(name):
    sizes, sentence = UNFIT[name]
    with pytest.raises(TrainingError, match=f"^{re.escape(sentence)}$"):
        replace(setup(), task=name, task_sizes=sizes).trainer()


@EACH
def test_an_unknown_size_of_a_task_names_the_known_ones(name):
    known = ", ".join(sizes_of(TASKS[name]))
    sentence = f"wanted one of {known}" if known else "there is none"
    with pytest.raises(TrainingError, match=f"unknown size of {name} 'm'; {sentence}$"):
        replace(setup(), task=name, task_sizes={"m": 3}).trainer()


def test_generated_batches_may_be_larger_than_any_stored_set():
    plan = replace(setup().plan, batch=5000)
    task = replace(setup(), task="induction_head", plan=plan).trainer().task
    assert len(task.batch(np.random.default_rng(0), 5000).labels) == 5000
