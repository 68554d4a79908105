"""The functions by which a memory weights the past: x_i(t) = ∫ (e^{sA} B)_i u(t − s) ds."""

from pathlib import Path

import numpy as np

import refssm
from refssm.gallery.drawing import figure, styled, written

MEASURES = ("legs", "legt", "lmu", "lagt", "fourier", "chebt")
LONGEST = {"legs": 10.0, "lagt": 10.0, "chebt": 1.0}  # in windows; ChebT's grow beyond 1
POINTS = 512
SHOWN = 6


def functions(measure: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """s, and (e^{sA} B)_i for every i: (s, i).

    Computed as powers of e^{hA}, h the spacing of s, applied to B.
    """
    A, B = getattr(refssm, f"hippo_{measure}")(n=n)
    s = np.linspace(0, LONGEST.get(measure, 2.0), POINTS)
    step = refssm.discretize_impulse(A, B[:, None], s[1])[0]
    impulse = np.zeros((POINTS, n))
    impulse[0] = B
    return s, refssm.dense_scan(step, impulse)


def draw(output: Path, measure: str, n: int) -> Path:
    """Draw the first functions."""
    s, functions_of_s = functions(measure, n)
    with styled():
        made, axes = figure(1, 1, (7.0, 3.5))
        for i in range(min(SHOWN, n)):
            axes[0, 0].plot(s, functions_of_s[:, i], linewidth=1.0, label=str(i))
        axes[0, 0].set_title(f"{measure}, n = {n}: the first functions e^(sA) B")
        axes[0, 0].set_xlabel("s, the time ago")
        axes[0, 0].legend(frameon=False, ncols=SHOWN)
        return written(made, output)
