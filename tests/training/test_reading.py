"""What a model reads and is asked: symbols, steps, gaps, weights; each gradient is a slope."""

import re
from dataclasses import replace

import numpy as np
import pytest
from training.derivatives import UNIT, adjoint, along, direction, slopes

import refssm
from refssm.layers import operators
from refssm.layers._parts import mixing
from refssm.layers.catalog import NAMED
from refssm.layers.model import Model
from refssm.training import shares
from refssm.training.loop import Plan, Trainer
from refssm.training.losses import LOSSES
from refssm.training.tasks import Examples, Task, TrainingError

H, L, E, CLASSES, SYMBOLS = 4, 7, 5, 3, 6
u64 = UNIT
READ = pytest.mark.parametrize("read", mixing.READINGS)


def examples(seed, *, read, loss, symbols, weighted):
    """Examples of one kind, in double precision."""
    rng = np.random.default_rng(seed)
    u = rng.integers(0, SYMBOLS, (E, L)) if symbols else rng.standard_normal((E, L, 2))
    times = (E, L) if read == "each" else (E,)
    labels = rng.integers(0, CLASSES, times)
    if loss == "squared":
        labels = rng.standard_normal((*times, CLASSES))
    weights = rng.integers(0, 3, times) + 0.0
    weights.reshape(E, -1)[:, -1] = 1
    return Examples(u, labels, weights if weighted else None)


def trainer(given, *, read, loss, symbols, pieces=1, layer="s5"):
    """A trainer of a small model on these examples."""
    task = Task(
        "small", CLASSES, given.signals, given.labels, given.signals, given.labels, read=read,
        loss=loss, symbols=SYMBOLS * symbols, weights=given.weights, test_weights=given.weights,
        gaps=given.gaps, test_gaps=given.gaps,
    )  # fmt: skip
    model = Model(
        NAMED[layer], task.inputs, CLASSES, h=H, depth=1, sizes={"n": 2}, read=read,
        symbols=symbols,
    )  # fmt: skip
    return Trainer(model, task, Plan(batch=E, pieces=pieces), refssm)


def in_double(made):
    """The first state with double parameters."""
    p = made.model.init(np.random.default_rng(0), np.float64)
    return replace(made.start(), parameters=p)


KINDS = [
    pytest.param({"read": read, "loss": loss, "symbols": symbols}, weighted,
                 id=f"{read}-{loss}-{'symbols' if symbols else 'signals'}-{weighted}")
    for read in mixing.READINGS
    for loss in LOSSES
    for symbols, weighted in ((True, False), (False, True), (True, True))
]  # fmt: skip


def discrepancy(kind, weighted, change=lambda grads: grads):
    """How far gradients are from the slope of the loss, and how far they may be."""
    given = examples(1, **kind, weighted=weighted)
    made = trainer(given, **kind)
    state = in_double(made)

    def loss(p):
        return made.gradients(replace(state, parameters=p), given, None)[0]

    grads = change(made.gradients(state, given, None)[2])
    t = direction(np.random.default_rng(2), state.parameters)
    first, second = slopes(loss, state.parameters, t)
    # as in property_tests/test_training_gradients.py: errors of the differences, and roundings
    rounding = 2**10 * 2**11 * u64 * max(1.0, abs(first))
    found = abs(along(grads, t) - (4 * second - first) / 3)
    return found, abs(first - second) + rounding


@pytest.mark.parametrize(("kind", "weighted"), KINDS)
def test_the_gradient_is_the_slope_of_the_loss_whatever_is_read_and_asked(kind, weighted):
    found, allowed = discrepancy(kind, weighted)
    assert found <= allowed


WRONG = {
    "a table without its gradient": ("encoder.table", lambda g: 0 * g),
    "a decoder without its gradient": ("decoder.W", lambda g: 0 * g),
    "an encoder's gradient too large by a hundredth": ("encoder.table", lambda g: 1.01 * g),
}


