"""Where an output is wrong: the error ratio along the sequence, and over sequence × channels.

The input is the ratio of each entry (NaN if not judged, infinite if an entry has no distance), with
the names of the axes. The sequence is the axis `l`; powers of two are marked, because blocks of
kernels end there. Without an axis `l`, the last axis is drawn.
"""

import math
from typing import NamedTuple

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, TwoSlopeNorm

from refssm.gallery.drawing import figure, inline, styled

SEQUENCE, FIRST_BLOCK = "l", 16
LEAST = 0.01
ROWS, COLUMNS = 64, 512  # cells of a map; if there are more entries, a cell shows its worst one
POINTS = 1024  # the same for points of a line
MOST = 1e100  # larger ratios are drawn like infinite ones
INK, RULE, LINE, BAD = "#010203", "#040506", "#070809", "#0a0b0c"  # the page sets the colours
VARIABLES = {INK: "--ink", RULE: "--rule", LINE: "--line", BAD: "--bad"}
WITHIN, BEYOND = ("#dfe8f1", "#7896b4"), ("#fdbb84", "#e34a33", "#7f0000")
UNBOUNDED = "#7a0177"  # the colour of infinite ratios


class Seen(NamedTuple):
    """The data of a picture: a table of ratios; rows are channels, columns the sequence."""

    table: np.ndarray
    rows: str  # names of the axes of the rows
    columns: str
    worst: np.ndarray  # of each column
    boundaries: list[int]  # first places of blocks
    allowed: float  # 0 if entries are only right or wrong; then `worst` counts the wrong ones


def seen(ratio: np.ndarray, axes: tuple[str, ...], allowed: float) -> Seen | None:
    """The ratios by channel and place; None if there are fewer than two."""
    if ratio.size < 2:
        return None
    long = [i for i, n in enumerate(ratio.shape) if n > 1]
    along = next((i for i in long if axes[i] == SEQUENCE), long[-1])
    table = np.moveaxis(ratio, along, -1).reshape(-1, ratio.shape[along])
    others = [a for i, a in enumerate(axes) if ratio.shape[i] > 1 and i != along]
    worst = np.fmax.reduce(table) if allowed else np.isinf(table).sum(0).astype(float)
    marks = boundaries(table.shape[1]) if axes[along] == SEQUENCE else []
    return Seen(table, " × ".join(others), axes[along], worst, marks, allowed)


def boundaries(length: int) -> list[int]:
    """The powers of two, from 16 on, where a block begins."""
    return [2**k for k in range(int(math.log2(FIRST_BLOCK)), 64) if 2**k < length]


def told(view: Seen) -> str:
    """The picture in words, for readers who cannot see it."""
    bad, n, name = np.flatnonzero(view.worst > view.allowed), view.worst.size, view.columns
    blank = " Blank: not judged." if np.isnan(view.table).any() else ""
    if not bad.size:
        return f"{name} from 0 to {n - 1}: every entry is within the allowed ratio.{blank}"
    what = "above the allowed ratio" if view.allowed else "wrong"
    count = f"{bad.size} of {n} places along {name} are {what}, the first at {name} = {int(bad[0])}"
    if not view.allowed:
        return f"{count}."
    top = int(np.nanargmax(view.worst))
    ratio = f"ratio {view.worst[top]:.2g}" if np.isfinite(view.worst[top]) else "infinite ratio"
    return f"{count}; the worst, {ratio} (allowed {view.allowed:g}), at {name} = {top}.{blank}"


def picture(view: Seen, name: str) -> str:
    """Both plots as one inline SVG (a map only if there are channels); ids begin with `name`."""
    several = view.table.shape[0] > 1
    heights = [1.7, min(2.2, 0.7 + 0.12 * min(view.table.shape[0], ROWS))][: 1 + several]
    colours = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    with styled(colours | {"axes.edgecolor": RULE, "font.size": 10.0}):
        ratios = {"height_ratios": heights}
        made, axes = figure(len(heights), 1, (5.0, sum(heights) + 0.5), sharex=True, **ratios)
        _along(axes[0, 0], view)
        if several:
            _map(made, axes[1, 0], view)
        axes[-1, 0].set_xlabel(view.columns)
        return inline(made, name, VARIABLES)


