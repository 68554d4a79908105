"""Are the two dots joined by a dashed line? [linsley2018pathfinder; tay2021lra]

A picture has two dashed lines, some shorter ones that distract, and two dots. The dots are at both
ends of one line, or at one end of each. Dashes are two pixels, with one dark pixel between. A line
is one of 500 smooth random walks, turned or mirrored, at a random place. Different lines are at
least three pixels apart in rows or in columns, so who joins all pixels that are at most two apart
has the answer. The picture is read row by row. The published pictures are larger and their lines
may cross; ours are made anew for each batch.
"""

from functools import cache, partial

import numpy as np

from refssm.training.tasks.task import Examples, Task, generated, sized

APART = 3  # pixels between lines, in rows or in columns
TURN = 0.5  # most that a walk turns in a step, in radians
STRIDE = 0.7  # of a step, in pixels
DASH = 3  # of so many pixels of a walk the last is dark
LINE, DOT = 0.5, 1.0
SHAPES = 500  # walks to choose from
TRIED = 64  # places of a line that are tried, before the picture is begun anew


def pathfinder(*, side: int = 16) -> Task:
    """Signals (side², 1) of 0, ½ on a line, 1 on a dot; class 1 if one line joins the dots."""
    sized("pathfinder", {"side": (side, 16)})
    marks = {"chance": 0.5, "best": 1.0}
    return generated("pathfinder", 2, partial(_drawn, side=side), marks=marks)


def _drawn(rng, count: int, *, side: int) -> Examples:
    labels = rng.integers(0, 2, count)
    pictures = np.stack([picture(rng, side, bool(joined)) for joined in labels])
    return Examples(pictures.reshape(count, side * side, 1), labels)


def picture(rng, side: int, joined: bool) -> np.ndarray:
    """One picture (side, side)."""
    long, short = 3 * (side // 4) + 1, 3 * (side // 8) - 1  # both end with a lit pixel
    walks = None
    while walks is None:
        walks = _walks(rng, side, [long, long] + [short] * (side // 8))
    seen = np.zeros((side, side), np.float32)
    for walk in walks:
        lit = walk[np.arange(len(walk)) % DASH < DASH - 1]
        seen[tuple(lit.T)] = LINE
    ends = walks[0][0], walks[0 if joined else 1][-1]
    for end in ends:
        seen[tuple(end)] = DOT
    return seen


def _walks(rng, side: int, sizes) -> list[np.ndarray] | None:
    """Walks (size, 2) that keep apart; None if one finds no place."""
    taken, found = np.zeros((side, side), bool), []
    for size in sizes:
        tried = _placed(rng, side, size)
        free = ~taken[tried[..., 0], tried[..., 1]].any(-1)
        if not free.any():
            return None
        walk = tried[free.argmax()]
        around = walk[:, None, None] + _around()
        kept = np.clip(around, 0, side - 1).reshape(-1, 2)
        taken[tuple(kept.T)] = True
        found.append(walk)
    return found


@cache
def _around() -> np.ndarray:
    """The offsets of all pixels that are less than `APART` away in both directions."""
    near = np.arange(1 - APART, APART)
    return np.stack(np.meshgrid(near, near, indexing="ij"), -1)


def _placed(rng, side: int, size: int) -> np.ndarray:
    """Pixels (64, size, 2) of random shapes, turned and mirrored, at random places."""
    shapes = _shapes(side, size)
    walks = shapes[rng.integers(0, len(shapes), TRIED)]
    turned, mirrored = rng.random(TRIED) < 0.5, rng.random((TRIED, 1, 2)) < 0.5
    walks = np.where(turned[:, None, None], walks[..., ::-1], walks)
    extent = walks.max(1, keepdims=True)
    walks = np.where(mirrored, extent - walks, walks)
    return walks + np.floor((side - extent) * rng.random((TRIED, 1, 2))).astype(int)


@cache
def _shapes(side: int, size: int) -> np.ndarray:
    """Walks (500, size, 2) with the least coordinates 0, which fit into the picture; always the
    same ones."""
    rng, found = np.random.default_rng(size), []
    while len(found) < SHAPES:
        walk = _walk(rng, size)
        if walk is not None and walk.max() < side:
            found.append(walk)
    return np.stack(found)


def _walk(rng, size: int) -> np.ndarray | None:
    """The first pixels of a smooth curve, each beside the last; None if it comes near itself."""
    angles = rng.uniform(0, 2 * np.pi) + np.cumsum(rng.uniform(-TURN, TURN, 3 * size))
    points = np.cumsum(np.stack([np.sin(angles), np.cos(angles)], -1), 0) * STRIDE
    pixels = np.floor(points + rng.random(2)).astype(int)
    moved = np.append(True, (np.diff(pixels, axis=0) != 0).any(-1))
    walk = pixels[moved][:size]
    apart = np.abs(walk[:, None] - walk[None]).max(-1)
    later = np.subtract.outer(np.arange(len(walk)), np.arange(len(walk))) > DASH
    if len(walk) < size or (apart[later] < APART).any():
        return None
    return walk - walk.min(0)
