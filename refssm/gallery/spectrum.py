"""The poles of the normal parts of HiPPO's matrices, and of the diagonal starts made after them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import refssm
from refssm.gallery.drawing import figure, styled, written

MEASURES = ("legs", "legt", "lagt", "fourier")


def poles(measure: str, n: int) -> np.ndarray:
    """Eigenvalues of A + P Pᵀ, normal: of its skew part, the rest being a multiple of I."""
    A, _ = getattr(refssm, f"hippo_{measure}")(n=n)
    P = _low_rank(measure, n)
    normal = A + P @ P.T
    skew = (normal - normal.T) / 2
    return np.diag(normal).mean() + 1j * np.linalg.eigvalsh(-1j * skew)


def _low_rank(measure, n):
    i = np.arange(n)
    if measure == "legs":
        return np.sqrt(i + 0.5)[:, None]
    if measure == "lagt":
        return np.full((n, 1), np.sqrt(0.5))
    if measure == "legt":
        return np.sqrt(2 * i + 1.0)[:, None] * (i[:, None] % 2 == [0, 1])
    b = np.where(i % 2, 0, np.where(i > 0, np.sqrt(2), 1))
    return np.sqrt(2) * b[:, None]


def spectra(n: int) -> dict[str, np.ndarray]:
    """By name; of the diagonal starts one of each pair."""
    normal = {f"normal part of {m}": poles(m, n) for m in MEASURES}
    pairs = max(1, n // 2)
    return normal | {"S4D-Lin": refssm.s4d_lin(n=pairs), "S4D-Inv": refssm.s4d_inv(n=pairs)}


def draw(output: Path, n: int) -> Path:
    """Imaginary parts in order: the real parts are constants."""
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
