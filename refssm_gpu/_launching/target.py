"""Where launches go: to the card, to the host build, or to whoever records them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from refssm_gpu._launching.kernel import Instance, Kernel

PLACES = {"": "refssm_gpu._launching.card", "host": "refssm_gpu._host.launch"}


class Target(Protocol):
    """What takes launches."""

    array: Any  # the type of its arrays
    multiprocessors: int  # that run blocks at the same time

    def launch(
        self,
        kernel: Kernel,
        instance: Instance,
        grid: tuple[int, ...],
        arguments: tuple[Any, ...],
        shared: int,
    ) -> None:
        """Start one kernel; on a card it need not have ended when this returns."""


_replaced: list[Target] = []


def on_host() -> bool:
    """True if REFSSM_GPU=host: calls take NumPy arrays and run on the processor."""
    place = os.environ.get("REFSSM_GPU", "")
    if place not in PLACES:
        raise ValueError(f"REFSSM_GPU: wanted nothing or 'host', got {place!r}")
    return place == "host"


def host_lack() -> str:
    """Why the host build cannot run here, or an empty text; also where it is not asked for."""
    if not on_host():
        return ""
    build = import_module("refssm_gpu._host.build")
    try:
        build.compiler()
    except build.NoCompiler as lack:
        return str(lack)
    return ""


@cache
def _made(place: str) -> Target:
    return import_module(PLACES[place]).TARGET


def target() -> Target:
    """The target of launches now."""
    return _replaced[-1] if _replaced else _made("host" if on_host() else "")


@contextmanager
def replaced(by: Target) -> Iterator[None]:
    """Send the launches of a block of code to another target."""
    _replaced.append(by)
    try:
        yield
    finally:
        _replaced.pop()
