"""Facts about the tasks that are made as papers describe them: pendulum, tones, lists, lines; and
about the recorded series."""

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.sparse.csgraph import connected_components

from refssm.training.tasks import TASKS, TrainingError
from refssm.training.tasks.listops import BLANK, OPERATIONS, TOKENS, value_of
from refssm.training.tasks.membrane import FIRST, LAST, PERIOD, SPLIT, potential
from refssm.training.tasks.pendulum import CLEAR, FRICTION, C, mixture, rods, swung
from refssm.training.tasks.tones import RATE, by_spectrum


@cache
def made(name, **sizes):
    return TASKS[name](**sizes)


def symbols(text):
    return [TOKENS.index(token) for token in text.split()]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[MAX 2 9 [MIN 4 7 ] 0 ]", 9),  # the example of the paper
        ("[MED 1 2 ]", 1),
        ("[MED 9 3 5 ]", 5),
        ("[SM 9 9 3 ]", 1),
        ("[SM [MAX 1 6 ] [MIN 8 7 ] ]", 3),
    ],
)
def test_the_values_of_lists_worked_out_by_hand(text, value):
    assert value_of([BLANK, BLANK, *symbols(text)]) == value


def by_python(signal):
    """Another way: the text as an expression of Python."""
    names = {"[MIN": "min((", "[MAX": "max((", "[MED": "median((", "[SM": "last((", "]": ")),"}
    text = "".join(names.get(TOKENS[s], f"{TOKENS[s]},") for s in signal if s != BLANK)
    known = {"median": lambda x: int(np.median(x)), "last": lambda x: sum(x) % 10}
    return eval(text, known)[0]


def test_every_answer_of_listops_is_the_value_of_its_expression():
    given = made("listops").test
    assert [by_python(row) for row in given.signals] == given.labels.tolist()
    lengths = (given.signals != BLANK).sum(-1)
    assert (lengths.min() >= 64, lengths.max() <= 256) == (True, True)
    for row, length in zip(given.signals, lengths, strict=True):
        assert (row[: len(row) - length] == BLANK).all()
    assert np.bincount(given.labels).max() / len(given.labels) == made("listops").marks["chance"]


def test_the_operations_of_listops_are_equally_frequent_and_lists_have_two_to_ten_members():
    signals = made("listops").test.signals
    counts = np.array([(signals == 10 + k).sum() for k in range(4)])
    share = counts / counts.sum()
    assert np.abs(share - 1 / 4).max() <= 6 * np.sqrt(3 / 16 / counts.sum())
    assert len(OPERATIONS) == 4
    sizes = set()
    for row in signals:
        open_ = []
        for s in row[row != BLANK]:
            if s == TOKENS.index("]"):
                sizes.add(open_.pop())
                continue
            if open_:
                open_[-1] += 1
            if s >= 10:
                open_.append(0)
    assert sizes == set(range(2, 11))


def joined(picture):
    """Whether the dots are in one piece of the picture, whose pixels are at most two apart."""
    lit = np.argwhere(picture > 0)
    near = np.abs(lit[:, None] - lit[None]).max(-1) <= 2
    _, piece = connected_components(near)
    first, last = piece[(picture[picture > 0] == 1)]
    return bool(first == last)


@pytest.mark.parametrize("side", [16, 32])
def test_dots_are_joined_as_the_answer_says(side):
    given = made("pathfinder", side=side).test.rows(slice(120))
    pictures = given.signals.reshape(-1, side, side)
    assert [joined(p) for p in pictures] == given.labels.astype(bool).tolist()
    assert set(np.unique(pictures)) == {0, 0.5, 1}
    assert ((pictures == 1).sum((1, 2)) == 2).all()
    other = np.roll(given.labels, 1).astype(bool)
    assert [joined(p) for p in pictures] != other.tolist()


def test_half_of_the_dots_are_joined():
    share = made("pathfinder").test_labels.mean()
    assert abs(share - 0.5) <= 6 * np.sqrt(1 / 4 / 512)


def test_a_pendulum_without_kicks_follows_its_equation_to_second_order():
    times, errors = np.arange(100) * 0.01, []
    for parts in (4, 8):
        ours = swung(np.random.default_rng(3), 5, kick=0.0, parts=parts) + np.pi
        exact = [
            solve_ivp(
                lambda _, y: [y[1], C * np.sin(y[0]) - FRICTION * y[1]],
                (0, times[-1]), [row[0], 0.0], t_eval=times, rtol=1e-12, atol=1e-12,
            ).y[0]
            for row in ours
        ]  # fmt: skip
        errors.append(np.abs(ours - exact).max())
    assert errors[0] < 1e-3  # of a radian: a thousandth of the rod's length
    assert 3.9 < errors[0] / errors[1] < 4.1


