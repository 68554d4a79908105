"""Images read pixel by pixel, from −1 to 1.

    scifar, lra-image  data_batch_1.bin … 5, test_batch.bin, or the same without .bin as pickles
    smnist             train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-…; .gz or not
    lra-pathfinder     metadata/*.npy, and the images that their lines name

[krizhevsky2009cifar; lecun1998mnist; linsley2018pathfinder; tay2021lra]. A pickle may name only
what arrays of NumPy need: nothing else in it is loaded.
"""

import pickle
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy._core import multiarray

from refssm.training.tasks.local.files import content, listed, of_parts, refused
from refssm.training.tasks.local.files import text as text_of
from refssm.training.tasks.task import Examples, Task, TrainingError

SIDE = 32
RECORD = 1 + 3 * SIDE * SIDE  # a class, then the planes of red, green and blue
GRAY = np.array([0.299, 0.587, 0.114])  # of red, green, blue
TENTH = 10  # of Pathfinder's images, one in ten is the test: there is no published split


def scifar(folder: Path) -> Task:
    """Colours (1024, 3) of CIFAR-10; ten classes."""
    parts = [_cifar("scifar", folder, part) for part in ("train", "test")]
    return of_parts("scifar", 10, *parts)


def lra_image(folder: Path) -> Task:
    """The same in gray: (1024, 1)."""
    parts = [_cifar("lra-image", folder, part) for part in ("train", "test")]
    gray = [Examples((x @ GRAY).astype(np.float32)[..., None], labels) for x, labels, *_ in parts]
    return of_parts("lra-image", 10, *gray)


def _cifar(name: str, folder: Path, part: str) -> Examples:
    """The images (e, 1024, 3) of one part."""
    files = [f"data_batch_{i}" for i in range(1, 6)] if part == "train" else ["test_batch"]
    binary = (folder / f"{files[0]}.bin").exists()
    read = _records if binary else _pickled
    found = [read(name, folder / f"{file}{'.bin' if binary else ''}") for file in files]
    planes = np.concatenate([images for images, _ in found]).reshape(-1, 3, SIDE * SIDE)
    labels = np.concatenate([labels for _, labels in found]).astype(int)
    return Examples(_scaled(planes).swapaxes(1, 2), labels)


def _records(name: str, path: Path):
    wanted = f"records of {RECORD} bytes: a class from 0 to 9 and the pixels"
    data = np.frombuffer(content(name, path, wanted), np.uint8)
    if not data.size or data.size % RECORD:
        raise refused(name, path, f"{data.size} bytes", wanted)
    data = data.reshape(-1, RECORD)
    if data[:, 0].max() > 9:
        raise refused(name, path, f"a class {data[:, 0].max()}", wanted)
    return data[:, 1:], data[:, 0]


class _Arrays(pickle.Unpickler):
    """Loads arrays, numbers, text and dictionaries, and no other object."""

    known = {  # noqa: RUF012 (a table that nobody writes to)
        "_reconstruct": multiarray._reconstruct,
        "ndarray": np.ndarray,
        "dtype": np.dtype,
        "encode": lambda text, _: text.encode("latin1"),  # of _codecs: bytes in old pickles
    }

    def find_class(self, module, name):
        if name in self.known and module.split(".")[0] in ("numpy", "_codecs"):
            return self.known[name]
        raise pickle.UnpicklingError(f"it names {module}.{name}")


def _pickled(name: str, path: Path):
    wanted = "a pickle with data (e, 3072) and labels, or the same as .bin"
    data = content(name, path, wanted)
    try:
        batch = _Arrays(BytesIO(data), encoding="bytes").load()
        images, labels = np.asarray(batch[b"data"]), np.asarray(batch[b"labels"])
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, ValueError, IndexError) as error:
        raise refused(name, path, f"damaged ({error})", wanted) from None
    if images.shape != (len(labels), RECORD - 1) or images.dtype != np.uint8:
        raise refused(name, path, f"{images.dtype} {images.shape}", wanted)
    return images, labels