@READ
@pytest.mark.parametrize("what", WRONG)
def test_the_slope_sees_a_wrong_gradient(read, what):
    name, change = WRONG[what]
    kind = {"read": read, "loss": "cross_entropy", "symbols": True}
    found, allowed = discrepancy(kind, True, lambda g: {**g, name: change(g[name])})
    assert found > allowed


SYMBOLS_READ = np.array([[0, 2, 2], [5, 0, 2]])
FORMS = {
    "last_step": (mixing.last_step, mixing.last_step_vjp),
    "embedding": (
        lambda table: mixing.embedding(SYMBOLS_READ, table),
        lambda dx, table: mixing.embedding_vjp(dx, SYMBOLS_READ, table),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_each_reading_has_the_adjoint_of_its_derivative(name):
    f, vjp = FORMS[name]
    rng = np.random.default_rng(3)
    shape = (SYMBOLS, H) if name == "embedding" else (2, 3, H)
    x, t = rng.standard_normal((2, *shape))
    dy = rng.standard_normal(f(x).shape)
    left, right, size = adjoint(f, lambda dy, x: (vjp(dy, x),), dy, [x], [t])
    assert abs(left - right) <= u64 * size


def test_a_symbol_that_occurs_three_times_gets_the_sum_of_three_gradients():
    dx = np.arange(24.0).reshape(2, 3, 4)
    table = np.zeros((SYMBOLS, 4))
    found = mixing.embedding_vjp(dx, SYMBOLS_READ, table)
    assert (found[2] == dx[0, 1] + dx[0, 2] + dx[1, 2]).all()
    assert (found[[1, 3, 4]] == 0).all()
    overwritten = np.zeros_like(table)
    overwritten[SYMBOLS_READ] = dx  # what += with repeated indices does
    assert (overwritten[2] != found[2]).any()


def test_reading_the_last_step_gives_what_reading_each_step_gives_there():
    u = np.random.default_rng(4).standard_normal((E, L, 2))
    made = {r: Model(NAMED["s5"], 2, CLASSES, h=H, depth=1, read=r) for r in ("last", "each")}
    p = made["last"].init(np.random.default_rng(0), np.float64)
    last, each = (made[r].forward(refssm, p, u) for r in ("last", "each"))
    assert each.shape == (E, L, CLASSES)
    # the same numbers in products of other shapes: H + 1 roundings of each of H + 1 terms
    size = 2 * (H + 1) ** 2 * (np.abs(each[:, -1]).max() + 1)
    assert np.abs(last - each[:, -1]).max() <= size * u64


@pytest.mark.parametrize("loss", LOSSES)
def test_an_answer_of_weight_zero_does_not_matter_and_one_of_weight_two_counts_twice(loss):
    kind = {"read": "each", "loss": loss, "symbols": True}
    given = examples(5, **kind, weighted=True)
    zero = given.weights == 0
    assert zero.any()
    assert (given.weights == 2).any()
    other = given.labels.copy()
    other[zero] = 0
    made = trainer(given, **kind)
    state = in_double(made)
    one = made.gradients(state, given, None)
    two = made.gradients(state, given._replace(labels=other), None)
    assert one[:2] == two[:2]
    assert all((one[2][n] == g).all() for n, g in two[2].items())
    chosen = LOSSES[loss]
    y = made.model.forward(refssm, state.parameters, given.signals)
    rows = np.repeat(np.arange(E * L), given.weights.astype(int).ravel())
    flat = y.reshape(E * L, -1)[rows], given.labels.reshape(E * L, *given.labels.shape[2:])[rows]
    want = chosen.value(*flat, None)
    assert abs(chosen.value(y, given.labels, given.weights) - want) <= 2 * E * L * u64 * want
    total = chosen.of_total(chosen.total(y, given.labels, given.weights), *given[1:3])
    again = chosen.of_total(chosen.total(*flat, None), flat[1], None)
    assert abs(total - again) <= 4 * E * L * u64 * abs(again)


@pytest.mark.parametrize("loss", LOSSES)
def test_pieces_of_a_batch_with_weights_add_up_to_the_whole(loss):
    kind = {"read": "each", "loss": loss, "symbols": True}
    given = examples(6, **kind, weighted=True)
    whole, parts = trainer(given, **kind), trainer(given, **kind, pieces=3)
    state = in_double(whole)
    one, two = (made.gradients(state, given, None) for made in (whole, parts))
    for a, b in zip(one[:2], two[:2], strict=True):
        assert abs(a - b) <= 2 * E * L * u64 * abs(a)
    for name, g in one[2].items():  # sums of E·L terms in another order
        assert np.abs(two[2][name] - g).max() <= 2 * E * L * 2**5 * u64 * (1 + np.abs(g).max())


def test_shares_of_a_batch_take_their_own_symbols_labels_and_weights(monkeypatch):
    kind = {"read": "each", "loss": "cross_entropy", "symbols": True}
    given = examples(7, **kind, weighted=True)
    found = []
    for steps in (10**6, L):
        monkeypatch.setattr(shares, "STEPS", steps)
        made = replace(trainer(given, **kind), ops=operators("jit"))
        found.append(made.gradients(in_double(made), given, None))
    (loss, _, one, _), (other, _, two, _) = found
    assert abs(loss - other) <= 2 * E * L * u64 * loss
    for name, g in one.items():
        assert np.abs(two[name] - g).max() <= 2 * E * L * 2**5 * u64 * (1 + np.abs(g).max())


SIGNALS = {"read": "mean", "loss": "cross_entropy", "symbols": False}


def with_gaps(seed=9):
    """Examples with gaps from 0 to 2."""
    given = examples(seed, **SIGNALS, weighted=False)
    return given._replace(gaps=np.random.default_rng(seed).uniform(0, 2, (E, L)))


def outputs(layer, gaps):
    given = with_gaps()
    made = trainer(given, **SIGNALS, layer=layer).model
    p = made.init(np.random.default_rng(0), np.float64)
    return made.forward(refssm, p, given.signals, gaps=gaps)


def test_a_layer_with_a_second_input_reads_the_gaps_and_others_do_not_see_them():
    gaps = with_gaps().gaps
    one, none = (outputs("s5_irregular", g) for g in (np.ones((E, L)), None))
    assert (one == none).all()
    assert (outputs("s5_irregular", gaps) != one).all()
    assert (outputs("s5", gaps) == outputs("s5", None)).all()
    swapped = outputs("s5_irregular", gaps[::-1])  # each example has its own
    assert (swapped[0] != outputs("s5_irregular", gaps)[0]).any()


@pytest.mark.parametrize("prenorm", [True, False])
def test_with_gaps_the_gradient_is_the_slope_of_the_loss(prenorm):
    given = with_gaps()
    made = trainer(given, **SIGNALS, layer="s5_irregular")
    made = replace(made, model=replace(made.model, prenorm=prenorm))
    state = in_double(made)

    def loss(p):
        return made.gradients(replace(state, parameters=p), given, None)[0]

    t = direction(np.random.default_rng(2), state.parameters)
    first, second = slopes(loss, state.parameters, t)
    allowed = abs(first - second) + 2**10 * 2**11 * u64 * max(1.0, abs(first))
    exact = (4 * second - first) / 3
    found = along(made.gradients(state, given, None)[2], t)
    assert abs(found - exact) <= allowed
    without = along(made.gradients(state, given._replace(gaps=None), None)[2], t)
    assert abs(without - exact) > allowed


@pytest.mark.parametrize("how", ["pieces", "shares"])
def test_each_part_of_a_batch_takes_its_own_gaps(monkeypatch, how):
    given = with_gaps()
    whole = trainer(given, **SIGNALS, layer="s5_irregular")
    parts = trainer(given, **SIGNALS, layer="s5_irregular", pieces=3 if how == "pieces" else 1)
    if how == "shares":
        monkeypatch.setattr(shares, "STEPS", L)
        parts = replace(parts, ops=operators("jit"))
    state = in_double(whole)
    one, two = (made.gradients(state, given, None) for made in (whole, parts))
    wrong = parts.gradients(state, given._replace(gaps=given.gaps[::-1]), None)
    assert abs(one[0] - two[0]) <= 2 * E * L * u64 * one[0]
    assert abs(one[0] - wrong[0]) > 2 * E * L * u64 * one[0]
    for name, g in one[2].items():
        assert np.abs(two[2][name] - g).max() <= 2 * E * L * 2**5 * u64 * (1 + np.abs(g).max())


def test_a_step_and_a_test_of_a_task_with_gaps_read_them():
    given = with_gaps()
    single = given._replace(signals=given.signals.astype(np.float32))
    single = single._replace(gaps=given.gaps.astype(np.float32))
    made = trainer(single, **SIGNALS, layer="s5_irregular")
    bare = trainer(single._replace(gaps=None), **SIGNALS, layer="s5_irregular")
    state = made.start()
    assert made.step(state)[1]["loss"] != bare.step(state)[1]["loss"]
    assert made.test(state) != bare.test(state)


def test_the_answer_zero_has_the_error_one_and_the_right_one_none():
    squared = LOSSES["squared"]
    target = np.random.default_rng(8).standard_normal((4, 6, 2))
    for y, want in ((0 * target, 1), (target, 0), (2 * target, 1)):
        assert squared.of_total(squared.total(y, target, None), target, None) == want


def test_the_table_of_symbols_does_not_decay_and_is_a_matrix_of_normal_numbers():
    model = Model(NAMED["s5"], 2000, 3, h=50, depth=1, symbols=True)
    table = model.init(np.random.default_rng(0), np.float64)["encoder.table"]
    assert table.shape == (2000, 50)
    assert model.groups()["encoder.table"] == "plain"
    # the variance of the mean of 1e5 squares of normal numbers is 2/1e5: six deviations
    assert abs((table**2).mean() - 1) <= 6 * np.sqrt(2 / table.size)


RIGHT = {"signals": np.zeros((4, 6), int), "labels": np.zeros((4, 6), int)}
WRONG_SHAPES = {
    "signals": ({"signals": np.zeros((4, 6, 1))}, {}, "wanted (examples, l) integers"),
    "real": ({}, {"symbols": 0}, "`signals` has shape (4, 6), wanted (examples, l, inputs)"),
    "labels": ({"labels": np.zeros(4, int)}, {}, "`labels` has shape (4,), wanted (4, 6)"),
    "last": ({}, {"read": "last"}, "`labels` has shape (4, 6), wanted (4,)"),
    "targets": ({}, {"loss": "squared"}, "`labels` has shape (4, 6), wanted (4, 6, 3)"),
    "weights": ({"weights": np.ones(4)}, {}, "`weights` has shape (4,), wanted (4, 6)"),
    "gaps": ({"gaps": np.ones(6)}, {}, "`gaps` has shape (6,), wanted (4, 6)"),
    "symbols": ({"signals": np.full((4, 6), 9)}, {}, "wanted integers from 0 to 5"),
    "negative": ({"signals": np.full((4, 6), -1)}, {}, "int64 from -1 to -1, wanted integers"),
    "classes": ({"labels": np.full((4, 6), 3)}, {}, "`labels` has int64 from 3 to 3, wanted"),
    "unasked": ({"weights": np.zeros((4, 6))}, {}, "has an example without any weight"),
}


@pytest.mark.parametrize("what", WRONG_SHAPES)
def test_examples_of_another_shape_are_refused_with_what_was_wanted(what):
    change, facts, sentence = WRONG_SHAPES[what]
    given = Examples(**RIGHT | change)
    facts = {"read": "each", "symbols": SYMBOLS, **facts}
    right = Examples(**RIGHT)
    if not change:
        right = given
    with pytest.raises(TrainingError, match=re.escape(sentence)):
        Task(
            "mine", CLASSES, given.signals, given.labels, right.signals, right.labels,
            weights=given.weights, gaps=given.gaps, **facts,
        )  # fmt: skip
