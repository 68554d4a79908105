"""Progress on a terminal, none in a pipe: which check is running and how far it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Bar:
    """One line at the foot of a terminal's standard error; nothing elsewhere.

    Two consoles cannot share a line: `aside` takes the bar away while something is printed.
    """

    def __init__(self):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
        )
        self._bar = Progress(
            *columns,
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        # FORCE_COLOR makes rich take a pipe for a terminal
        self._shown = sys.stderr.isatty() and not console.is_dumb_terminal
        self._task = self._bar.add_task("", total=None)

    def __enter__(self):
        if self._shown:
            self._bar.start()
        return self

    def __exit__(self, *exception):
        if self._shown:
            self._bar.stop()

    def tick(self, what: str, done: int = 0, count: int = 0) -> None:
        """Say what is running, and how many of how many are done where that is known."""
        if (count or None) != self._bar.tasks[0].total:  # which no update makes unknown again
            self._bar.remove_task(self._task)
            self._task = self._bar.add_task(what, total=count or None)
        self._bar.update(self._task, description=what, completed=done)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Leave the terminal to somebody else."""
        self.__exit__()
        yield
        self.__enter__()
