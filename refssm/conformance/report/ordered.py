"""The report of a whole run, what matters first.

The verdict; the failures, each in full once and in short where it is the same in another type; one
line for each operator that passed; what was skipped; what no check tested; how the run was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import Console
from rich.text import Text

from refssm.conformance.checks.checks import rule_named
from refssm.conformance.checks.law import Conduct
from refssm.conformance.judging.result import THIN, Result
from refssm.conformance.report import lines
from refssm.conformance.report.verdict import Verdict, accuracy, severity


def show(
    out: Console,
    verdict: Verdict,
    results: Sequence[Result],
    complaints: Sequence[str],
    headers: Iterable[str],
    seconds: float,
) -> None:
    """Print the whole report; `complaints` are other reasons why the run fails."""
    show_verdict(out, verdict, seconds)
    failed = sorted((r for r in results if r.failed), key=severity)
    parts = [
        _failures(failed),
        (lines.complaint(sentence) for sentence in complaints),
        (text for r in results if r.known for text in _full(r)),
        _operators([r for r in results if not r.failed and not r.known]),
        (_faint(line) for line in untested(results)),
        (_faint(line) for header in headers for line in header.splitlines()),
    ]
    for part in parts:
        texts = [*part]
        if texts:
            out.print()
        for text in texts:
            out.print(text)


def show_verdict(out: Console, verdict: Verdict, seconds: float) -> None:
    """Print the verdict's line."""
    text = Text(verdict.word, style=f"bold {verdict.style}")
    text.append(verdict.line.removeprefix(verdict.word), style="bold")
    text.append(f"   ({verdict.counts}, {seconds:.1f} s)")
    out.print(text)


def _failures(failed: Sequence[Result]) -> Iterator[Text]:
    """Each failure in full, or in short if one above it is the same in another type."""
    wide = max((len(r.id) for r in failed), default=0)
    told: list[Result] = []
    for result in failed:
        same = next((r for r in told if _alike(r, result)), None)
        yield from _short(result, same, wide) if same else _full(result, wide)
        told.append(result)


def _alike(one: Result, other: Result) -> bool:
    """True if two failures of one check differ in the type only: the same named cause."""
    fields = ("operator", "function", "implementation", "check", "verdict", "kind", "cause")
    same = all(getattr(one, name) == getattr(other, name) for name in fields)
    return bool(same and one.cause and not other.also)


def _full(result: Result, wide: int = 0) -> Iterator[Text]:
    """All lines of one result."""
    yield lines.first(result, wide)
    yield from (Text(f"  {line}") for line in lines.below(result))


def _short(result: Result, same: Result, wide: int) -> Iterator[Text]:
    """The lines of a failure that differ from those of the same failure in another type."""
    yield lines.first(result, wide)
    yield Text(f"  as in {same.dtype}: {result.cause}")
    if result.smallest != same.smallest:
        yield Text(f"  {lines.case_called(result)}: {lines.smallest(result)}")
    yield from (Text(f"  {line}") for line in lines.again(result))


def _operators(results: Sequence[Result]) -> Iterator[Text]:
    """One line for each operator that passed, with remarks; then what was skipped."""
    passed = [r for r in results if r.verdict == "pass"]
    for same in ([*group] for _, group in groupby(passed, _whose)):
        yield Text("pass ", style="green").append("   ".join(_passed(same)), style="default")
        yield from _remarks(same)
    for result in results:
        if result.verdict == THIN:
            yield from _full(result)
    skipped = sorted((r for r in results if r.verdict == "skipped"), key=_why)
    for (whose, why), group in groupby(skipped, _why):
        of = ", ".join(_checks([*group]))
        yield Text("skip ", style="yellow").append(f"{whose}   {of}: {why}")


def _passed(same: Sequence[Result]) -> Iterator[str]:
    """The parts of an operator's line: its name, the accuracy, the cases and the checks."""
    yield _whose(same[0])
    yield accuracy(same)
    cases = sum(r.examples - r.declined for r in same)
    yield f"{cases} case" + "s" * (cases != 1)
    yield ", ".join(_checks(same))


def _remarks(passed: Sequence[Result]) -> Iterator[Text]:
    """Notes and hints of passing checks, each once."""
    told: dict[str, list[Result]] = {}
    for result in passed:
        for line in lines.remarks(result):
            told.setdefault(line, []).append(result)
    for line, of in told.items():
        yield Text(f"  {', '.join(_checks(of))}: {line}")


def _checks(results: Iterable[Result]) -> list[str]:
    """The checks with their types, if they ran in more than one or in other types than the rest."""
    types: dict[str, list[str]] = {}
    for result in results:
        types.setdefault(result.check, []).append(result.dtype)
    told: dict[str, list[str]] = {}
    for check, of in types.items():
        told.setdefault(" ".join(dict.fromkeys(of)), []).append(check)
    return [f"{' '.join(checks)} [{of}]" for of, checks in told.items()]


def untested(results: Sequence[Result]) -> list[str]:
    """What passing checks did not test: one line for each limit, with the checks that have it."""
    told: dict[str, list[Result]] = {}
    for result in results:
        # a hint says on which inputs of the user's own it was judged
        own = result.hint or isinstance(rule_named(result.check), Conduct)
        if result.verdict == "pass" and not own:
            told.setdefault(lines.limits(result), []).append(result)
    return [f"not tested in {_those(of)}: {limit}" for limit, of in told.items()]


def _those(results: Sequence[Result]) -> str:
    """The checks by operator."""
    by_whose = [(whose, _checks([*of])) for whose, of in groupby(results, _whose)]
    return "; ".join(f"{whose} {', '.join(checks)}" for whose, checks in by_whose)


def _whose(result: Result) -> str:
    return f"{result.operator}::{result.function}" if result.function else result.operator


def _why(result: Result) -> tuple[str, str]:
    return _whose(result), result.message


def _faint(line: str) -> Text:
    return Text(line, style="dim")
