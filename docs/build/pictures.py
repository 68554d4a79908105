"""`PYTHONPATH=tests python -m docs.build.pictures`: the picture in `docs/judge.md`.

A linear scan in float32 by three programs: step by step, by doubling, and one that forgets its
state at step 64. K0 comes from the judge itself.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from docs.build.accepted import Errors, draw
from refssm.conformance.judging.expected import expect, unit_roundoff
from refssm.scan import LINEAR_SCAN

PICTURE = Path("docs/pictures/judge.svg")
LENGTH, CHUNK, DECAY = 96, 64, 0.9


def inputs() -> tuple[np.ndarray, np.ndarray]:
    """Decays and inputs of one channel; the states pass through zero."""
    steps = np.arange(LENGTH)[:, None]
    return np.full((LENGTH, 1), DECAY, np.float32), np.cos(0.2 * steps).astype(np.float32)


def by_steps(a, b):
    """x_k = a_k x_{k-1} + b_k, one step after the other."""
    x = b.copy()
    for k in range(1, len(x)):
        x[k] = a[k] * x[k - 1] + b[k]
    return x


def by_doubling(a, b):
    """The same by maps over 1, 2, 4, … steps."""
    a, x, span = a.copy(), b.copy(), 1
    while span < len(x):
        x[span:] = a[span:] * x[:-span] + x[span:]
        a[span:] = a[span:] * a[:-span]
        span *= 2
    return x


def without_carry(a, b):
    """Wrong: each chunk starts from rest."""
    starts = range(0, len(b), CHUNK)
    return np.concatenate([by_steps(a[i : i + CHUNK], b[i : i + CHUNK]) for i in starts])


PROGRAMS = {
    "step by step": by_steps,
    "by doubling": by_doubling,
    "state forgotten at step 64": without_carry,
}


def errors() -> Errors:
    """The value, K0, and the errors of the programs, in units of u."""
    a, b = inputs()
    (x,) = expect(LINEAR_SCAN, [a, b])
    u = unit_roundoff(b.dtype)
    found = {w: np.abs(p(a, b) - x.value).ravel() / u for w, p in PROGRAMS.items()}
    return Errors(x.value.ravel(), x.k0.ravel(), found)


def write() -> None:
    """Write the picture."""
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    draw(PICTURE, errors())


if __name__ == "__main__":
    write()
