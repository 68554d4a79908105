"""Progress on a terminal, none in a pipe: the current work and how much is done."""

from __future__ import annotations

import sys
import time


class ProgressBar:
    """One line at the bottom of a terminal's standard error; nothing elsewhere.

    Two consoles cannot share a line: call `hide` before printing; the next `tick` shows it again.
    """

    def __init__(self):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        console, told = Console(stderr=True), TextColumn("{task.description}", markup=False)
        columns = (told, BarColumn(), TextColumn("{task.fields[of]}"))
        how: dict = {"transient": True, "redirect_stdout": False, "redirect_stderr": False}
        self._bar = Progress(*columns, console=console, **how)
        # with FORCE_COLOR, rich treats a pipe as a terminal
        self._shown = sys.stderr.isatty() and not console.is_dumb_terminal
        self._task = self._bar.add_task("", total=None, of="")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.hide()

    def tick(self, what: str, done: int = 0, count: int = 0) -> None:
        """Show what is running, and how many of how many are done if known."""
        if not self._shown:
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

    def hide(self) -> None:
        """Hide the line, so that other code can print."""
        if self._shown:
            self._bar.stop()


class StepsBar:
    """Steps of a training run: loss, accuracy, steps a second and the time left."""

    def __init__(self, name: str, steps: int):
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        console, text = Console(stderr=True), TextColumn("{task.fields[told]}", markup=False)
        name_column = TextColumn("{task.description}", markup=False)
        columns = (name_column, BarColumn(20), MofNCompleteColumn(), text, TimeRemainingColumn())
        how: dict = {"transient": True, "redirect_stdout": False, "redirect_stderr": False}
        self._bar = Progress(*columns, console=console, **how)
        self._shown = sys.stderr.isatty() and not console.is_dumb_terminal
        self._task = self._bar.add_task(name, total=steps, told="")
        self._began: tuple[float, int] | None = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.hide()

    def tick(self, step: int, loss: float, accuracy: float) -> None:
        """Show the figures of this step."""
        if not self._shown:
            return
        now = time.monotonic()
        if self._began is None:
            self._began = now, step
        since, first = self._began
        speed = f"{(step - first) / (now - since):.1f} steps/s" if step > first else ""
        told = f"loss {loss:.3f}  accuracy {accuracy:.2f}  {speed}"
        self._bar.update(self._task, completed=step, told=told)
        self._bar.start()

    def hide(self) -> None:
        """Hide the line, so that other code can print."""
        if self._shown:
            self._bar.stop()
