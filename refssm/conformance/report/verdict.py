"""The verdict of a whole run in one line: what is wrong, in which operator, and how often.

A failure is said in a few words, too: in the summary of a test suite, a line is cut at the
terminal's width.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from refssm.conformance.checks.checks import rule_named
from refssm.conformance.judging.result import SPREADS, THIN, Result
from refssm.conformance.report.lines import graded

WORDS = {"wrong": "WRONG", "error": "ERROR", "inaccurate": "INACCURATE", THIN: "THIN"}
SEVERITY = tuple(WORDS)  # the worst first
PASSED, NOTHING, OUTDATED = "PASS", "NOTHING JUDGED", "OUT OF DATE"
LONG = 100  # characters of a message that is quoted
IN_NORM = "in norm where terms cancel: small entries there may have no digits"
MOST = 8  # arguments that the verdict's line names


@dataclass(frozen=True)
class RunVerdict:
    """A word in capitals, a sentence, and the numbers behind it; `style` is the word's colour."""

    word: str
    sentence: str
    counts: str

    @property
    def style(self) -> str:
        """Green, yellow or red."""
        return {PASSED: "green", NOTHING: "yellow"}.get(self.word, "red")

    @property
    def line(self) -> str:
        """Word and sentence."""
        return f"{self.word}: {self.sentence}" if self.sentence else self.word


def verdict_of(
    results: Sequence[Result], *, complaints: Sequence[str] = (), interrupted: bool = False
) -> RunVerdict:
    """The verdict on all results; `complaints` are other reasons why the run fails."""
    failed = sorted((r for r in results if r.failed), key=severity)
    if failed:
        word, sentence = WORDS[failed[0].verdict], _failed(failed, results)
    elif complaints:
        word, sentence = OUTDATED, complaints[0]
    elif any(r.verdict == "pass" or r.known or r.tolerated for r in results):
        word, sentence = PASSED, _passed(results)
    else:
        word, sentence = NOTHING, _unjudged(results)
    if interrupted:
        so_far = f"{word} so far" if results else "nothing was judged"
        word, sentence = "INTERRUPTED", ": ".join(part for part in (so_far, sentence) if part)
    return RunVerdict(word, sentence, _counts(results))


def severity(result: Result) -> tuple[int, bool, bool]:
    """Wrong before error, inaccurate and thin; among them values before NaN and infinity, then the
    named causes first."""
    special = rule_named(result.check).special
    worst = SEVERITY.index(result.verdict) if result.verdict in SEVERITY else len(SEVERITY)
    return worst, special, not result.cause


def name_of(result: Result) -> str:
    """The operator, with the function if its file has several for it."""
    return f"{result.operator}::{result.function}" if result.function else result.operator


def file_of(result: Result) -> str:
    """The file, module or command that was judged."""
    return result.implementation.removesuffix(f"::{result.function}")


def _failed(failed: Sequence[Result], results) -> str:
    """Which operator, where, and the most serious failure."""
    worst, others = failed[0], len(_judged(failed)) - 1
    what = f"{name_of(worst)} ({file_of(worst)})"
    if others:
        what += f" and {others} other{'s' * (others > 1)} of {len(_judged(results))}"
    if all(r.cause == SPREADS for r in failed) and any(r.verdict == "pass" for r in results):
        return f"{what}: right on finite inputs; {SPREADS}"
    return f"{what}: {reason(worst, failed)}"


def _passed(results) -> str:
    """What was judged, with the lowest grade and the fewest bits."""
    (name, file), *others = _judged([r for r in results if r.verdict != "skipped"])
    files = {file, *(other for _, other in others)}
    place = f" ({file})" if len(files) == 1 else f" in {len(files)} files"
    what = f"{len(others) + 1} implementations" if others else name
    told = f"{what}{place}: {accuracy(r for r in results if r.verdict == 'pass')}"
    left = [few(names) for names in unjudged(results).values()]
    if not left:
        return told
    count = len(left) - 1
    more = f"; and arguments of {count} other implementation{'s' * (count > 1)}" * bool(count)
    return f"{told}; not judged: {left[0]}{more}"


def unjudged(results: Iterable[Result]) -> dict[str, tuple[str, ...]]:
    """By implementation that was judged, its arguments that the operator does not have."""
    judged = (r for r in results if r.verdict != "skipped" and r.unjudged)
    return {name_of(r): r.unjudged for r in judged}


