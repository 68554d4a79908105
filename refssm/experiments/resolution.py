"""What n coefficients keep of a signal of length T: LegS, LegT, LagT and Fourier memories.

The signals are sums of waves with random phases and frequencies from 0 to 1 cycle per unit of time,
32 samples in a unit. A memory reads one to its end, and the whole of it is reconstructed from the
last state. Such a signal has about 2T numbers in it, so a memory needs about n = 2T at least. LegS
stretches itself over the signal. LegT and Fourier are given the window T. LagT has no window: of
six rates between 1/T and 32/T each n and T has the one with the least mean error, which is more
than a user can know. An error is the root mean square over the signal's own; samples that are held
for a step leave an error of about 1e-3 in any memory. Fourier's waves have a period, which the
signals do not have, so its error falls slowly from 0.2 on.

The last table has the other side. At a fixed n, LegS pays for a longer signal with the resolution
of all of it, the last four units among it. A window of four keeps these as well as before, and
nothing of what was earlier.
"""

from functools import partial
from itertools import pairwise, product
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np

import refssm
from refssm.experiments.claims import Claim, Finding
from refssm.experiments.systems import Table
from refssm.experiments.trained.trials import ahead, spread
from refssm.gallery.drawing import figure, styled, written

CLAIM = Claim(
    "what a HiPPO memory of n coefficients keeps of a signal of length T has an error that grows "
    "with T/n: more memory needs more states",
    "gu2020hippo",
)
NAMES = ("LegS", "LegT", "LagT", "Fourier")
RATE = 32  # samples in a unit of time
RATES = (1, 2, 4, 8, 16, 32)  # of LagT, in 1/T
ENOUGH = 0.1  # an error that counts as remembered
RECENT = 4  # units of time at the end of a signal
FEW = 32  # coefficients that read signals of any length


class KeptSignals(NamedTuple):
    """Errors (sizes, signals) by name and T; those of the last units, by name and T."""

    lengths: tuple[int, ...]
    sizes: tuple[int, ...]
    errors: dict[tuple[str, int], np.ndarray]
    recent: dict[tuple[str, int], np.ndarray]


