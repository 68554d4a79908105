"""What `refssm verify` prints, and when: all at the end, each check at once, or one line.

On a terminal also progress: the current work and how much is done; in a pipe none.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer

from refssm.command import terminal

MINUTE = 60.0
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
        self.failed, self.began = 0, time.monotonic()
        self.said = self.began  # when the last line of `alive` was printed

    def tick(self, what: str, done: int = 0, count: int = 0) -> None:
        """Show on a terminal what runs, and how many checks have failed so far."""
        so_far = f"{self.failed} failed so far; " if self.failed else ""
        self.bar.tick(f"{so_far}{what}", done, count)
        self._alive(f"{so_far}{what}", f" {done}/{count}" if count else "")

    def _alive(self, what: str, of: str) -> None:
        """In a pipe, once a minute, that the run goes on, to standard error: a log of CI that stays
        silent for minutes looks like one that hangs."""
        now = time.monotonic()
        if self.voice == QUIET or self.bar.shown or now < self.said + MINUTE:
            return
        self.said = now
        typer.echo(f"refssm: {now - self.began:.0f} s: {what}{of}", err=True)

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
            with terminal.held():
                typer.echo(records.document([*results], interrupted=interrupted, **head))
        else:
            verdict = verdict_of(results, interrupted=interrupted)
            self.end(verdict, results, (), time.perf_counter() - started)


class _Bar:
    """A line of rich, which is shown on a terminal only."""

    def __init__(self, *columns, **task):
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True)
        how: dict = {"transient": True, "redirect_stdout": False, "redirect_stderr": False}
        self._bar = Progress(*columns, console=console, **how)
        # with FORCE_COLOR, rich treats a pipe as a terminal
        self.shown = sys.stderr.isatty() and not console.is_dumb_terminal
        self._task = self._bar.add_task(**task)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.hide()

    def hide(self) -> None:
        """Hide the line, so that other code can print."""
        if self.shown:
            self._bar.stop()


class ProgressBar(_Bar):
    """One line at the bottom of a terminal's standard error; nothing elsewhere.

    Two consoles cannot share a line: call `hide` before printing; the next `tick` shows it again.
    """

    def __init__(self):
        from rich.progress import BarColumn, TextColumn

        told, of = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[of]}")
        super().__init__(told, BarColumn(), of, description="", total=None, of="")

    def tick(self, what: str, done: int = 0, count: int = 0) -> None:
        """Show what is running, and how many of how many are done if known."""
        if not self.shown:
            return
        new = what != self._bar.tasks[0].description
        total, of = count or None, f"{done}/{count}" if count else ""
        if total != self._bar.tasks[0].total:  # an update cannot make it unknown again
            self._bar.remove_task(self._task)
            self._task = self._bar.add_task(what, total=total, of=of)
        self._bar.update(self._task, description=what, completed=done, of=of)
        self._bar.start()
        if new:  # show also what ends within 0.1 s
            self._bar.refresh()


class StepsBar(_Bar):
    """Steps of a training run: loss, accuracy or error, steps a second and the time left."""

    def __init__(self, name: str, steps: int):
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

        named = TextColumn("{task.description}", markup=False)
        text = TextColumn("{task.fields[told]}", markup=False)
        columns = (named, BarColumn(20), MofNCompleteColumn(), text, TimeRemainingColumn())
        super().__init__(*columns, description=name, total=steps, told="")
        self._began: tuple[float, int] | None = None

    def tick(self, step: int, loss: float, name: str, figure: float) -> None:
        """Show the figures of this step."""
        if not self.shown:
            return
        now = time.monotonic()
        if self._began is None:
            self._began = now, step
        since, first = self._began
        speed = f"{(step - first) / (now - since):.1f} steps/s" if step > first else ""
        told = f"loss {loss:.3f}  {name} {figure:.2f}  {speed}"
        self._bar.update(self._task, completed=step, told=told)
        self._bar.start()
