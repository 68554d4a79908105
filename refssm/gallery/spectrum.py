"""The poles of the normal parts of HiPPO's matrices, and of the diagonal models based on them."""

from pathlib import Path

import numpy as np

import refssm
from refssm.gallery.drawing import figure, styled, written

MEASURES = ("legs", "legt", "lagt", "fourier")


def spectra(n: int) -> dict[str, np.ndarray]:
    """Poles by name; for diagonal models, one of each pair."""
    normal = {f"normal part of {m}": getattr(refssm, f"nplr_{m}")(n=n)[0] for m in MEASURES}
    pairs = max(1, n // 2)
    return normal | {"S4D-Lin": refssm.s4d_lin(n=pairs), "S4D-Inv": refssm.s4d_inv(n=pairs)}


def draw(output: Path, n: int) -> Path:
    """Draw the imaginary parts in order; the real parts are constant."""
    with styled():
        made, axes = figure(1, 1, (7.0, 4.5))
        for name, w in spectra(n).items():
            rates, turns = np.real(w), np.imag(w)
            positive = np.sort(turns[turns > 0])
            real = round(float(rates.mean()), 12) + 0.0
            axes[0, 0].plot(
                positive, "." if "part" in name else "-", label=f"{name}: Re w = {real:.3g}"
            )
        axes[0, 0].set_yscale("log")
        axes[0, 0].set_xlabel("in order")
        axes[0, 0].set_ylabel("Im w > 0")
        axes[0, 0].set_title(f"n = {n}")
        axes[0, 0].legend(frameon=False)
        return written(made, output)