def _along(axis, view: Seen) -> None:
    """Plot the worst ratio of each place, with block boundaries."""
    n = view.worst.size
    wide = math.ceil(n / POINTS)
    starts = np.arange(0, n, wide)
    worst, x = np.fmax.reduceat(view.worst, starts), starts + (wide - 1) / 2
    shown, ceiling = _clipped(worst, view.allowed)
    axis.plot(x, shown, color=LINE, linewidth=1.0, gid="ratio")
    beyond = worst > view.allowed
    small = 3.5 if n <= 100 else 1.5
    axis.plot(x[~beyond], shown[~beyond], ".", color=LINE, markersize=small, gid="within")
    axis.plot(x[beyond], shown[beyond], "x", color=BAD, markersize=small + 1, gid="beyond")
    if view.allowed:
        axis.axhline(view.allowed, color=INK, linewidth=0.8, linestyle="--", gid="allowed")
        axis.annotate(
            f"allowed {view.allowed:g}", (0, view.allowed), (2, 2), size=8.5,
            xycoords=("axes fraction", "data"), textcoords="offset points",
        )  # fmt: skip
        axis.set_yscale("log")
        axis.set_ylim(_foot(view.allowed) / 2, ceiling * 4)
        axis.set_ylabel("worst ratio")
    else:
        axis.set_ylim(0, ceiling * 1.1)
        axis.set_ylabel("wrong entries")
        axis.yaxis.get_major_locator().set_params(integer=True, nbins=5)
    _boundaries(axis, view, labels=True)
    axis.set_xlim(-0.5, n - 0.5)
    axis.set_xticks(range(0, n, 2 ** max(0, math.ceil(math.log2(n / 8)))))


def _boundaries(axis, view: Seen, labels: bool) -> None:
    """A line before the first place of each block, with its number above if there is room."""
    for place in view.boundaries:
        style = {"color": INK, "linewidth": 0.6, "linestyle": ":"}
        axis.axvline(place - 0.5, gid=f"boundary-{place}" if labels else None, **style)
        if labels and place >= view.worst.size / 20:
            axis.annotate(
                f"{place}", (place - 0.5, 1), (0, 2), ha="center", size=8.5,
                xycoords=("data", "axes fraction"), textcoords="offset points",
                gid=f"label-{place}",
            )  # fmt: skip


def _foot(allowed: float) -> float:
    """The smallest ratio on the axis, far below the allowed one; smaller ones are drawn there."""
    return min(LEAST, allowed / 100)


def _clipped(worst: np.ndarray, allowed: float) -> tuple[np.ndarray, float]:
    """Ratios clipped to the axis: small ones at the bottom, infinite ones above all others."""
    top = min(max([allowed, *worst[np.isfinite(worst)]]), MOST)
    if not allowed:
        return worst, max(top, 1.0)
    ceiling = top * 10 if (worst > top).any() else top
    return np.where(np.isnan(worst), np.nan, np.clip(worst, _foot(allowed), ceiling)), ceiling


def _map(made, axis, view: Seen) -> None:
    """Plot log10 of the ratio by channel and place; the colour changes at the allowed ratio."""
    n, m = view.table.shape
    high, wide = math.ceil(n / ROWS), math.ceil(m / COLUMNS)
    table = np.fmax.reduceat(view.table, np.arange(0, m, wide), axis=1)
    table = np.fmax.reduceat(table, np.arange(0, n, high), axis=0)
    far = table.shape[1] * wide - 0.5, table.shape[0] * high - 0.5  # end of the last whole cell
    where = {"extent": (-0.5, far[0], far[1], -0.5), "aspect": "auto", "interpolation": "none"}
    axis.set_ylabel(view.rows if len(view.rows) < 20 else "channels")
    axis.yaxis.get_major_locator().set_params(integer=True, nbins=5)
    _boundaries(axis, view, labels=False)
    if not view.allowed:
        colours = ListedColormap([WITHIN[0], BEYOND[-1]])
        axis.imshow(np.isinf(table), cmap=colours, vmin=0, vmax=1, **where)
        axis.set_ylim(n - 0.5, -0.5)
        return
    foot, level = math.log10(_foot(view.allowed)), math.log10(view.allowed)
    logs = np.log10(np.maximum(table, 10**foot))
    top = float(max([level + 1, *logs[np.isfinite(logs)]]))
    norm = TwoSlopeNorm(level, foot, top)
    steps = [*zip((0.0, 0.4999), WITHIN, strict=True), *zip((0.5, 0.7, 1.0), BEYOND, strict=True)]
    colours = LinearSegmentedColormap.from_list("damage", steps).with_extremes(over=UNBOUNDED)
    logs = np.where(np.isinf(logs), top + 1, logs)
    shown = axis.imshow(logs, cmap=colours, norm=norm, **where)
    axis.set_ylim(n - 0.5, -0.5)
    bar = made.colorbar(
        shown, ax=axis, location="bottom", aspect=45, pad=0.02,
        extend="max" if (logs > top).any() else "neither",
    )  # fmt: skip
    step = math.ceil((top - level) / 4)
    above = [t for t in range(math.floor(top), 0, -step) if t > level + step / 2]
    bar.set_ticks([foot, level, *above])
    bar.set_ticklabels([f"≤ {10**foot:g}", f"{view.allowed:g}", *(f"1e{t}" for t in above)])
    bar.set_label("ratio; orange to red: more than is allowed")