def measured(*, seed, quick=False, track=iter) -> KeptSignals:
    """Every memory, size and length."""
    lengths = (8, 16) if quick else (2, 4, 8, 16)
    sizes = (16, 32, 64) if quick else (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
    errors, recent = {}, {}
    for T, name in track([*product(lengths, NAMES)]):
        seeds = ([seed, T, k] for k in range(3 if quick else 5))
        signals = np.stack([waves(np.random.default_rng(s), T) for s in seeds])
        errors[name, T] = of_whole(name, signals, T, sizes)
        if name in ("LegS", "LegT") and T > RECENT:
            recent[name, T] = of_recent(name, signals, T)
    return KeptSignals(lengths, sizes, errors, recent)


def waves(rng, T) -> np.ndarray:
    """8T waves with random phases, one frequency in each equal part of [0, 1], over T units."""
    count, t = 8 * T, (np.arange(T * RATE) + 0.5) / RATE
    frequencies = (np.arange(count) + rng.random(count)) / count
    phases = 2 * np.pi * rng.random((count, 1))
    return np.sin(2 * np.pi * frequencies[:, None] * t + phases).sum(0) * np.sqrt(2 / count)


def of_whole(name, signals, T, sizes) -> np.ndarray:
    """Errors (sizes, signals) over the whole signal."""
    delays = (np.arange(T * RATE)[::-1] + 0.5) / RATE
    if name == "LegS":
        c = refssm.hippo_project_legs(signals, n=sizes[-1])[:, -1]  # fewer: the first of these
        read = (refssm.hippo_reconstruct_legs(c[:, :n], delays / T) for n in sizes)
        return np.stack([_errors(y, signals) for y in read])
    if name == "LagT":
        found = np.stack([_lagt(signals, delays, sizes, rate / T) for rate in RATES])
        best = found.mean(-1).argmin(0)
        return found[best, np.arange(len(sizes))]
    return np.stack([_errors(windowed(name, signals, delays, n, T), signals) for n in sizes])


def windowed(name, signals, delays, n, window) -> np.ndarray:
    """What a memory with a window has, at these delays, when it has read the signals."""
    make, reconstruct = {
        "LegT": (refssm.hippo_legt, refssm.hippo_reconstruct_legt),
        "Fourier": (refssm.hippo_fourier, refssm.hippo_reconstruct_fourier),
    }[name]
    A, B = make(n=n, window=float(window))
    c = refssm.hippo_project(A, B, signals, 1 / RATE)[:, -1]
    return reconstruct(c, delays, window=float(window))


def _lagt(signals, delays, sizes, rate):
    """Errors of LagT with a time scale of 1/rate; fewer coefficients are the first of many."""
    A, B = refssm.hippo_lagt(n=sizes[-1])
    c = refssm.hippo_project(A, B, signals, rate / RATE)[:, -1]
    read = partial(refssm.hippo_reconstruct_lagt, s=delays * rate)
    return np.stack([_errors(read(c[:, :n]), signals) for n in sizes])


def of_recent(name, signals, T) -> np.ndarray:
    """Errors over the last units, of `FEW` coefficients: LegS, or LegT with that window."""
    count = min(T, RECENT) * RATE
    delays, end = (np.arange(count)[::-1] + 0.5) / RATE, signals[:, -count:]
    if name == "LegT":
        return _errors(windowed(name, signals, delays, FEW, RECENT), end)
    c = refssm.hippo_project_legs(signals, n=FEW)[:, -1]
    return _errors(refssm.hippo_reconstruct_legs(c, delays / T), end)


def _errors(y, signals):
    """Root mean squares of the errors, over those of the signals."""
    return np.sqrt(((y - signals) ** 2).mean(-1) / (signals**2).mean(-1))


def needed(result: KeptSignals, name: str, T: int) -> int | None:
    """The least of the sizes from which on the mean error is at most `ENOUGH`; None: not here."""
    good = result.errors[name, T].mean(-1) <= ENOUGH
    last_bad = max((i for i, enough in enumerate(good) if not enough), default=-1)
    return result.sizes[last_bad + 1] if last_bad + 1 < len(result.sizes) else None


def tables(result: KeptSignals) -> list[Table]:
    """Errors by n for the middle length; sizes that are needed; errors of the last units."""
    T, found = result.lengths[len(result.lengths) // 2], []
    rows = [(name, *(f"{e:.2g}" for e in result.errors[name, T].mean(-1))) for name in NAMES]
    count = result.errors[NAMES[0], T].shape[-1]
    title = f"Error of the remembered signal, T = {T}, mean of {count} signals"
    found.append(Table(title, ("n =", *map(str, result.sizes)), rows))
    rows = [(name, *(_told(needed(result, name, T), result) for T in result.lengths))
            for name in NAMES]  # fmt: skip
    rows.append(("numbers in a signal, 2T", *(str(2 * T) for T in result.lengths)))
    title = f"Coefficients for an error of at most {ENOUGH:g}"
    found.append(Table(title, ("T =", *map(str, result.lengths)), rows))
    labels = {"LegS": "LegS", "LegT": f"LegT, window {RECENT}"}
    rows = [
        (label, *(spread(result.recent[name, T].tolist(), 4) for T in _longer(result)))
        for name, label in labels.items()
    ]
    title = f"n = {FEW}: error of the last {RECENT} units, mean ± deviation (range)"
    return [*found, Table(title, ("T =", *map(str, _longer(result))), rows)]


def _longer(result: KeptSignals) -> list[int]:
    """The lengths beyond the last units."""
    return [T for T in result.lengths if T > RECENT]


def _told(n: int | None, result: KeptSignals) -> str:
    return f"> {result.sizes[-1]}" if n is None else str(n)


def findings(result: KeptSignals) -> list[Finding]:
    """Whether longer signals need more states; T/n for LegS; and what a window keeps."""
    found, lengths = [], result.lengths
    for name in NAMES:
        sizes = [needed(result, name, T) for T in lengths]
        grows = all(a is not None and (b is None or a < b) for a, b in pairwise(sizes))
        counts = ", ".join(_told(n, result) for n in sizes)
        of = ", ".join(map(str, lengths))
        found.append(Finding(grows, f"{name} needs n = {counts} for T = {of}"))
    twice, four = ([_at(result, k * T, T) for T in lengths] for k in (2, 4))
    sentence = (
        f"LegS: n = 2T leaves errors of at least {min(twice):.2g} for every T, n = 4T of at most "
        f"{max(four):.2g}"
    )
    found.append(Finding(min(twice) > ENOUGH >= max(four), sentence))
    first, *_, last = _longer(result)
    for name, worse in (("LegS", True), (f"LegT with a window of {RECENT}", False)):
        short, long = (result.recent[name[:4], T].tolist() for T in (first, last))
        sentence = (
            f"n = {FEW}, {name}: the error of the last {RECENT} units is {mean(short):.2g} after "
            f"T = {first} and {mean(long):.2g} after T = {last}"
        )
        found.append(Finding(ahead(long, short) == worse, sentence))
    return found


def _at(result: KeptSignals, n: int, T: int) -> float:
    """LegS's mean error with n coefficients."""
    return float(result.errors["LegS", T][result.sizes.index(n)].mean())


def draw(output: Path, result: KeptSignals) -> Path:
    """Errors against n, a panel for each memory, a curve for each length."""
    with styled():
        made, axes = figure(2, 2, (8.0, 6.0))
        for axis, name in zip(axes.flat, NAMES, strict=True):
            for i, T in enumerate(result.lengths):
                errors = result.errors[name, T]
                axis.loglog(result.sizes, errors.mean(-1), f"C{i}-", label=f"T = {T}")
                axis.loglog(result.sizes, errors, f"C{i}.", markersize=2)
            axis.set_xscale("log", base=2)
            axis.set_ylim(3e-4, 3)
            axis.set_title(name)
        for axis in axes[1]:
            axis.set_xlabel("n coefficients")
        axes[0, 0].set_ylabel("error of the remembered signal")
        axes[0, 0].legend(frameon=False)
        return written(made, output)
