"""The twelve pages of `docs/learn`: their parts, and answers to their exercises.

The judge passes the answers. The lines of the pages run as those of every page do, in
`tests/test_docs.py`.
"""

import re
from pathlib import Path

import pytest

from refssm.catalog import named
from refssm.command import code

ROOT = Path(__file__).parent.parent
DOOR = (ROOT / "docs/doors/learn.md").read_text(encoding="utf-8")
NAMES = re.findall(r"^\| \[\d+\. .*?\]\(\.\./learn/(\w+)\.md\)", DOOR, re.MULTILINE)
EXERCISE = re.compile(r"^\d\. `(\w+)\(", re.MULTILINE)
short = pytest.mark.short


def page(name):
    return (ROOT / f"docs/learn/{name}.md").read_text(encoding="utf-8")


@short
def test_there_are_twelve_pages_in_the_order_of_their_numbers():
    assert len(NAMES) == len(list(ROOT.glob("docs/learn/*.md"))) == 12
    titles = [page(name).partition("\n")[0] for name in NAMES]
    assert [title.partition(".")[0] for title in titles] == [f"# {i}" for i in range(1, 13)]


@short
@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_its_parts(name):
    text = page(name)
    parts = re.split(r"^## ", text, flags=re.MULTILINE)
    assert [part.partition("\n")[0] for part in parts[1:]] == [
        "Twenty lines", "In float32", "Exercises",
    ]  # fmt: skip
    intro, lines, single, _ = parts
    assert re.search(r"^    (?!>>>).*=", intro, re.MULTILINE)  # a formula
    assert 12 <= len(re.findall(r"^    (?:>>>|\.\.\.) ", lines, re.MULTILINE)) <= 24
    assert re.search(r"!\[.*\]\(\.\./(gallery|pictures)/", lines)
    assert ">>> " in single
    following = NAMES[NAMES.index(name) + 1 :][:1]
    assert [f"]({n}.md)" in parts[-1] for n in following] == [True] * len(following)
    assert f"](../examples/learn/{name}.py)" in parts[-1]


@short
@pytest.mark.parametrize("name", NAMES)
def test_the_answers_are_those_of_the_three_exercises(name):
    asked = EXERCISE.findall(page(name))
    text = (ROOT / f"docs/examples/learn/{name}.py").read_text(encoding="utf-8")
    answered = [f for f in re.findall(r"^def (\w+)\(", text, re.MULTILINE) if named(f)]
    assert len(asked) == 3
    assert sorted(asked) == sorted(answered)
    assert f"docs/learn/{name}.md" in text


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_the_judge_passes_the_answers(name, capfd, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    answers = ROOT / f"docs/examples/learn/{name}.py"
    assert code(["verify", str(answers), "--profile", "quick"]) == 0, capfd.readouterr().out