def few(names: Sequence[str]) -> str:
    """The names, at most `MOST`."""
    more = len(names) - MOST
    return f"{', '.join(names[:MOST])}{f' and {more} more' * (more > 0)}"


def accuracy(results: Iterable[Result]) -> str:
    """The grades of results, and the fewest bits of each type's; those in norm have none to tell.

    A small entry that cancels beside large ones has no digits: that is no flaw of the program.
    """
    results = [r for r in results if r.grade != "-"]
    grades = sorted({r.grade for r in results})
    bits: dict[int, int] = {}
    for r in results:
        if graded(r) and r.grade != "N":
            bits[r.digits] = min(bits.get(r.digits, r.digits), math.floor(r.bits))
    told = [f"grade {grades[0]}"] if len(grades) == 1 else []
    told += [f"grades {', '.join(grades)}"] if len(grades) > 1 else []
    fewest = [f"{few} of {of}" for of, few in sorted(bits.items())]
    told += [f"at least {', '.join(fewest)} bits"] if fewest else []
    told += [IN_NORM] if "N" in grades else []
    return ", ".join(told) or "as it should"


def _unjudged(results) -> str:
    """Why no check ran, if all have one reason."""
    reasons = dict.fromkeys(r.message for r in results)
    if not reasons:
        return ""
    first = next(iter(reasons))
    return f"every check was skipped: {first}" if len(reasons) == 1 else "every check was skipped"


def reason(result: Result, others: Iterable[Result] = ()) -> str:
    """The likely cause of a failure, or its message up to the first semicolon.

    What wrong entries have in common is no reason if the same check fails without it in another
    type, one of `others`.
    """
    if result.cause and not (result.of_pattern and any(_denies(r, result) for r in others)):
        return result.cause
    lines = result.message.splitlines() or [result.kind or result.verdict]
    told = lines[0].partition("; ")[0]
    told = told if len(told) <= LONG else told[: LONG - 1].rstrip() + "…"
    if result.verdict == "inaccurate" and graded(result):
        return f"{math.floor(result.bits)} bits of {result.digits} in {result.dtype}; {told}"
    return told


def _denies(other: Result, result: Result) -> bool:
    """True if another failure of the same check has another cause, or none."""
    fields = ("operator", "function", "implementation", "check")
    same = all(getattr(other, name) == getattr(result, name) for name in fields)
    return same and other.cause != result.cause


def _judged(results) -> list[tuple[str, str]]:
    """The operators with their files, each once."""
    return [*dict.fromkeys((name_of(r), file_of(r)) for r in results)]


def _counts(results) -> str:
    """How many checks failed, passed, are known and were skipped."""
    judged = [r for r in results if r.verdict != "skipped"]
    failed = sum(r.failed for r in judged)
    known, allowed = sum(bool(r.known) for r in judged), sum(r.tolerated for r in judged)
    checks = f"{len(judged)} check{'s' * (len(judged) != 1)}"
    told = [f"{failed} of {checks} fail{'s' * (failed == 1)}" if failed else checks]
    told += [f"{known} known failure{'s' * (known != 1)}"] * bool(known)
    told += [f"{allowed} thin, allowed"] * bool(allowed)
    told += [f"{len(results) - len(judged)} skipped"] * (len(judged) < len(results))
    return ", ".join(told)


# of the sentences of `judging` about the worst entry
WORST = re.compile(
    r"worst (?P<place>[^:]+): got (?P<got>\S+)(?: \(\w+\))?, "
    r"(?:want|the other call gave) (?P<want>[^\s;]+)"
)


def headline(result: Result, where: str = "") -> str:
    """Grade, operator and worst entry: "F linear_scan: x[0,64,0]=1, want 65".

    `where` stands in place of the operator. An error has its verdict in place of a grade.
    """
    first = result.verdict if result.grade == "-" or result.verdict == "thin" else result.grade
    return f"{first} {where or result.operator}: {_short(result.message)}".rstrip(": ")


def _short(message: str) -> str:
    """The worst entry of a message; if it has none, its first clause."""
    if worst := WORST.search(message):
        place = worst["place"].replace(", ", ",")
        return f"{place}={worst['got']}, want {worst['want']}"
    return message.partition("; ")[0].partition("\n")[0]
