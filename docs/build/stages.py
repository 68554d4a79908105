"""`PYTHONPATH=tests python -m docs.build.stages`: the picture of the page about stages of a chunk.

A gated delta rule, stage by stage in double precision, where one thing is rounded to few bits: the
state before each chunk, or the sums of the gates. The span of a chunk is −G_end.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import refssm
from refssm.gallery.drawing import figure, styled, written

PICTURE = Path("docs/pictures/stages.svg")
CHUNKS, STEPS, KEYS, VALUES, HEADS = 8, 64, 32, 32, 8
SPANS = np.logspace(-2, 3, 21)


class Format(NamedTuple):
    """A binary format: bits of the significand, least exponent, largest number, colour."""

    bits: int
    least: int
    largest: float
    colour: str


FORMATS = {
    "float32": Format(24, -126, 3.4e38, "#333333"),
    "bfloat16": Format(8, -126, 3.4e38, "#2b6a99"),
    "float8 e4m3": Format(4, -6, 448.0, "#5b9a57"),
    "float8 e5m2": Format(3, -14, 57344.0, "#c23b22"),
}


def rounded(x: np.ndarray, to: Format) -> np.ndarray:
    """To the nearest number of the format, ties to even; larger ones become the largest."""
    _, exponent = np.frexp(x)
    spacing = np.exp2(np.maximum(exponent - 1, to.least) - (to.bits - 1.0))
    return np.clip(np.round(x / spacing) * spacing, -to.largest, to.largest)


def scaled(S: np.ndarray, to: Format) -> np.ndarray:
    """The state rounded after it is divided by its largest entry: one scale for each head."""
    most = np.abs(S).max((-2, -1), keepdims=True)
    return rounded(S / most, to) * most


class Given(NamedTuple):
    """The arguments of all heads, chunk by chunk."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    log_g: np.ndarray
    beta: np.ndarray


def arguments(span: float) -> Given:
    """Keys after a SiLU, of norm 1, rates after a logistic function, gates that sum to −span."""
    rng = np.random.default_rng(0)
    shape = HEADS, CHUNKS, STEPS
    k = rng.standard_normal((*shape, KEYS))
    k = k / (1 + np.exp(-k))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    q = rng.standard_normal((*shape, KEYS)) / np.sqrt(KEYS)
    gates = rng.exponential(1, shape)
    log_g = -span * gates / gates.sum(-1, keepdims=True)
    beta = 1 / (1 + np.exp(-rng.standard_normal(shape)))
    return Given(q, k, rng.standard_normal((*shape, VALUES)), log_g, beta)


def outputs(given: Given, of_state: Callable, of_sums: Callable) -> np.ndarray:
    """The outputs; the state before each chunk, and the sums of the gates, are rounded so."""
    q, k, v, log_g, beta = given
    g = of_sums(refssm.chunk_gates(log_g))
    X = refssm.chunk_inverse(refssm.chunk_products(k, g, beta))
    w, u = refssm.chunk_writes(k, v, g, beta, X)
    S, y = np.zeros((HEADS, KEYS, VALUES)), []
    for c in range(CHUNKS):
        now = slice(c, c + 1)
        _, new, last = refssm.chunk_states(k[:, now], w[:, now], u[:, now], g[:, now], S)
        y.append(refssm.chunk_outputs(q[:, c], k[:, c], new[:, 0], g[:, c], S))
        S = of_state(last)
    return np.stack(y, axis=1)


def digits() -> dict[str, dict[str, np.ndarray]]:
    """By what is rounded and format: decimal digits of the outputs that are left, for each span."""

    def exact(x):
        return x

    found: dict[str, dict[str, list]] = {what: {name: [] for name in FORMATS} for what in PANELS}
    for span in SPANS:
        given = arguments(span)
        y = outputs(given, exact, exact)
        for name, to in FORMATS.items():
            as_state = outputs(given, lambda S, to=to: scaled(S, to), exact)
            as_sums = outputs(given, exact, lambda g, to=to: rounded(g, to))
            for what, made in zip(PANELS, (as_state, as_sums), strict=True):
                error = np.linalg.norm(made - y) / np.linalg.norm(y)
                found[what][name].append(-np.log10(error) if error else np.inf)
    return {what: {n: np.array(x) for n, x in rows.items()} for what, rows in found.items()}


PANELS = ("the state before each chunk", "the sums G of the gates")


def draw(output: Path, found: dict[str, dict[str, np.ndarray]]) -> Path:
    """Write the picture: digits that are left, and those of the format as dotted lines."""
    with styled():
        made, axes = figure(1, 2, (7.4, 3.4))
        for axis, (what, rows) in zip(axes[0], found.items(), strict=True):
            for name, left in rows.items():
                to = FORMATS[name]
                axis.axhline(to.bits * np.log10(2), color=to.colour, linewidth=0.8, linestyle=":")
                shown = np.where(np.isfinite(left), left, np.nan)
                axis.plot(SPANS, shown, color=to.colour, linewidth=1.4, label=name)
            axis.set_xscale("log")
            axis.set_ylim(-1, 12)
            axis.set_title(f"rounded: {what}", fontsize=9)
            axis.set_xlabel("gate span of a chunk, −G_end")
        axes[0, 0].set_ylabel("decimal digits of the outputs")
        axes[0, 0].legend(fontsize=7.5, loc="upper left", frameon=False, ncols=2)
        return written(made, output)


def write() -> None:
    """Write the picture."""
    draw(PICTURE, digits())


if __name__ == "__main__":
    write()
