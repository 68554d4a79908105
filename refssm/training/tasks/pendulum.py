"""A pendulum in noisy pictures at irregular times: where is it? [becker2019rkn; schirmer2022cru]

    d²θ/dt² = c sin θ − f ω + kicks,   ω = dθ/dt,
    c = 3 g / length = 29.43/s²,   f = 0.1/s

θ is 0 at the top; each of 100 steps of 0.01 s ends with a normal kick to ω of deviation 0.1/s. It
starts at rest, at a uniform angle. `l` of the 100 times are given, so gaps are 1, 2, … steps. A
picture of 24 × 24 pixels shows the rod, 10.3 pixels long and 1.5 wide, mixed with uniform noise:
pixel = w rod + (1 − w) noise. How much, is a random walk from picture to picture, so several in a
row may show nothing; the first five are clear. Wanted are the sine and cosine of the angle from
the bottom at each time. c is that of the published data; a thin rod has half of it.
"""

from functools import cache, partial

import numpy as np

from refssm.training.tasks.task import Examples, Task, TrainingError, generated, sized

TIMES, STEP = 100, 0.01  # s
C, FRICTION, KICK = 29.43, 0.1, 0.1
PARTS = 4  # of a step, in the numerical solution
SIDE, LENGTH, WIDTH = 24, 55 * 24 / 128, 8 * 24 / 128  # pixels
CLEAR = 5  # pictures without noise
WALK = 0.2  # most that the mixture moves from one picture to the next
ANGLES = 180  # of the baseline's templates


def pendulum(*, l: int = 50) -> Task:
    """Pictures (l, 576), gaps (l), and at each of them the sine and cosine of the angle.

    The figure is the error relative to the answer 0, whose error is 1: sin² + cos² = 1. Chance is
    the mean answer. The baseline reads each picture alone: the angle, of 180, whose rod has the
    largest inner product with it.
    """
    sized("pendulum", {"l": (l, 1)})
    if l > TIMES:
        raise TrainingError(f"pendulum: wanted l ≤ {TIMES}, got {l}")
    marks: dict[str, float] = {}
    facts = {"read": "each", "loss": "squared", "marks": marks}
    task = generated("pendulum", 2, partial(_seen, l=l), **facts)
    labels = task.test_labels
    marks["chance"] = _error(labels.mean((0, 1)), labels)
    marks["each picture alone"] = _error(_alone(task.test_signals), labels)
    return task


def _seen(rng, count: int, *, l: int) -> Examples:
    angle = swung(rng, count)
    times = np.sort(rng.random((count, TIMES)).argsort(-1)[:, :l], -1)
    angle = np.take_along_axis(angle, times, -1)
    weight = mixture(rng, count, l)[..., None]
    noise = rng.random((count, l, SIDE * SIDE), np.float32)
    pictures = weight * rods(angle) + (1 - weight) * noise
    gaps = np.diff(times, axis=-1, prepend=times[:, :1] - 1).astype(np.float32)
    labels = np.stack([np.sin(angle), np.cos(angle)], -1).astype(np.float32)
    return Examples(pictures, labels, None, gaps)


def swung(rng, count: int, kick: float = KICK, parts: int = PARTS) -> np.ndarray:
    """Angles from the bottom (count, 100), by the leapfrog rule: an error of second order."""
    angle, speed = rng.uniform(0, 2 * np.pi, count), np.zeros(count)
    seen, dt = [angle], STEP / parts
    lost = FRICTION * dt / 2
    for _ in range(TIMES - 1):
        for _ in range(parts):
            angle = angle + dt / 2 * speed
            speed = ((1 - lost) * speed + dt * C * np.sin(angle)) / (1 + lost)
            angle = angle + dt / 2 * speed
        speed = speed + kick * rng.standard_normal(count)
        seen.append(angle)
    return np.stack(seen, -1) - np.pi


def mixture(rng, count: int, l: int) -> np.ndarray:
    """Weights (count, l) of the rod: a walk in [0, 1] with uniform steps; below a lower threshold
    of the example nothing is seen, above an upper one all is."""
    walk = [rng.random(count)]
    for _ in range(l - 1):
        walk.append(np.clip(walk[-1] + rng.uniform(-WALK, WALK, count), 0, 1))
    low, high = rng.uniform(0, 0.25, (count, 1)), rng.uniform(0.75, 1, (count, 1))
    weight = np.clip((np.stack(walk, -1) - low) / (high - low), 0, 1)
    weight[:, :CLEAR] = 1
    return weight.astype(np.float32)


def rods(angle) -> np.ndarray:
    """Pictures (…, 576) of a rod from the middle: how much of a pixel is nearer to it than half its
    width, by the distance of the pixel's centre."""
    at = np.arange(SIDE, dtype=np.float32) - (SIDE - 1) / 2
    x, y = (a.ravel() for a in np.meshgrid(at, at))
    sin, cos = (f(angle)[..., None].astype(np.float32) for f in (np.sin, np.cos))
    along = np.clip(x * sin + y * cos, 0, LENGTH)
    distance = np.hypot(x - along * sin, y - along * cos)
    return np.clip(WIDTH / 2 + 0.5 - distance, 0, 1)


@cache
def _templates() -> tuple[np.ndarray, np.ndarray]:
    """Angles, and their pictures without their mean, of norm 1."""
    angles = np.arange(ANGLES) * (2 * np.pi / ANGLES)
    made = rods(angles)
    made = made - made.mean(-1, keepdims=True)
    return angles, made / np.linalg.norm(made, axis=-1, keepdims=True)


def _alone(pictures: np.ndarray) -> np.ndarray:
    """The answers of the baseline."""
    angles, templates = _templates()
    found = angles[(pictures @ templates.T).argmax(-1)]
    return np.stack([np.sin(found), np.cos(found)], -1)


def _error(answers, labels) -> float:
    """√(Σ |answer − label|² / Σ |label|²)."""
    return float(np.sqrt(((answers - labels) ** 2).sum() / (labels**2).sum()))
