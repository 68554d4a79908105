"""A layout that no operator has: what is wrong with which argument, and the nearest valid one."""

import re

import numpy as np
import pytest

from refssm._declaration.layout import canonical, in_layout, parse
from refssm._declaration.layout_near import nearest
from refssm.catalog import OPERATORS
from refssm.conformance.calling.finding import operator_named

SCAN, ZOH = operator_named("linear_scan"), operator_named("discretize_zoh")
LAST = "b n l, b n l -> b n l"
WRONG = {
    "an unknown axis": (
        "b n t, b n l -> b n l",
        "gives `a` the axes b n t, wanted b l n in some order: `t` is no axis of `a`, "
        f"`l` is missing; did you mean '{LAST}'?",
    ),
    "a missing axis": (
        "b n l, b l -> b n l",
        "gives `b` the axes b l, wanted b l n in some order: `n` is missing; "
        f"did you mean '{LAST}'?",
    ),
    "an axis twice": (
        "b n l, b n l -> b n n l",
        "gives `x` the axes b n n l, wanted b l n in some order: `n` is there twice, wanted "
        f"once; did you mean '{LAST}'?",
    ),
    "a bracket that stays open": (
        "(b n l, (b n) l -> b n l",
        "gives `a` the axes (b n l, wanted b l n in some order: Imbalanced parentheses in "
        "expression: \"(b n l\"; did you mean 'b n l, (b n) l -> b n l'?",
    ),
    "other names": (
        "batch time n, batch time n -> batch time n",
        "gives `a` the axes batch time n, wanted b l n in some order: `batch` is no axis of `a`, "
        "`time` is no axis of `a`, `b` is missing, `l` is missing; "
        "did you mean 'b l n, b l n -> b l n'?",
    ),
    "letters without spaces": (
        "bnl, bnl -> bnl",
        "gives `a` the axes bnl, wanted l n in some order: `bnl` is no axis of `a`, `l` is "
        f"missing, `n` is missing; did you mean '{LAST}'?",
    ),
    "a semicolon": (
        "b n l; b n l -> b n l",
        f"must have 2 arguments and 1 outputs, as 'b l n, b l n -> b l n'; did you mean '{LAST}'?",
    ),
    "one array": (
        "b l n -> b l n",
        "must have 2 arguments and 1 outputs, as 'b l n, b l n -> b l n'",
    ),
}


def refusal(op, text):
    """Why the operator does not have this layout, or ""."""
    try:
        parse(in_layout(op, text), text)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("what", WRONG)
def test_the_sentence_names_argument_axis_and_the_nearest_layout(what):
    text, told = WRONG[what]
    assert refusal(SCAN, text) == f"linear_scan: layout '{text}' {told}"


NEAREST = {
    "an axis that is wanted twice": (
        ZOH,
        "d n, d n m, d -> d n n, d n m",
        "`n` is missing once; did you mean 'd n n, d n m, d -> d n n, d n m'?",
    ),
    "a batch axis that is nowhere stays left out": (
        SCAN,
        "l n, l -> l n",
        "`n` is missing; did you mean 'l n, l n -> l n'?",
    ),
    "what is missing does not go into a merged axis": (
        SCAN,
        "(b l) n, (b l) -> (b l) n",
        "`n` is missing; did you mean '(b l) n, (b l) n -> (b l) n'?",
    ),
}


@pytest.mark.parametrize("what", NEAREST)
def test_the_nearest_layout_keeps_what_was_written(what):
    op, text, told = NEAREST[what]
    assert refusal(op, text).endswith(told)


def mutations(text, rng):
    """The layout with a slip, as people make them, and random text."""
    axes = [*re.finditer(r"\w+", text)]
    drop, rename, double = (axes[i] for i in rng.integers(len(axes), size=3))
    yield text[: drop.start()] + text[drop.end() :]
    yield f"{text[: rename.start()]}zz{text[rename.end() :]}"
    yield f"{text[: double.end()]} {double[0]}{text[double.end() :]}"
    yield f"{text[: drop.start()]}({text[drop.start() :]}"
    yield text.replace(" -> ", ", ")
    yield text.upper()
    yield "".join(rng.permutation([*text]))
    yield "".join(rng.choice([*"abln12()., ->…;\n"], size=12))


@pytest.mark.parametrize("op", OPERATORS, ids=str)
def test_what_is_suggested_is_a_layout_of_the_operator(op):
    rng, suggested = np.random.default_rng(7), 0
    for _ in range(3):
        for text in mutations(str(canonical(op)), rng) if op.inputs else ():
            told = refusal(op, text)
            if told:
                found = re.search(r"did you mean '(.*)'\?$|, as '(.*)'$", told)
                assert found, told
                assert refusal(op, found[1] or found[2]) == ""
                suggested += 1
    assert suggested or not op.inputs


def test_a_text_without_an_arrow_is_near_to_none():
    assert nearest("b l n", ["bln", "bln"], ["bln"], "b") == ""
