"""The page draws what the judge compared: damage, evidence, block boundaries."""

import re

import numpy as np
import pytest
from judging import judged

import refssm
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.judging.evidence import gathered
from refssm.conformance.judging.verdict import wrong
from refssm.conformance.judging.wrong_entries import BETWEEN, BITS, CLASSES, OF_NORM, RATIO
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings

pytest.importorskip("jinja2", reason="the page is made by jinja2")
pytest.importorskip("matplotlib", reason="its pictures are drawn by matplotlib")

from refssm.command import written as command
from refssm.gallery import damage as gallery


def failure(name, function, check="value", vjp=None, dtype="float32", shrink=False):
    """The failed result of one check, with its evidence."""
    found = Found(operator_named(name), function, vjp)
    how = {"profile": "quick", "shrink": shrink, "folder": None, "evidence": True}
    session = Session(
        InProcess([found]), "here", Settings(types=(dtype,), only_checks=(check,), **how)
    )
    (result,) = [r for r in results_of(session) if r.failed]
    return result


def late(a, b):
    """Too large by one in step 64."""
    x = refssm.linear_scan(a, b).copy()
    x[..., 64:65, :] += 1
    return x


def late_state(*arguments):
    """The last state of a channel is wrong by 1 %."""
    y, x = refssm.selective_scan_stateful(*arguments)
    return y, x * np.float32(1.01)


def off(a, b):
    return refssm.linear_scan(a, b) * np.float32(1.01)


def forgets(a, b):
    """The last entry is wrong if the input is shorter than 20."""
    x = refssm.linear_scan(a, b).copy()
    x[..., -1:, :] *= 1 + (x.shape[-2] < 20)
    return x


def nowhere(a, b):
    return np.nan_to_num(refssm.linear_scan(a, b))


def not_zero(a, b):
    return refssm.linear_scan(a, b) + np.float32(1e-3)


def held_wrongly(A, B, dt):
    A_bar, B_bar = refssm.discretize_impulse(A, B, dt)
    return A_bar * np.float32(1.01), B_bar


FAILURES = {
    "value": (failure, ("linear_scan", off), RATIO),
    "state": (failure, ("selective_scan_stateful", late_state, "state"), RATIO),
    "gradient": (
        failure,
        ("linear_scan", refssm.linear_scan, "gradient", lambda dx, a, b: (dx, dx)),
        RATIO,
    ),
    "law": (failure, ("linear_scan", forgets, "prefix"), BETWEEN),
    "nan": (failure, ("linear_scan", nowhere, "nan"), CLASSES),
    "bit by bit": (failure, ("linear_scan", not_zero, "zero"), BITS),
    "norm": (failure, ("discretize_impulse", held_wrongly), OF_NORM),
}


def found(pattern, text):
    """The first match, which must be there."""
    match = re.search(pattern, text, re.S)
    assert match is not None
    return match


def seen(*arguments):
    """The view of damage that can be drawn."""
    view = gallery.seen(*arguments)
    assert view is not None
    return view


def place_in(message):
    """The output that a message names, and the index."""
    name, index = found(r"(\w+)\[([\d, ]+)\]: got", message).groups()
    return name, tuple(map(int, index.split(",")))


@pytest.mark.parametrize("what", FAILURES)
def test_the_worst_of_the_damage_stands_where_the_message_says(what):
    make, arguments, unit = FAILURES[what]
    result = make(*arguments)
    damage = result.evidence.damage
    name, place = place_in(result.message)
    assert (damage.unit, damage.output) == (unit, name)
    assert len(damage.axes) == damage.ratio.ndim
    if unit == OF_NORM:  # a whole matrix; the message names its worst entry
        matrix = damage.ratio[place[:-2]]
        assert matrix.max() == damage.ratio[place]
        roundings = matrix.size * np.finfo(float).eps
        assert abs(np.sqrt((matrix**2).sum()) / result.ratio - 1) <= roundings
    elif np.isfinite(result.ratio):
        assert damage.ratio[place] == result.ratio == np.nanmax(damage.ratio)
        assert damage.allowed == result.allowed
    else:
        first = tuple(np.argwhere(damage.ratio > 0)[0])
        assert place == first
        assert damage.allowed == 0


@pytest.mark.long
def test_the_damage_is_where_the_sentence_says_it_is():
    result = failure("linear_scan", late, shrink=True)
    assert "entry with l = 64 wrong, the last of 65" in result.message
    assert result.evidence
    damage, drawn = result.evidence.damage, result.evidence.found
    assert damage
    assert drawn
    axis = damage.axes.index("l")
    beyond = np.argwhere(damage.ratio > result.allowed)
    assert {int(i) for i in beyond[:, axis]} == {64}
    assert drawn.ratio.size > damage.ratio.size  # also a case that was not shrunk
    assert {int(i) for i in np.argwhere(drawn.ratio > 16)[:, axis]} == {64}


def test_where_the_smallest_case_is_a_single_number_a_larger_one_is_drawn():
    result = failure("linear_scan", off, shrink=True)
    assert result.evidence
    damage, drawn = result.evidence.damage, result.evidence.found
    assert damage
    assert drawn
    assert damage.ratio.size == 1
    assert drawn.ratio.size >= 64
    (shown,) = command._pictures(result.evidence, "p").pictures
    assert shown.title == command.FOUND


def test_nothing_is_kept_where_it_is_not_asked_for():
    (result,) = [r for r in judged("linear_scan", off, "value") if r.failed]
    assert result.evidence is None


def raises(a, b):
    raise ValueError("no")


