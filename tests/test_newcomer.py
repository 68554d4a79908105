"""Questions of a newcomer: the README answers each, or one of three pages to which it leads."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from refssm.command.application import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
ANSWERS = README.partition("## First questions\n")[2].partition("\n## ")[0]
# a question, what the README says, and what the section says to which it leads
QUESTIONS = {
    "Which operator is my kernel?": ("`refssm doctor my_ops.py`", ""),
    "It is a CUDA kernel. How do I call it?": (
        "write a function of the operator's arguments",
        "docs/frameworks.md#on-a-cuda-device: should launch on the stream that is current",
    ),
    "My axes have another order.": ('`--layout "b n l, b n l -> b n l"`', ""),
    "My kernel has fixed sizes.": (
        "`--where n=16..16`",
        "docs/frameworks.md#kernels-that-support-some-sizes-only: or None to decline the case",
    ),
    "bfloat16?": (
        "`--dtype bfloat16`",
        'docs/frameworks.md#16-bits: `Budget(computes="float32")` allows',
    ),
    "Is its gradient right?": ("`--vjp`", ""),
    'What does "inaccurate" mean, beside "wrong"?': (
        "Grade N is a pass: right in norm",
        "docs/judge.md#what-is-accepted: inaccurate: it would pass if",
    ),
    "How do I put it in CI?": ("docs/examples/refssm.yml", ""),
    "How fast is it?": ("`refssm bench my_ops.py`", ""),
    "Does it need a GPU?": ("No.", ""),
    "How do I test a law of my own?": (
        "with Hypothesis",
        "docs/laws.md#laws-of-your-own: A law needs three lines",
    ),
}
MOST_PAGES, MOST_LINES = 3, 150


def section(place):
    """The text below a heading, up to the next one of its level or above."""
    page, _, anchor = place.partition("#")
    parts = re.split(r"^(#+) (.*)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    anchors = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in parts[2::3]]
    return " ".join(parts[3 * anchors.index(anchor) + 3].split())


def answers(text):
    """The answer to each bold question of a list."""
    found = re.findall(r"^- \*\*(.*?)\*\* (.*?)(?=^- \*\*|^$)", text, re.MULTILINE | re.DOTALL)
    return {question: " ".join(answer.split()) for question, answer in found}


def test_the_readme_answers_the_questions_of_a_newcomer():
    assert answers(ANSWERS).keys() == QUESTIONS.keys()
    assert len(QUESTIONS) >= 10
    assert answers("- **A?** b\n  c\n- **D?** e\n\nf") == {"A?": "b c", "D?": "e"}


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_says_what_to_do_and_where_more_is(question):
    said, more = QUESTIONS[question]
    answer = answers(ANSWERS)[question]
    assert said in answer
    assert len(answer) <= 330
    if more:
        place, _, words = more.partition(": ")
        assert place.removesuffix("#laws-of-your-own") in answer
        assert words in section(place)


def test_three_pages_are_enough_and_the_readme_stays_short():
    places = [more.partition("#")[0] for _, more in QUESTIONS.values() if more]
    assert len({*places}) <= MOST_PAGES
    assert len(README.splitlines()) <= MOST_LINES


def test_each_command_and_option_of_an_answer_exists():
    commands = getattr(typer.main.get_command(app), "commands", {})
    known = {o for p in commands["verify"].params for o in (*p.opts, *p.secondary_opts)}
    quoted = re.findall(r"`([^`]*)`", ANSWERS)
    options = {w for q in quoted for w in shlex.split(q) if w.startswith("--")}
    assert len(options) >= 6
    assert options - known == set()
    named = {q.split()[1] for q in quoted if q.startswith("refssm ")}
    assert named == {"find", "doctor", "verify", "bench"}
    assert named <= {*commands}
