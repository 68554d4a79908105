"""Spoken words, a second at 16 kHz each [warden2018speech].

    WORD/*.wav, testing_list.txt, validation_list.txt

The files that the lists name are the test and are left out; all others are for training. Files of
training are read when a batch needs them: all of them would need some gigabytes.
"""

import warnings
from pathlib import Path
from struct import error as short

import numpy as np
from scipy.io import wavfile

from refssm.training.tasks.local.files import listed, refused, text
from refssm.training.tasks.task import Examples, Task, TrainingError, sized

RATE = 16000
NOISE = "_background_noise_"
WANTED = "a sound of one channel, 16 bits a sample, at 16 kHz"


def speech_commands(folder: Path, *, l: int = RATE, every: int = 1) -> Task:
    """Each `every`-th of the first l samples: which word? Zeros follow a shorter sound."""
    sized("speech-commands", {"l": (l, 1), "every": (every, 1)})
    sounds = listed("speech-commands", folder, "*/*.wav", "a folder of .wav for each word")
    sounds = [path for path in sounds if path.parent.name != NOISE]
    words = sorted({path.parent.name for path in sounds})
    tests, others = (_named(folder, f"{part}_list.txt") for part in ("testing", "validation"))
    lists = {folder / name for name in tests}
    absent = sorted(lists - {*sounds})
    if absent:
        raise refused("speech-commands", absent[0], "not there", "each file of testing_list.txt")
    train = [p for p in sounds if p not in lists and p.relative_to(folder).as_posix() not in others]
    if not (train and lists):
        raise TrainingError(f"speech-commands: {folder}: {len(train)} files for training, "
                            f"{len(lists)} for the test; wanted some of both")  # fmt: skip

    def read(paths):
        labels = np.array([words.index(path.parent.name) for path in paths], int)
        signals = np.array([_sound(path, l) for path in paths], np.float32).reshape(-1, l)
        return Examples(signals[:, ::every, None], labels)

    def draw(rng, count):
        return read([train[i] for i in rng.integers(0, len(train), count)])

    test = read(sorted(lists))
    marks = {"chance": float(np.bincount(test.labels).max() / len(test.labels))}
    none = test.rows(slice(0))
    return Task(
        "speech-commands", len(words), none.signals, none.labels, test.signals, test.labels,
        draw=draw, marks=marks,
    )  # fmt: skip


def _named(folder: Path, file: str) -> set[str]:
    """The lines of a list."""
    return set(text("speech-commands", folder / file, "a list with WORD/FILE.wav").split())


def _sound(path: Path, l: int) -> np.ndarray:
    """The first l samples from −1 to 1."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", wavfile.WavFileWarning)  # a sound that ends too early
            rate, samples = wavfile.read(path)
    except (ValueError, EOFError, OSError, short, wavfile.WavFileWarning) as error:
        raise refused("speech-commands", path, f"damaged ({error})", WANTED) from None
    if rate != RATE or samples.ndim != 1 or samples.dtype != np.int16:
        came = f"{samples.dtype} {samples.shape} at {rate} Hz"
        raise refused("speech-commands", path, came, WANTED)
    kept = samples[:l] / 2.0**15
    return np.pad(kept, (0, l - len(kept)))
