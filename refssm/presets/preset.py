"""A preset: a named system, made by `refssm.initial`, for one member of a batch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

Sizes = Mapping[str, int]
Drawn = dict[str, np.ndarray]
Along = Literal["kernel", "scan", "points"]
ORDERS = (16, 64, 256)  # states of published models


@dataclass(frozen=True, eq=False)
class Preset:
    """Draws some arguments of an operator, for one member of a batch, in double precision.

    `draw(rng, sizes)` receives all core dimensions and returns arrays by argument name. Arguments
    that it leaves out are drawn from their domains. `along` says what the length l is: lags of a
    kernel, up to 16384 of them; steps of a scan, which come one after the other, fewer; or points
    of which each costs a system of n equations, never many.
    """

    name: str
    summary: str
    draw: Callable[[np.random.Generator, Sizes], Drawn]
    sizes: Sizes = field(default_factory=dict)  # core dimensions that it fixes
    along: Along = "kernel"

    def __str__(self):
        return self.name


def of_orders(
    name: str, summary: str, draw, orders=ORDERS, *, along: Along = "kernel", **sizes: int
) -> tuple[Preset, ...]:
    """A preset for each number of states n; its name ends in n."""
    return tuple(
        Preset(f"{name}-{n}", f"{summary}, n = {n}", draw, {"n": n, **sizes}, along) for n in orders
    )


def without(name: str, presets: tuple[Preset, ...]) -> tuple[Preset, ...]:
    """Presets that leave out an argument: a state of each packed sequence is drawn as any state."""
    return tuple(replace(p, draw=_left_out(name, p.draw)) for p in presets)


def _left_out(name: str, draw):
    def drawing(rng, sizes):
        return {key: a for key, a in draw(rng, sizes).items() if key != name}

    return drawing
