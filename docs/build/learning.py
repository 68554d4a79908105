"""`PYTHONPATH=tests python -m docs.build.learning`: the pictures of `docs/learn`.

Each shows what goes wrong in float32: the relative error of two or three programs for one formula.
The truth is the same formula in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import refssm
from docs.build.pictures import by_doubling
from refssm.gallery.drawing import figure, styled, written

FOLDER = Path("docs/gallery")
SINGLE = np.float32
LARGEST = 1e2  # what the pictures show; infinity and NaN are there, too


class Errors(NamedTuple):
    """Relative errors of programs, over what the picture has on its horizontal axis."""

    title: str
    along: str
    x: np.ndarray
    programs: dict[str, np.ndarray]
    logarithmic: bool = True


def relative(got, want) -> np.ndarray:
    """|got − want| / |want|; NaN where nothing finite came."""
    with np.errstate(invalid="ignore"):
        return np.abs(got - want) / np.abs(want)


def system() -> Errors:
    """The transfer function of ten poles: by residues, and by two polynomials."""
    w, s = -np.arange(1.0, 11), np.logspace(-2, 2, 200)
    ones = np.ones(10)
    below = np.poly(w).astype(SINGLE)
    above = np.sum([np.poly(np.delete(w, i)) for i in range(10)], axis=0).astype(SINGLE)
    errors = {}
    for sign, side in ((1, "s > 0"), (-1, "s < 0")):
        x = (sign * s).astype(SINGLE)
        want = refssm.transfer(np.diag(w), ones, ones, 0.0, x.astype(np.float64))
        poles = (1 / (x[:, None] - w.astype(SINGLE))).sum(-1)
        quotient = np.polyval(above, x) / np.polyval(below, x)
        errors[f"Σ 1/(s − w), {side}"] = relative(poles, want)
        errors[f"b(s)/a(s), {side}"] = relative(quotient, want)
    return Errors("a transfer function of ten poles", "|s|", s, errors)


def discretization() -> Errors:
    """The input weight of a zero-order hold for small steps."""
    dt = np.logspace(-8, 0, 200).astype(SINGLE)
    w = SINGLE(-0.75)
    want = np.expm1(dt.astype(np.float64) * w) / w
    found = {"(e^z − 1)/w": (np.exp(dt * w) - 1) / w, "expm1(z)/w": np.expm1(dt * w) / w}
    errors = {name: relative(got, want) for name, got in found.items()}
    return Errors("zero-order hold: B̄", "dt", dt, errors)


def recurrence() -> Errors:
    """A decaying output by a transform, by the sum, and step by step."""
    k = 0.9 ** np.arange(256.0)
    u = np.zeros(256)
    u[:8] = np.random.default_rng(0).standard_normal(8)
    want = refssm.causal_convolution_direct(u, k)
    k32, u32 = k.astype(SINGLE), u.astype(SINGLE)
    a = np.full((256, 1), 0.9, SINGLE)
    found = {
        "FFT": refssm.causal_convolution(u32, k32),
        "sum": refssm.causal_convolution_direct(u32, k32),
        "recurrence": refssm.linear_scan(a, u32[:, None])[:, 0],
    }
    errors = {name: relative(got, want) for name, got in found.items()}
    return Errors("one output in three forms", "step", np.arange(256), errors, False)


def s4() -> Errors:
    """The roots of unity: by their angle, and by multiplying one root again and again."""
    l = 16384
    j = np.arange(l)
    want = np.exp(-2j * np.pi * j / l)
    root = np.complex64(np.exp(-2j * np.pi / l))
    found = {
        "e^(−2πij/l)": want.astype(np.complex64),
        "ω^j by products": np.cumprod(np.full(l, root)) / root,
    }
    errors = {name: relative(got, want)[1::16] for name, got in found.items()}
    return Errors("nodes of the kernel, l = 16384", "j", j[1::16], errors, False)


def s5() -> Errors:
    """A scan step by step, by doubling, and by a quotient of cumulative products."""
    l = 400
    b = np.random.default_rng(0).standard_normal((l, 1)) + 2
    a = np.full((l, 1), 0.6)
    want = refssm.linear_scan(a, b)[:, 0]
    a32, b32 = a.astype(SINGLE), b.astype(SINGLE)
    with np.errstate(all="ignore"):
        P = np.cumprod(a32, 0)
        quotient = P * np.cumsum(b32 / P, 0)
    maps = by_doubling(a32, b32)
    steps = refssm.linear_scan(a32, b32)
    found = {"step by step": steps, "maps by doubling": maps, "P cumsum(b/P)": quotient}
    errors = {name: relative(got[:, 0], want) for name, got in found.items()}
    return Errors("a scan with a = 0.6", "step", np.arange(l), errors, False)


def h3() -> Errors:
    """Powers of a decay near 1: from its exponent, and from the rounded decay."""
    z, k = np.float64(SINGLE(-1e-4)), np.arange(0, 16384, 16)
    want = np.exp(z * k)
    decay = np.exp(SINGLE(z))
    found = {
        "e^(zk)": np.exp(SINGLE(z) * k.astype(SINGLE)),
        "(rounded e^z)^k": decay ** k.astype(SINGLE),
    }
    errors = {name: relative(got, want)[1:] for name, got in found.items()}
    return Errors("a kernel that decays slowly, z = −1e-4", "k", k[1:], errors, False)


def mamba() -> Errors:
    """The decay from one step to eight later: as its own sum, and as a difference."""
    l, span = 4096, 8
    log_a = -np.random.default_rng(0).exponential(1, l).astype(SINGLE)
    exact = log_a.astype(np.float64)
    want = np.array([exact[j + 1 : j + 1 + span].sum() for j in range(l - span)])
    T = np.cumsum(log_a)
    own = np.array([log_a[j + 1 : j + 1 + span].sum() for j in range(l - span)])
    found = {"its own sum": own, "T_i − T_j": T[span:] - T[:-span]}
    errors = {name: relative(np.exp(got), np.exp(want))[::16] for name, got in found.items()}
    return Errors("decay over eight steps", "step", np.arange(l - span)[::16], errors, False)


PICTURES: dict[str, Callable[[], Errors]] = {
    made.__name__: made for made in (system, discretization, recurrence, s4, s5, h3, mamba)
}


def draw(output: Path, errors: Errors) -> Path:
    """Draw the errors, and the rounding of one operation."""
    with styled():
        made, axes = figure(1, 1, (6.4, 3.2))
        axis = axes[0, 0]
        for name, found in errors.programs.items():
            axis.plot(
                errors.x,
                np.nan_to_num(found, nan=LARGEST, posinf=LARGEST),
                linewidth=1.0,
                label=name,
            )
        axis.axhline(2.0**-24, color="0.6", linewidth=0.8, linestyle=":", label="u")
        axis.set_yscale("log")
        if errors.logarithmic:
            axis.set_xscale("log")
        axis.set_ylim(1e-10, LARGEST)
        axis.set_xlabel(errors.along)
        axis.set_ylabel("relative error, float32")
        axis.set_title(errors.title)
        axis.legend(frameon=False, fontsize=8)
        return written(made, output)


if __name__ == "__main__":
    for _name, _errors in PICTURES.items():
        draw(FOLDER / f"learn_{_name}.png", _errors())
