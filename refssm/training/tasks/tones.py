"""Tones of a second's fraction at 16 kHz: which pitch, and does it swell or fade?

A tone has the pitches f, 2f and 3f with amplitudes 1, 1/2 and 1/4 and independent phases, an
envelope, and normal noise. log f is uniform in one of five bands between 100 and 1200 Hz, with gaps
between the bands; the envelope rises or falls along a straight line. All pitches are below 4 kHz,
so each second sample is the same sound at 8 kHz, and a model that computes in seconds can hear it
without training again. This stands for the spoken commands of S4 and S5, which need a download; the
design is ours.
"""

from functools import partial

import numpy as np

from refssm.training.tasks.task import Examples, Task, generated, sized

RATE = 16000  # Hz
BANDS, LOWEST, HIGHEST = 5, 100.0, 1200.0
FILLED = 0.8  # share of a band that has pitches; the rest is the gap
OVERTONES = (1.0, 0.5, 0.25)
SOFT, LOUD = 0.2, 1.0  # the envelope's ends
NOISE = 1.0  # its deviation


def tones(*, l: int = 1024, every: int = 1) -> Task:
    """`l` samples at 16 kHz; with `every=2` each second of them: l/2 samples at 8 kHz.

    Ten classes: the band, and whether the tone fades. The baseline knows how tones are made: the
    pitch of the largest spectrum, summed over overtones, and the louder half.
    """
    sized("tones", {"l": (l, 256), "every": (every, 1)})
    marks = {"chance": 1 / (2 * BANDS)}
    task = generated("tones", 2 * BANDS, partial(_heard, l=l, every=every), marks=marks)
    found = by_spectrum(task.test_signals[..., 0], RATE / every)
    marks["by the spectrum"] = float((found == task.test_labels).mean())
    return task


def _heard(rng, count: int, *, l: int, every: int) -> Examples:
    labels = rng.integers(0, 2 * BANDS, count)
    where = (labels // 2 + FILLED * rng.random(count)) / BANDS
    pitch = LOWEST * (HIGHEST / LOWEST) ** where
    t = np.arange(l) / RATE
    sound = np.zeros((count, l))
    for j, loud in enumerate(OVERTONES, 1):
        phase = rng.uniform(0, 2 * np.pi, (count, 1))
        sound += loud * np.sin(2 * np.pi * j * pitch[:, None] * t + phase)
    rising = SOFT + (LOUD - SOFT) * np.arange(l) / l
    sound *= np.where((labels % 2)[:, None], rising[::-1], rising)
    sound += NOISE * rng.standard_normal((count, l))
    return Examples(sound[:, ::every, None].astype(np.float32), labels)


def by_spectrum(sound, rate: float) -> np.ndarray:
    """The classes of the baseline for sounds (…, l): pitches every 2 %, in the bands only."""
    l = sound.shape[-1]
    steps = np.arange(0, BANDS * 25) / 25  # 25 pitches a band, those of gaps left out
    pitches = LOWEST * (HIGHEST / LOWEST) ** (steps[steps % 1 <= FILLED] / BANDS)
    t = np.arange(l) / rate
    power = np.zeros((*sound.shape[:-1], len(pitches)))
    for j, loud in enumerate(OVERTONES, 1):
        waves = np.exp(-2j * np.pi * j * np.outer(t, pitches))
        power += loud**2 * np.abs(sound @ waves) ** 2
    band = np.floor(steps[steps % 1 <= FILLED][power.argmax(-1)]).astype(int)
    best = pitches[power.argmax(-1)][..., None]
    halves = [
        sum(
            loud * np.abs((sound[..., w] * np.exp(-2j * np.pi * j * best * t[w])).sum(-1))
            for j, loud in enumerate(OVERTONES, 1)
        )
        for w in (slice(l // 2), slice(l // 2, None))
    ]
    return 2 * band + (halves[0] > halves[1])
