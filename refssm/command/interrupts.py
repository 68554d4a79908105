"""Ctrl-C and SIGTERM: an early one waits until the results so far can be printed.

Importing refssm takes seconds, and a document of `--json` can be printed only after its options
are read. Until then the first signal is remembered; a second one interrupts at once.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)  # SIGTERM too: `timeout 60 refssm verify`, a CI limit


class _Held:
    """The handler of signals that wait."""

    def __init__(self):
        self.came = False

    def __call__(self, number, frame):
        if self.came:
            signal.default_int_handler(number, frame)
        self.came = True


def hold() -> None:
    """Let the first signal wait for `release`; one that the caller ignores stays ignored."""
    handler = _Held()
    for number in SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, handler)


def release() -> None:
    """Let signals raise KeyboardInterrupt from now on, and raise it if one has come."""
    came = False
    for number in SIGNALS:
        held = signal.getsignal(number)
        if isinstance(held, _Held):
            signal.signal(number, signal.default_int_handler)
            came = came or held.came
    if came:
        raise KeyboardInterrupt


@contextmanager
def held() -> Iterator[None]:
    """Let signals wait until the end of the block: what it prints is printed whole."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    later, waits = _Held(), []
    try:
        for number in SIGNALS:
            if before[number] is signal.default_int_handler:
                waits.append(number)
                signal.signal(number, later)
        yield
    finally:
        for number in waits:
            signal.signal(number, before[number])
    if later.came:
        raise KeyboardInterrupt


def end() -> None:
    """The result is printed: Ctrl-C changes nothing any more, and SIGTERM ends at once."""
    for number, last in zip(SIGNALS, (signal.SIG_IGN, signal.SIG_DFL), strict=True):
        ours = signal.getsignal(number)
        if ours is signal.default_int_handler or isinstance(ours, _Held):
            signal.signal(number, last)
