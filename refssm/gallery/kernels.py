"""Initial kernels of models: LegS, its diagonal approximations, and DSS's normalized form."""

from pathlib import Path

import numpy as np

import refssm
from refssm.gallery.drawing import figure, styled, written

LENGTH, SPAN = 1024, 4.0  # samples, and the length in the time unit of A
NAMES = ("LegS", "S4D-Lin", "S4D-Inv", "DSS")


def kernels(n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """t, and one kernel per model for C of ones; n states, or n/2 pairs of them."""
    t, dt = np.arange(LENGTH) * SPAN / LENGTH, SPAN / LENGTH
    A, B = refssm.hippo_legs(n=n)
    A_bar, B_bar = refssm.discretize_zoh(A, B[:, None], dt)
    held = {"LegS": refssm.krylov_kernel(A_bar, B_bar[:, 0], np.ones(n), l=LENGTH) / dt}
    pairs = max(1, n // 2)
    ones = np.ones(pairs)
    for name, make in (("S4D-Lin", refssm.s4d_lin), ("S4D-Inv", refssm.s4d_inv)):
        of_each = refssm.diagonal_kernel_zoh(make(n=pairs), ones, ones, dt, l=LENGTH)
        held[name] = 2 * of_each.real / dt
    w = refssm.s4d_legs(n=pairs)
    held["DSS"] = refssm.dss_softmax_kernel(w, ones, dt, l=LENGTH).real / dt
    return t, held


def draw(output: Path, n: int) -> Path:
    """Draw the kernels one below the other, because their sizes differ."""
    t, held = kernels(n)
    with styled():
        made, axes = figure(len(held), 1, (7.0, 7.0))
        for axis, (name, kernel) in zip(axes[:, 0], held.items(), strict=True):
            axis.plot(t, kernel, linewidth=1.0)
            axis.set_title(f"{name}, n = {n}", loc="left")
        axes[-1, 0].set_xlabel("t, in the unit of A")
        return written(made, output)
