"""Files of a local data set: read whole, or refused in one sentence that names the file."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from refssm.training.tasks.task import Examples, Task, TrainingError


def refused(name: str, path: Path, came: str, wanted: str) -> TrainingError:
    """The error of a file that is not there, or not what is wanted."""
    return TrainingError(f"{name}: {path}: {came}; wanted {wanted}")


def content(name: str, path: Path, wanted: str) -> bytes:
    """The bytes of a file, unpacked if its name ends in .gz; TrainingError if that cannot be."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise refused(name, path, f"damaged ({error})", wanted) from None
    except OSError as error:
        raise refused(name, path, error.strerror or "unreadable", wanted) from None


def text(name: str, path: Path, wanted: str) -> str:
    """The text of a file in UTF-8; TrainingError if it is none."""
    try:
        return content(name, path, wanted).decode()
    except UnicodeDecodeError:
        raise refused(name, path, "not text in UTF-8", wanted) from None


def rows(name: str, path: Path, columns: int, wanted: str) -> Iterator[tuple[int, list[str]]]:
    """The lines of a table with tabs, numbered from 1; TrainingError names a line that is short."""
    for number, line in enumerate(text(name, path, wanted).split("\n"), 1):
        if line:
            cells = line.rstrip("\r").split("\t")
            if len(cells) < columns:
                raise refused(name, path, f"line {number} has {len(cells)} columns", wanted)
            yield number, cells


def listed(name: str, folder: Path, pattern: str, wanted: str) -> list[Path]:
    """The files of a folder that match, in the order of their names; TrainingError for none."""
    found = sorted(folder.glob(pattern))
    if not found:
        came = f"no {pattern}" if folder.is_dir() else "no such folder"
        raise refused(name, folder, came, wanted)
    return found


def of_parts(name: str, classes: int, train: Examples, test: Examples, **facts) -> Task:
    """The task with its training and test part; chance is the commonest class of the training."""
    for part, examples in (("training", train), ("test", test)):
        if not len(examples.labels):
            raise TrainingError(f"{name}: the {part} part has no examples")
    common = np.bincount(train.labels, minlength=classes).argmax()
    marks = {"chance": float((test.labels == common).mean())}
    return Task(
        name, classes, train.signals, train.labels, test.signals, test.labels, marks=marks, **facts
    )


def padded(sequences: list, l: int, blank: int) -> np.ndarray:
    """Symbols (e, l): the first l of each, with blanks before those that are shorter."""
    signals = np.full((len(sequences), l), blank, np.int16)
    for signal, sequence in zip(signals, sequences, strict=True):
        kept = sequence[:l]
        signal[l - len(kept) :] = kept
    return signals
