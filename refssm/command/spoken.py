"""What `refssm verify` prints, and when: all at the end, each check at once, or one line."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer

from refssm.command import interrupts

USUAL, VERBOSE, QUIET, JSON = "usual", "verbose", "quiet", "json"


def of(verbose: bool, quiet: bool, json: bool) -> str:
    """The voice that the options ask for; UsageError if they contradict each other."""
    from refssm.conformance.usage_error import UsageError

    given = {"--verbose": verbose, "--quiet": quiet, "--json": json}
    asked = [option for option, is_given in given.items() if is_given]
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)} contradict each other: give one of them")
    return asked[0].removeprefix("--") if asked else USUAL


class Report:
    """Prints results in one of the voices; `bar` is hidden before each line."""

    def __init__(self, voice: str, bar):
        from refssm.conformance.report import lines

        self.voice, self.bar, self.out = voice, bar, lines.console(sys.stdout)
        self.headers: list[str] = []
        self.failed = 0

    def tick(self, what: str, done: int = 0, count: int = 0) -> None:
        """Show on a terminal what runs, and how many checks have failed so far."""
        so_far = f"{self.failed} failed so far; " if self.failed else ""
        self.bar.tick(f"{so_far}{what}", done, count)

    def say(self, *texts: str) -> None:
        """Print lines after the report."""
        if texts and self.voice in (USUAL, VERBOSE):
            self.bar.hide()
            for text in texts:
                self.out.print(text)

    def head(self, *texts: str) -> None:
        """Say how the run is made: at once, or at the end."""
        self.headers += [text for text in texts if text]
        if self.voice == VERBOSE:
            self.say(*texts)

    def result(self, result, found, function: str = "") -> None:
        """Print a result if each is printed at once; the others wait for the end."""
        from refssm.conformance.report import lines

        self.failed += result.failed
        if self.voice == VERBOSE:
            self.bar.hide()
            lines.show(result, self.out, lines.width(found, function))

    def end(self, verdict, results: Sequence, complaints: Sequence[str], seconds: float) -> None:
        """Print the report, or the end of it."""
        from refssm.conformance.report import lines, ordered

        if self.voice == USUAL:
            ordered.show(self.out, verdict, results, complaints, self.headers, seconds)
            return
        for sentence in complaints if self.voice == VERBOSE else ():
            lines.complain(sentence, self.out)
        ordered.show_verdict(self.out, verdict, seconds)

    @contextmanager
    def ending(self, results: Sequence, **head) -> Iterator[None]:
        """Context of a command without known failures: at its end, and after Ctrl-C, the report on
        `results`, or the JSON with its `head`."""
        started = time.perf_counter()
        try:
            yield
        except KeyboardInterrupt:
            self._finish(results, started, interrupted=True, **head)
            raise
        self._finish(results, started, **head)

    def _finish(self, results: Sequence, started: float, interrupted: bool = False, **head) -> None:
        from refssm.conformance.report import records
        from refssm.conformance.report.verdict import verdict_of

        if self.voice == JSON:
            with interrupts.held():
                typer.echo(records.document([*results], interrupted=interrupted, **head))
        else:
            verdict = verdict_of(results, interrupted=interrupted)
            self.end(verdict, results, (), time.perf_counter() - started)