def smnist(folder: Path) -> Task:
    """Digits (784, 1) of MNIST; ten classes."""
    parts = []
    for prefix in ("train", "t10k"):
        pixels = _idx(folder, f"{prefix}-images-idx3-ubyte", 3)
        labels = _idx(folder, f"{prefix}-labels-idx1-ubyte", 1).astype(int)
        if len(pixels) != len(labels):
            came = f"{len(labels)} labels"
            path = folder / f"{prefix}-labels-idx1-ubyte"
            raise refused("smnist", path, came, f"one for each of {len(pixels)} images")
        parts.append(Examples(_scaled(pixels.reshape(len(pixels), -1, 1)), labels))
    return of_parts("smnist", 10, *parts)


def _idx(folder: Path, file: str, axes: int) -> np.ndarray:
    """An array of bytes: 0, 0, the type 8, the number of axes, their lengths, the entries."""
    path = folder / f"{file}.gz"
    path = path if path.exists() else folder / file
    wanted = f"an idx file of bytes with {axes} axes, or the same as .gz"
    data = content("smnist", path, wanted)
    start = 4 + 4 * axes
    if len(data) < start or data[:4] != bytes([0, 0, 8, axes]):
        raise refused("smnist", path, f"a start {data[:4].hex()}", wanted)
    shape = np.frombuffer(data[4:start], ">u4").astype(int)
    if len(data) - start != shape.prod():
        raise refused("smnist", path, f"{len(data) - start} entries", f"{shape.prod()}, as it says")
    return np.frombuffer(data[start:], np.uint8).reshape(shape)


def lra_pathfinder(folder: Path) -> Task:
    """Pixels (side², 1): does a line join the dots? `folder` is one difficulty."""
    wanted = "lines with folder, file, number and label: metadata of Pathfinder"
    found = []
    for path in listed("lra-pathfinder", folder / "metadata", "*.npy", wanted):
        for number, line in enumerate(_lines(path, wanted), 1):
            place, file, _, label, *_ = [*line.split(), "", "", "", ""]
            if label not in ("0", "1"):
                raise refused("lra-pathfinder", path, f"line {number} is {line!r}", wanted)
            found.append((_image(folder / place / file), int(label)))
    shapes = {image.shape for image, _ in found}
    if len(shapes) != 1:
        raise refused("lra-pathfinder", folder, f"images of {len(shapes)} sizes", "one size")
    signals = np.stack([image.reshape(-1, 1) for image, _ in found])
    labels = np.array([label for _, label in found])
    mixed = np.random.default_rng(0).permutation(len(labels))
    test, train = np.split(mixed, [max(1, len(mixed) // TENTH)])
    parts = (Examples(signals[which], labels[which]) for which in (train, test))
    return of_parts("lra-pathfinder", 2, *parts)


def _lines(path: Path, wanted: str) -> list[str]:
    """The lines of a metadata file: text in spite of its name, or an array of text."""
    data = content("lra-pathfinder", path, wanted)
    if not data.startswith(b"\x93NUMPY"):
        return [line for line in text_of("lra-pathfinder", path, wanted).splitlines() if line]
    try:
        rows = np.load(BytesIO(data), allow_pickle=False)
    except ValueError as error:
        raise refused("lra-pathfinder", path, f"damaged ({error})", wanted) from None
    return [" ".join(map(str, np.atleast_1d(row))) for row in rows]


def _image(path: Path) -> np.ndarray:
    if find_spec("PIL") is None:
        raise TrainingError("lra-pathfinder: its images are read by Pillow: pip install pillow")
    from PIL import Image

    wanted = "an image of 8 bits a sample"
    data = content("lra-pathfinder", path, wanted)
    try:
        with Image.open(BytesIO(data)) as image:
            gray = np.asarray(image.convert("L"), np.float64)
    except (OSError, SyntaxError, ValueError) as error:  # SyntaxError: of a damaged chunk
        raise refused("lra-pathfinder", path, f"damaged ({error})", wanted) from None
    return _scaled(gray)


def _scaled(pixels: np.ndarray) -> np.ndarray:
    """0 … 255 as −1 … 1."""
    return (pixels / 127.5 - 1).astype(np.float32)
