"""Waves fitted by systems whose poles are frozen: which frequencies can the rest still reach?

The target is the impulse response e^{−k/l} cos(ωk + φ) of l samples. S4D's poles and steps stay as
they start, and its C is fitted by least squares, which is the best that training could reach. Of
HOPE the step stays, and its Markov parameters are fitted. Poles of S4D-Lin have frequencies up to
π(n − 1) per unit of time, so dt π(n − 1) per sample. A wave counts as fitted if less than half
of it is left.
"""

from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

import refssm
from refssm.experiments.claims import Claim, Finding
from refssm.experiments.systems import Table, told
from refssm.gallery.drawing import figure, styled, written

CLAIM = Claim(
    "a diagonal system whose poles are not trained cannot learn frequencies above those of its "
    "poles",
    "yu2024hope",
)
LENGTH, MODES, MARKOV, DRAWS = 512, 16, 32, 5
STEPS = (1e-3, 1e-2, 5e-2)
SHOWN = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # of ω, per sample
LEFT = 0.5  # relative error below which a wave counts as fitted


class Fits(NamedTuple):
    """Relative errors (frequencies, draws) by system."""

    omega: np.ndarray
    errors: dict[str, np.ndarray]
    highest: dict[str, float]  # the largest frequency of the poles, per sample


def measured(*, seed, quick=False, track=iter) -> Fits:
    """The error of the best fit for each system, frequency and phase."""
    extra = () if quick else tuple(np.geomspace(0.01, 3.0, 25))
    omega = np.array(sorted({*SHOWN, *extra}))
    phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, DRAWS)
    k, errors, highest = np.arange(LENGTH), {}, {}
    for dt, (name, make) in track([*product(STEPS, (("S4D-Lin", _modes), ("HOPE", _all_pass)))]):
        basis, last = make(dt)
        label = f"{name}, dt = {dt:g}"
        highest[label] = last
        waves = np.cos(omega[:, None, None] * k + phases[:, None]) * np.exp(-k / LENGTH)
        errors[label] = _misfit(basis, waves)
    return Fits(omega, errors, highest)


def _modes(dt: float) -> tuple[np.ndarray, float]:
    """The responses (columns) that S4D-Lin with a real C combines, and its largest frequency."""
    w = np.asarray(refssm.s4d_lin(n=MODES))
    powers = np.exp(dt * w * np.arange(LENGTH)[:, None])
    return np.concatenate([np.real(powers), np.imag(powers)], -1), dt * float(np.imag(w).max())


def _all_pass(dt: float) -> tuple[np.ndarray, float]:
    """The responses that HOPE's Markov parameters combine; they have all frequencies."""
    return refssm.hope_kernel(np.eye(MARKOV), dt, l=LENGTH).T, np.inf


def _misfit(basis: np.ndarray, waves: np.ndarray) -> np.ndarray:
    """‖wave − its projection on the columns‖ / ‖wave‖: the columns by their singular vectors."""
    U, s, _ = np.linalg.svd(basis, full_matrices=False)
    U = U[:, s > LENGTH * np.finfo(float).eps * s[0]]
    left = waves - (waves @ U) @ U.T
    return np.linalg.norm(left, axis=-1) / np.linalg.norm(waves, axis=-1)


def at(result: Fits, name: str, omega: float) -> np.ndarray:
    """The errors of one system at the frequency nearest to this one."""
    return result.errors[name][np.abs(np.log(result.omega / omega)).argmin()]


def tables(result: Fits) -> list[Table]:
    """Mean errors over the phases."""
    rows = [
        (name, told(result.highest[name]), *(told(at(result, name, x).mean(), 1e-6) for x in SHOWN))
        for name in result.errors
    ]
    head = ("system", "highest pole", *(f"ω = {x:g}" for x in SHOWN))
    return [Table(f"Relative error of waves, {LENGTH} samples, mean of {DRAWS} phases", head, rows)]


def findings(result: Fits) -> list[Finding]:
    """Learnt below the highest pole, not learnt above four times it."""
    found = []
    for name, last in result.highest.items():
        if not np.isfinite(last):
            continue
        for x, learnt in ((last / 2, True), (4 * last, False)):
            if not result.omega[0] <= x <= result.omega[-1]:
                continue
            error = float(at(result, name, x).mean())
            verb = "fits" if error < LEFT else "does not fit"
            where = "half of" if learnt else "four times"
            said = f"{name} {verb} a wave of {where} its highest pole's frequency"
            found.append(Finding((error < LEFT) == learnt, f"{said}: error {error:.3f}"))
    return found


def draw(output: Path, result: Fits) -> Path:
    """Errors against frequency; a dotted line is the highest pole."""
    with styled():
        made, axes = figure(1, 1, (6.4, 4.0))
        for i, (name, errors) in enumerate(result.errors.items()):
            style = "-" if np.isfinite(result.highest[name]) else "--"
            colour = f"C{i // 2}"
            axes[0, 0].semilogx(result.omega, errors.mean(-1), style, color=colour, label=name)
            if np.isfinite(result.highest[name]):
                axes[0, 0].axvline(result.highest[name], color=colour, linewidth=0.8, ls=":")
        axes[0, 0].set_xlabel("frequency ω, per sample")
        axes[0, 0].set_ylabel("relative error of the best fit")
        axes[0, 0].legend(frameon=False, fontsize=7.5)
        return written(made, output)
