"""What the pages of operators say of mirrors, gradients and types is what the catalog has."""

import re
from pathlib import Path

import pytest

from refssm.catalog import OPERATORS
from refssm.conformance.checks.checks import types_of

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs/operators").glob("*.md"))
NAMED = {op.name: op for op in OPERATORS}
COMPLEX = ("complex64", "complex128")
REAL = r"(?<!if )(?<!if all )\b[Aa]rguments are real\b"
CLAIMS = {  # a sentence, and whether it is true of an operator
    r"\bno (?:Numba )?mirrors?\b(?! on the GPU)": lambda op: "jit" in op.lacks,
    r"\bno (?:GPU )?mirrors?\b|\b(?:no mirrors?|not) on the GPU": lambda op: "gpu" in op.lacks,
    r"\bno (?:VJP|gradients?)\b(?! of| for)": lambda op: "vjp" in op.lacks,
    REAL: lambda op: types_of(op)[-1] == "float64",
    r"[Tt]ypes are complex64 and complex128|judged in complex types": lambda op: (
        types_of(op) == COMPLEX
    ),
    r"types \| float32, float64 and their complex types": lambda op: len(types_of(op)) == 4,
}
MIRRORS = {"jit": r"refssm\.jit", "gpu": "refssm_gpu"}


def sections(text):
    """Heading, prose in one line, and the operators that a sentence there is about."""
    parts = [part.partition("\n") for part in re.split(r"^##? ", text, flags=re.MULTILINE)[1:]]
    own = [NAMED.get(heading.rpartition(" ")[2].strip("`")) for heading, _, _ in parts]
    for i, (heading, _, body) in enumerate(parts):
        before = [op for op in (own if i == 0 else own[:i]) if op is not None]
        found = own[i]
        yield heading, " ".join(body.split()), before if found is None else [found]


def untrue(text):
    """Each sentence that is not true of an operator, with its name."""
    return [
        (op.name, match.group())
        for _, prose, ops in sections(text)
        for claim, holds in CLAIMS.items()
        for match in re.finditer(claim, prose)
        # in `resets` has no gradient an argument is meant
        if not prose[: match.start()].endswith("` has ")
        for op in ops
        if not holds(op)
    ]


def without(words):
    """The operators that an exception is about: "the gramians and the singular values"."""
    pieces = re.split(r",? and |, ", words)
    stems = [re.sub(r"^the |(?: forms?|s)$", "", piece).replace(" ", "_") for piece in pieces]
    found = [{op.name for op in OPERATORS if stem in op.name} for stem in stems]
    assert all(found), f"no operator is meant by one of {pieces}"
    return set().union(*found)


def mirrored(text, role):
    """The operators of a page that have a mirror, as its first paragraphs say it."""
    (_, prose, ops), *_ = sections(text)
    said = re.search(rf"`{MIRRORS[role]}[\w.]*`(?: of all but ([^.;,]*))?", prose)
    if said is None:
        return set()
    return {op.name for op in ops} - (without(said[1]) if said[1] else set())


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_a_page_says_of_each_operator_which_mirrors_it_has(path):
    text = path.read_text(encoding="utf-8")
    (_, _, ops), *_ = sections(text)
    for role in MIRRORS:
        assert mirrored(text, role) == {op.name for op in ops if role not in op.lacks}, role


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_no_sentence_about_mirrors_gradients_and_types_is_untrue(path):
    assert untrue(path.read_text(encoding="utf-8")) == []


def test_every_page_without_gradients_or_complex_types_says_so():
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        (_, prose, ops), *_ = sections(text)
        if not ops:
            continue  # functions that are no operators
        assert all("vjp" in op.lacks for op in ops) == bool(re.search(r"\bno VJP\b", prose)), path
        if not all(op.constructor for op in ops):
            real = all(types_of(op)[-1] == "float64" for op in ops)
            assert real == any(re.search(REAL, p) for _, p, _ in sections(text)), path


PAGE = """# Scans

Reference `refssm.scan`, Numba mirror `refssm.jit.scan`, GPU mirror
`refssm_gpu.scan` of all but the steps.

## `linear_scan`

There is no GPU
mirror.

## One step: `linear_step`

There is no VJP. `x` has no gradient.

## Types

All arguments are real, if all arguments are real. It is judged in complex types.
"""


def test_untrue_sentences_are_seen():
    assert untrue(PAGE) == [
        ("linear_scan", "no GPU mirror"),
        ("linear_step", "no VJP"),
        *[(name, "arguments are real") for name in ("linear_scan", "linear_step")],
        *[(name, "judged in complex types") for name in ("linear_scan", "linear_step")],
    ]
    assert mirrored(PAGE, "jit") == {"linear_scan", "linear_step"}
    assert mirrored(PAGE, "gpu") == {"linear_scan"}
    with pytest.raises(AssertionError, match="no operator is meant"):
        without("the gramians and the wheels")
    assert without("the singular values") >= {"hankel_singular_values"}
