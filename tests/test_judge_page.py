"""The pages about the judge: the example, the picture, the tables, and links between pages.

The snippets of the example run as every page's do, in `tests/test_docs.py`.
"""

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from selftest import stored

from docs.build import overview
from refssm.conformance.gauges.tracked import Tracked
from refssm.conformance.judging.expected import expect
from refssm.scan import LINEAR_SCAN

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/judge.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def text(path):
    return path.read_text(encoding="utf-8")


def test_the_page_is_short():
    assert len(text(PAGE).splitlines()) <= 250


def by_hand():
    """The rows of the worked example: value, carried error, own rounding, bound."""
    number = r"([−\d.]+)"
    pattern = rf"^\| `(\w+) = .*?` \| {number} \| (.*?) \| {number}.*? \| {number} \|$"
    for name, value, carried, own, bound in re.findall(pattern, text(PAGE), re.MULTILINE):
        numbers = (value, carried.rpartition(" ")[2], own, bound)
        yield name, [float(n.replace("−", "-")) for n in numbers]


def test_the_example_by_hand_is_what_tracked_arithmetic_gives():
    half, one = Tracked(0.5), Tracked(1.0)
    states = {"x0": one, "p1": half * one}
    states["x1"] = states["p1"] + one
    states["p2"] = half * states["x1"]
    states["x2"] = states["p2"] - one
    rows = dict(by_hand())
    assert rows.keys() == states.keys()
    for name, (value, carried, own, bound) in rows.items():
        assert carried + own == bound, name
        assert (states[name].value, states[name].errors[0]) == (value, bound), name


def test_k0_of_the_scan_is_that_of_the_example_by_hand():
    a, b = np.full((3, 1), 0.5, np.float32), np.array([[1], [1], [-1]], np.float32)
    (x,) = expect(LINEAR_SCAN, [a, b])
    states = [row for name, row in by_hand() if name.startswith("x")]
    assert x.value.ravel().tolist() == [value for value, _, _, _ in states]
    assert x.k0.ravel().tolist() == [max(abs(value), bound) for value, _, _, bound in states]
    assert f"so K0 = {', '.join(f'{k:g}' for k in x.k0.ravel())}." in text(PAGE)


def test_the_picture_of_the_page_shows_what_the_page_says(tmp_path):
    pytest.importorskip("matplotlib")
    pictures = import_module("docs.build.pictures")
    found = pictures.errors()
    right, other, wrong = found.programs.values()
    assert (right <= found.k0).all()
    assert (other <= found.k0).all()
    assert (wrong[64:] > 10_000 * found.k0[64:]).all()
    assert (right > 16 * np.abs(found.value)).any()  # a relative error would refuse it
    drawn = text(pictures.draw(tmp_path / "judge.svg", found))
    words = [*found.programs, "accepted: 16 K0", "error in units of u"]
    stored_picture = text(ROOT / pictures.PICTURE)
    assert all(word in drawn and word in stored_picture for word in words)
    assert f"]({pictures.PICTURE.relative_to('docs')})" in text(PAGE)


def test_the_page_of_tables_is_what_make_tables_writes(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert text(overview.PAGE) == overview.overview()  # make tables


def test_the_page_of_the_soak_is_written_from_its_results(monkeypatch):
    monkeypatch.chdir(ROOT)
    rows = stored.read(stored.SOAK, stored.Soaked)
    assert text(stored.SOAK_PAGE) == stored.soak_page(rows)  # make tables
    assert rows == sorted(rows)


def test_a_table_escapes_bars():
    assert stored.table(["a"], [["|x|"]]) == "| a |\n| --- |\n| \\|x\\| |"


def anchors(path):
    """The anchors of the headings of a page."""
    headings = re.findall(r"^#+ .*$", text(path), re.MULTILINE)
    return {overview.anchor(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", h)) for h in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_between_pages_find_their_page_and_heading(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", text(path)):
        if re.match(r"\w+:", target):
            continue
        file, _, anchor = target.partition("#")
        page = path.parent / file if file else path
        assert page.exists(), target
        assert not anchor or page.suffix != ".md" or anchor in anchors(page), target
