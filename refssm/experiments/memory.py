"""How long impulse responses are: LegS, S4D, S5 and HOPE at several step sizes.

A mode decays like e^(Re w t): a diagonal system or LegS loses its memory after a few units of time
(1/dt steps each), for any number of states. HOPE's n all-passes delay slow signals by 1/dt steps
each without loss: its memory is n units long. HOPE's kernel does not depend on the length; the
l-point inverse transform's kernel does.
"""

from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

import refssm
from refssm.experiments import systems
from refssm.experiments.claims import Claim, Finding
from refssm.experiments.systems import Table, told
from refssm.gallery.drawing import figure, styled, written

CLAIM = Claim(
    "the memory of HOPE does not decay within its window, that of other systems does",
    "yu2024hope",
)
NAMES = ("LegS", "S4D-Lin", "S4D-Inv", "S5", "HOPE")
LATE = (1, 2, 4, 8, 16, 32, 64)  # units of time; the responses are half as long again
NOISE = 1e-14  # below this, an aliasing error is only rounding error


class Memories(NamedTuple):
    """Kernels of the first draw by (name, dt); mean shares of energy; aliasing errors."""

    n: int
    steps: tuple[float, ...]
    kernels: dict[tuple[str, float], np.ndarray]
    late: dict[tuple[str, float], np.ndarray]
    lengths: tuple[int, ...]
    aliased: dict[float, list[float]]


def measured(*, seed, quick=False, track=iter) -> Memories:
    """The responses of every system at every step size, and HOPE's aliasing errors."""
    n, draws = (16, 2) if quick else (64, 8)
    steps, lengths = (
        ((1.0, 0.1), (64, 256)) if quick else ((1.0, 0.1, 0.01), (64, 256, 1024, 4096, 16384))
    )
    kernels, late = {}, {}
    for name, dt in track([*product(NAMES, steps)]):
        rng = np.random.default_rng([seed, NAMES.index(name)])
        found = [kernel(name, rng, n, dt) for _ in range(draws)]
        kernels[name, dt] = found[0]
        late[name, dt] = np.mean([shares(k, dt) for k in found], axis=0)
    h = np.random.default_rng([seed, len(NAMES)]).standard_normal(n)
    aliased = {dt: [aliasing(h, dt, l) for l in lengths] for dt in steps}
    return Memories(n, steps, kernels, late, lengths, aliased)


def kernel(name, rng, n, dt) -> np.ndarray:
    """The impulse response over 1.5 times the longest time, with random C or h."""
    l = round(1.5 * LATE[-1] / dt)
    if name == "HOPE":
        return refssm.hope_kernel(rng.standard_normal(n), dt, l=l)
    if name == "LegS":
        A, B = refssm.hippo_legs(n=n)
        A_bar, B_bar = refssm.discretize_zoh(A, B[:, None], dt)
        return refssm.krylov_kernel(A_bar, B_bar[:, 0], rng.standard_normal(n), l=l)
    make = {"S4D-Lin": systems.s4d_lin, "S4D-Inv": systems.s4d_inv, "S5": systems.s5}[name]
    w, v = make(rng, n) if name == "S5" else systems.pairs(*make(rng, n // 2))
    return refssm.diagonal_kernel_zoh(w, np.ones(n), v, dt, l=l).real


def shares(k, dt) -> np.ndarray:
    """The share of energy later than t, in the response to an input that is constant for 1 unit.

    An impulse has all frequencies equally, and HOPE's all-passes hardly delay the fast ones. A
    constant input is what a model has to remember.
    """
    held = np.ones(max(1, round(1 / dt)))
    energy = refssm.causal_convolution(np.pad(held, (0, len(k) - len(held))), k) ** 2
    return np.array([energy[round(t / dt) :].sum() for t in LATE]) / energy.sum()


def aliasing(h, dt, l) -> float:
    """‖aliased − true‖₂ / ‖true‖₂ of HOPE's kernel over l steps."""
    true = refssm.hope_kernel(h, dt, l=l)
    error = refssm.hope_kernel_aliased(h, dt, l=l) - true
    return float(np.linalg.norm(error) / np.linalg.norm(true))


def tables(result: Memories) -> list[Table]:
    """Shares of the energy by time, and aliasing errors by length."""
    rows = [
        (name, f"{dt:g}", *(told(x, NOISE) for x in result.late[name, dt]))
        for name, dt in product(NAMES, result.steps)
    ]
    wrong = [(f"{dt:g}", *(told(x, NOISE) for x in result.aliased[dt])) for dt in result.steps]
    title = f"Energy later than t, n = {result.n}; input held for 1, t in units of 1/dt steps"
    aliased = f"HOPE, n = {result.n}: ‖aliased − true‖ / ‖true‖ of the kernel with l steps"
    return [
        Table(title, ("", "dt", *(f"t = {t}" for t in LATE)), rows),
        Table(aliased, ("dt", *(f"l = {l}" for l in result.lengths)), wrong),
    ]


def findings(result: Memories) -> list[Finding]:
    """What HOPE and the others hold after half of HOPE's window of n units."""
    found, half = [], result.n // 2
    for dt in result.steps:
        late = {name: result.late[name, dt][LATE.index(half)] for name in NAMES}
        hope = late.pop("HOPE")
        most = max(late, key=lambda name: late[name])
        sentence = (
            f"dt = {dt:g}: after t = {half}, half of its window, HOPE has {told(hope)} of its "
            f"energy to come, {most} {told(late[most], NOISE)}, and the others less"
        )
        found.append(Finding(bool(hope > late[most]), sentence))
    return found


def draw(output: Path, result: Memories) -> Path:
    """The impulse responses over t, in units of time, one below the other."""
    with styled():
        made, axes = figure(len(NAMES), 1, (7.0, 8.0))
        for axis, name in zip(axes[:, 0], NAMES, strict=True):
            for dt in result.steps:
                k = result.kernels[name, dt]
                t = np.arange(len(k)) * dt
                axis.plot(t, np.abs(k) / np.abs(k).max(), linewidth=0.7, label=f"dt = {dt:g}")
            axis.set_yscale("log")
            axis.set_ylim(1e-8, 2)
            axis.set_title(f"{name}, n = {result.n}", loc="left")
        axes[0, 0].legend(frameon=False, ncols=len(result.steps), loc="upper right")
        axes[-1, 0].set_xlabel("t, in units of 1/dt steps; |K|, 1 at its largest")
        return written(made, output)
