"""The states of a memory over a signal, and the signal reconstructed from them."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

import refssm
from refssm.gallery.drawing import figure, styled, written

MEASURES = ("legs", "legt", "lmu", "lagt", "fourier")
ELAPSED, STEPS = 3.0, 1536  # in windows, and samples
OLDEST = {"lagt": ELAPSED}  # in windows; this memory decays but has no end


class Memory(NamedTuple):
    """A signal, the states over time, and the signal reconstructed from the last state."""

    t: np.ndarray
    u: np.ndarray
    x: np.ndarray  # (t, n)
    past: np.ndarray  # the times of the reconstruction
    y: np.ndarray


def signal(t):
    """A slow wave, a fast wave and a step."""
    return np.sin(1.4 * np.pi * t) + 0.3 * np.sin(7 * np.pi * t + 1) + 0.5 * (t > 2.2)


def remembered(measure: str, n: int) -> Memory:
    """The memory of the signal, over three windows."""
    t = (np.arange(STEPS) + 0.5) * ELAPSED / STEPS
    u, s = signal(t), np.linspace(0, 1, 600) * OLDEST.get(measure, 1.0)
    if measure == "legs":
        x = refssm.hippo_project_legs(u, n=n)
        return Memory(t, u, x, ELAPSED * (1 - s), refssm.hippo_reconstruct_legs(x[-1], s))
    A, B = getattr(refssm, f"hippo_{measure}")(n=n)
    # the time unit is a tenth of a window, because LagT's memory decays within one unit
    unit = 10.0 if measure == "lagt" else 1.0
    x = refssm.hippo_project(A, B, u, unit * ELAPSED / STEPS)
    y = getattr(refssm, f"hippo_reconstruct_{measure}")(x[-1], unit * s)
    return Memory(t, u, x, ELAPSED - s, y)


def draw(output: Path, measure: str, n: int) -> Path:
    """Draw the states over time, and below the signal and its reconstruction."""
    memory = remembered(measure, n)
    with styled():
        made, axes = figure(2, 1, (7.0, 5.0))
        above, below = axes[:, 0]
        above.plot(memory.t, memory.x[:, : min(n, 12)], linewidth=0.8)
        above.set_ylabel(f"the first {min(n, 12)} of {n} states")
        above.set_title(f"{measure}: what is held, and what comes back at t = {ELAPSED:g}")
        below.plot(memory.t, memory.u, color="0.7", linewidth=2.5, label="signal")
        below.plot(memory.past, memory.y, color="C3", linewidth=1.0, label="from the states")
        below.set_ylim(*_room(memory.u))
        below.set_xlabel("t, in windows")
        below.legend(frameon=False, loc="lower left")
        return written(made, output)


def _room(u):
    """The range of the signal, with a margin of a quarter on both sides."""
    margin = (u.max() - u.min()) / 4
    return u.min() - margin, u.max() + margin