def test_kicks_have_the_deviation_of_a_tenth():
    kicked, free = (swung(np.random.default_rng(1), 4000, kick=k) for k in (0.1, 0.0))
    moved = (kicked - free)[:, 1:3]
    assert (moved[:, 0] == 0).all()  # the first kick comes after the first step
    speed = moved[:, 1] / 0.01
    # six deviations of a sample; gravity and friction change a kick by at most C dt² + f dt
    assert abs(speed.std() / 0.1 - 1) <= 6 / np.sqrt(2 * 4000) + C * 0.01**2 + FRICTION * 0.01


def test_rods_point_where_the_angle_says_and_have_their_length():
    down, right = rods(np.array([0.0, np.pi / 2])).reshape(2, 24, 24)
    assert (down[:11].sum(), right[:, :11].sum()) == (0, 0)
    assert (right == down.T).all()
    # 10.3 pixels long and 1.5 wide, and its round ends
    assert 10.3 * 1.5 < down.sum() < 10.3 * 1.5 + 1.5**2


def test_the_mixture_is_clear_first_and_moves_by_little():
    weight = mixture(np.random.default_rng(0), 2000, 50)
    assert (weight[:, :CLEAR] == 1).all()
    assert (weight.min(), weight.max()) == (0, 1)
    later = np.abs(np.diff(weight[:, CLEAR:], axis=-1))
    assert later.max() <= 0.2 / 0.5 * (1 + 2**-20)  # thresholds are at least a half apart
    assert 0.1 < (weight == 0).mean() < 0.4


def test_the_gaps_of_a_pendulum_are_steps_between_chosen_times():
    given = made("pendulum").test
    assert (given.gaps >= 1).all()
    assert (given.gaps == np.round(given.gaps)).all()
    assert (given.gaps.sum(-1) <= 100).all()
    assert set(np.unique(given.gaps)) >= {1, 2, 3, 4}
    squares = (given.labels.astype(float) ** 2).sum(-1)
    assert np.abs(squares - 1).max() <= 4 * 2.0**-24


def test_who_reads_clear_pictures_of_a_pendulum_alone_knows_the_angle():
    task = made("pendulum")
    clear = task.test.signals[:, :CLEAR]
    angles = np.arange(180) * (2 * np.pi / 180)
    at = angles[(clear @ rods(angles).T).argmax(-1)]
    wanted = task.test_labels[:, :CLEAR]
    error = np.hypot(np.sin(at) - wanted[..., 0], np.cos(at) - wanted[..., 1])
    assert error.max() <= 2 * np.pi / 180  # one template beside the nearest
    assert error.max() < task.marks["each picture alone"] < task.marks["chance"] < 1


def test_each_second_sample_of_a_tone_is_the_same_tone_at_half_the_rate():
    whole, half = (made("tones", every=k).test for k in (1, 2))
    assert (whole.signals[:, ::2] == half.signals).all()
    assert (whole.labels == half.labels).all()
    assert (made("tones").marks["by the spectrum"], made("tones").marks["chance"]) == (1, 0.1)


def test_tones_have_their_pitch_and_envelope():
    t = np.arange(2048) / RATE
    low, high = (np.sin(2 * np.pi * f * t) for f in (110.0, 1000.0))
    fading = np.linspace(1, 0.2, 2048)
    classes = by_spectrum(np.stack([low * fading, low * fading[::-1], high * fading]), RATE)
    assert classes.tolist() == [1, 0, 9]


def test_the_period_of_the_membrane_is_the_lag_with_the_smallest_difference():
    pytest.importorskip("matplotlib", reason="the series is in matplotlib")
    x = potential()[FIRST:SPLIT].astype(float)
    lags = np.arange(50, 200)
    apart = [((x[k:] - x[:-k]) ** 2).mean() for k in lags]
    assert lags[np.argmin(apart)] == PERIOD
    marks = made("membrane").marks
    late = potential()[SPLIT:LAST].astype(float)
    late = (late - x.mean()) / x.std()
    wanted = late[PERIOD:]
    error = np.sqrt(((late[:-PERIOD] - wanted) ** 2).sum() / (wanted**2).sum())
    assert abs(marks["a period before"] - error) <= 1e3 * 2.0**-24  # sums of 1281 in float32
    assert marks["a period before"] < marks["chance"] < marks["the last sample"]


def test_membrane_without_matplotlib_or_with_another_file_is_a_sentence(monkeypatch):
    from refssm.training.tasks import membrane as module

    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(TrainingError, match=r"in matplotlib: pip install matplotlib$"):
        TASKS["membrane"]()
    monkeypatch.undo()
    pytest.importorskip("matplotlib", reason="the series is in matplotlib")
    monkeypatch.setattr(module, "COUNT", 5)
    module._loaded.cache_clear()
    with pytest.raises(TrainingError, match="has 12000 samples, wanted 5"):
        TASKS["membrane"]()
    module._loaded.cache_clear()