def short(a, b):
    return refssm.linear_scan(a, b)[..., :-1, :]


def unlike(*, n):
    w, P, B, V = refssm.nplr_legs(n=n)
    return w * 1.01, P, B, V


WITHOUT = {
    "a crash": (("linear_scan", raises), "the call gave no result"),
    "a shape": (("linear_scan", short), "this failure is not about single entries"),
    "invariants": (
        ("nplr_legs", unlike, "value", None, "complex128"),
        "the check judges quantities that are the same in every basis, not single entries",
    ),
}


@pytest.mark.parametrize("what", WITHOUT)
def test_where_there_is_no_picture_a_few_words_say_why(what):
    arguments, words = WITHOUT[what]
    shown = command._pictures(failure(*arguments).evidence, "p")
    assert shown.pictures == ()
    assert shown.without == words


def test_arguments_are_shown_in_full_or_by_their_ends_and_range():
    op = operator_named("linear_scan")
    a = np.arange(6, dtype=np.float32).reshape(1, 3, 2) / 10
    b = np.arange(400, dtype=np.float64).reshape(2, 100, 2)
    b[0, 3, 1] = np.nan
    small, large = gathered(op, wrong("x"), [a, b], {}).given
    assert (small.name, small.shape, small.dtype) == ("a", "shape (b = 1, l = 3, n = 2)", "float32")
    assert small.values == "[[[0. , 0.1],\n  [0.2, 0.3],\n  [0.4, 0.5]]]"
    assert small.range == ""
    assert large.values.count("...") > 0
    assert large.range == "400 numbers from 0 to 399, 1 not finite"
    b[:] = 1
    b[1, 99, 0] = np.inf
    assert gathered(op, wrong("x"), [a, b], {}).given[1].values == (
        "1.0 throughout, but [1, 99, 0] = inf"
    )


def vertices(svg, name):
    """The points of the first path of one element, in units of the picture."""
    path = found(rf'id="p-{name}">.*? d="([^"]+)"', svg).group(1)
    return np.array([[float(x) for x in m] for m in re.findall(r"[ML] (\S+) (\S+)", path)])


def mislabelled(svg):
    """Boundaries that are not between the last place of a block and the first place of the next.

    Checks the line and its number, relative to the drawn ratios.
    """
    x, bad = vertices(svg, "ratio")[:, 0], []
    for text in re.findall(r'id="p-boundary-(\d+)"', svg):
        label = found(rf'id="p-label-{text}">.*?x="(\S+)".*?>(\d+)</text>', svg)
        places = [*vertices(svg, f"boundary-{text}")[:, 0], float(label.group(1))]
        between = all(x[int(text) - 1] < place < x[int(text)] for place in places)
        bad += [] if between and label.group(2) == text else [text]
    return bad


def drawn(length=100):
    """A picture of damage from place 64 on."""
    ratio = np.where(np.arange(length) < 64, 1.0 + np.arange(length) % 2, 1e4)[None, :, None]
    return gallery.picture(seen(ratio, ("b", "l", "n"), 16.0), "p")


def test_block_boundaries_are_marked_where_they_are():
    svg = drawn()
    assert re.findall(r'id="p-boundary-(\d+)"', svg) == ["16", "32", "64"]
    assert mislabelled(svg) == []
    assert vertices(svg, "ratio").shape == (100, 2)  # every place is drawn


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_boundary_that_is_off_by_one_is_seen(monkeypatch, shift):
    own = gallery._boundaries

    def shifted(axis, view, labels):
        with monkeypatch.context() as patch:
            line = axis.axvline
            patch.setattr(axis, "axvline", lambda x, **how: line(x + shift, **how))
            own(axis, view, labels)

    monkeypatch.setattr(gallery, "_boundaries", shifted)
    assert mislabelled(drawn()) == ["16", "32", "64"]


def test_boundaries_end_within_the_length_and_stand_on_the_sequence_only():
    assert gallery.boundaries(16) == []
    assert gallery.boundaries(17) == [16]
    assert gallery.boundaries(300) == [16, 32, 64, 128, 256]
    square = seen(np.ones((40, 40)), ("n", "n"), 16.0)
    assert (square.columns, square.rows, square.boundaries) == ("n", "n", [])


def test_the_sequence_is_drawn_from_left_to_right_wherever_its_axis_stands():
    ratio = np.zeros((2, 30, 3))
    ratio[1, 20, 2] = 100.0
    for order, axes in (((0, 1, 2), ("b", "l", "n")), ((1, 2, 0), ("l", "n", "b"))):
        view = seen(ratio.transpose(order), axes, 16.0)
        assert (view.columns, view.table.shape) == ("l", (6, 30))
        assert view.worst.tolist() == [100.0 if t == 20 else 0.0 for t in range(30)]
        words = "1 of 30 places along l are above the allowed ratio, the first at l = 20"
        assert words in gallery.told(view)


EXTREMES = {
    "infinite": np.array([[0.0, 1e308, np.inf, np.nan]]),
    "nothing judged": np.full((2, 5), np.nan),
    "no error": np.zeros((2, 3)),
    "long and wide": np.geomspace(1e-5, 1e45, 8192 * 70).reshape(70, 8192),
}


@pytest.mark.parametrize("what", EXTREMES)
@pytest.mark.parametrize("allowed", [0.0, 1e-3, 16.0])
def test_every_ratio_can_be_drawn(what, allowed):
    view = seen(EXTREMES[what], ("b", "l"), allowed)
    svg = gallery.picture(view, "p")
    assert svg.startswith("<svg viewBox=")
    assert len(svg) < 300_000
    assert gallery.told(view)
