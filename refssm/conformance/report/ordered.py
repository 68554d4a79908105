"""The report of a whole run, what matters first.

The verdict; the failures, each in full once and in short where it is the same in another type; one
line for each operator that passed; what was skipped; what no check tested; how the run was made.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from refssm.conformance.checks.checks import rule_named
from refssm.conformance.checks.law import Conduct
from refssm.conformance.judging.result import THIN, Result
from refssm.conformance.report import lines
from refssm.conformance.report.verdict import (
    RunVerdict,
    accuracy,
    file_of,
    name_of,
    severity,
    unjudged,
)


def show(
    out: Console,
    verdict: RunVerdict,
    results: Sequence[Result],
    complaints: Sequence[str],
    headers: Iterable[str],
    seconds: float,
) -> None:
    """Print the whole report; `complaints` are other reasons why the run fails."""
    show_verdict(out, verdict, seconds)
    failed = sorted((r for r in results if r.failed), key=severity)
    several = len({file_of(r) for r in results}) > 1
    parts = [
        _failures(failed, several),
        (lines.complaint(sentence) for sentence in complaints),
        (text for r in results if r.known for text in _full(r, title=_title(r, several))),
        _operators([r for r in results if not r.failed and not r.known], several),
        (_faint(line) for line in untested(results)),
        (_faint(line) for header in headers for line in header.splitlines()),
    ]
    for part in parts:
        texts = [*part]
        if texts:
            out.print()
        for text in texts:
            out.print(text)


def show_verdict(out: Console, verdict: RunVerdict, seconds: float) -> None:
    """Print the verdict's line."""
    text = Text(verdict.word, style=f"bold {verdict.style}")
    text.append(verdict.line.removeprefix(verdict.word), style="bold")
    text.append(f"   ({verdict.counts}, {seconds:.1f} s)")
    out.print(text)


def _title(result: Result, several: bool) -> str:
    """Operator, check and type; with the file if `several` were judged."""
    return f"{result.id} of {file_of(result)}" if several else result.id


def _whose(result: Result, several: bool) -> str:
    """The operator; with the file if `several` were judged."""
    return f"{name_of(result)} of {file_of(result)}" if several else name_of(result)


def _failures(failed: Sequence[Result], several: bool) -> Iterator[Text]:
    """Each failure in full, or in short if one above it is the same in another type."""
    wide = max((len(_title(r, several)) for r in failed), default=0)
    told: list[Result] = []
    for result in failed:
        same, title = next((r for r in told if _alike(r, result)), None), _title(result, several)
        yield from _short(result, same, wide, title) if same else _full(result, wide, title)
        told.append(result)


def _alike(one: Result, other: Result) -> bool:
    """True if two failures of one check differ in the type only: the same named cause."""
    fields = ("operator", "function", "implementation", "check", "verdict", "kind", "cause")
    same = all(getattr(one, name) == getattr(other, name) for name in fields)
    return bool(same and one.cause and not other.also)


def _full(result: Result, wide: int = 0, title: str = "") -> Iterator[Text]:
    """All lines of one result."""
    yield lines.first(result, wide, title)
    yield from (Text(f"  {line}") for line in lines.below(result))


def _short(result: Result, same: Result, wide: int, title: str) -> Iterator[Text]:
    """The lines of a failure that differ from those of the same failure in another type."""
    yield lines.first(result, wide, title)
    yield Text(f"  as in {same.dtype}: {result.cause}")
    yield from (Text(f"  note: {note}") for note in result.notes if note not in same.notes)
    if result.smallest != same.smallest:
        yield Text(f"  {lines.case_called(result)}: {lines.smallest(result)}")
    yield from (Text(f"  {line}") for line in lines.again(result))


def _operators(results: Sequence[Result], several: bool) -> Iterator[Text]:
    """One line for each operator that passed, with remarks; then what was skipped."""
    passed = [r for r in results if r.verdict == "pass"]
    for whose, same in _grouped(passed, lambda r: _whose(r, several)):
        told = "   ".join([whose, *_passed(same)])
        yield Text("pass ", style="green").append(told, style="default")
        yield from _remarks(same)
    for result in results:
        if result.verdict == THIN:
            yield from _full(result, title=_title(result, several))
    skipped = [r for r in results if r.verdict == "skipped"]
    for (whose, why), same in _grouped(skipped, lambda r: (_whose(r, several), r.message)):
        told = f"{whose}   {', '.join(_checks(same))}: {why}"
        yield Text("skip ", style="yellow").append(told, style="default")


def _grouped(results: Iterable[Result], key: Callable) -> Iterator[tuple[Any, list[Result]]]:
    """Results with the same key together, in the order of the first of each."""
    groups: dict[Any, list[Result]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    yield from groups.items()


def _passed(same: Sequence[Result]) -> Iterator[str]:
    """What an operator's line says: the accuracy, the cases and the checks."""
    yield accuracy(same)
    yield lines.cases(same)
    yield ", ".join(_checks(same))


def _remarks(passed: Sequence[Result]) -> Iterator[Text]:
    """Notes and hints of passing checks, each once."""
    every = dict.fromkeys(line for result in passed for line in lines.remarks(result))
    for line in every:
        of = [result for result in passed if line in lines.remarks(result)]
        yield Text(f"  {', '.join(_checks(of))}: {line}")


def _checks(results: Iterable[Result]) -> list[str]:
    """The checks, those that ran in the same types together: "value gradient [float32 float64]"."""
    told: dict[str, list[str]] = {}
    for check, of in _grouped(results, lambda result: result.check):
        types = " ".join(dict.fromkeys(result.dtype for result in of))
        told.setdefault(types, []).append(check)
    return [f"{' '.join(checks)} [{types}]" for types, checks in told.items()]


def untested(results: Sequence[Result]) -> list[str]:
    """What passing checks did not test: one line for each limit, with the checks that have it."""
    # a hint says on which inputs of the user's own it was judged
    limited = (r for r in results if r.verdict == "pass" and not r.hint and not _of_conduct(r))
    by_limit = _grouped(limited, lines.limits)
    return [
        *(_left(name, arguments) for name, arguments in unjudged(results).items()),
        *(f"not tested in {_those(of)}: {limit}" for limit, of in by_limit),
    ]


def _left(name: str, arguments: Sequence[str]) -> str:
    """The sentence on arguments that the operator does not have."""
    one = len(arguments) == 1
    keeps = "it keeps its default" if one else "they keep their defaults"
    told = f"{name} has no such argument, and {keeps}"
    return f"not judged: {', '.join(arguments)} of your function: {told}"


def _of_conduct(result: Result) -> bool:
    """True of a check of one ordinary call."""
    return isinstance(rule_named(result.check), Conduct)


def _those(results: Iterable[Result]) -> str:
    """The checks by operator."""
    by_name = _grouped(results, name_of)
    return "; ".join(f"{name} {', '.join(_checks(of))}" for name, of in by_name)


def _faint(line: str) -> Text:
    return Text(line, style="dim")
