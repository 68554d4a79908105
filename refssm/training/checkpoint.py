"""Checkpoints: everything a run needs to go on, in one safetensors file that is complete or absent.

The arrays are parameters, moments and averages. What is not an array (the step, the state of the
generator, the settings) is JSON in the file's metadata. Nothing in the file is executed.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from refssm.training.tasks import TrainingError

VERSION = 1
PARTS = ".refssm-*.part"  # files that are being written
COMPLEX = "complex."  # complex arrays are stored as pairs of real numbers, under this prefix


class CheckpointError(TrainingError):
    """A checkpoint cannot be read, or is not one of this run."""


def write(path: Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
    """Write a checkpoint in place of the old one; the old one stays if anything goes wrong."""
    stored = dict(_stored(name, a) for name, a in arrays.items())
    data = save(stored, metadata={"refssm": json.dumps({"version": VERSION, **facts})})
    write_whole(path, data)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it has the new content or, after any failure, the old one."""
    handle, name = tempfile.mkstemp(suffix=".part", prefix=".refssm-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _stored(name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
    array = np.asarray(array, order="C")  # `ascontiguousarray` gives a single number an axis
    if array.dtype.kind != "c":
        return name, array
    return COMPLEX + name, array[..., None].view(np.finfo(array.dtype).dtype)


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and facts of a checkpoint; CheckpointError says in one sentence what is wrong."""
    try:
        with safe_open(path, framework="numpy") as file:
            facts = json.loads((file.metadata() or {}).get("refssm", "{}"))
            arrays = dict(_given(name, file.get_tensor(name)) for name in file.keys())  # noqa: SIM118 (it is no dict)
    except FileNotFoundError:
        raise CheckpointError(f"{path}: there is no checkpoint") from None
    except (OSError, SafetensorError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not a checkpoint: {error}") from None
    if not isinstance(facts, dict) or facts.get("version") != VERSION:
        got = facts.get("version") if isinstance(facts, dict) else facts
        wanted = f"wanted version {VERSION}, got {got!r}"
        raise CheckpointError(f"{path}: not a checkpoint of this refssm: {wanted}")
    return arrays, facts


def _given(name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
    if not name.startswith(COMPLEX):
        return name, array
    kind = np.result_type(array.dtype, np.complex64)
    return name.removeprefix(COMPLEX), np.ascontiguousarray(array).view(kind)[..., 0]


def check_settings(path: Path, got: Any, wanted: Mapping[str, Any]) -> None:
    """CheckpointError if the settings of the run differ: every difference is named."""
    got = got if isinstance(got, dict) else {}
    told = [
        f"{name} was {got.get(name)!r}, now {value!r}"
        for name, value in wanted.items()
        if got.get(name) != value
    ]
    if told:
        raise CheckpointError(f"{path}: a checkpoint of another run: {'; '.join(told)}")


def check_shapes(
    path: Path, got: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]
) -> None:
    """CheckpointError if names, shapes or types differ: the first difference is named."""
    for name in wanted:
        if name not in got:
            raise CheckpointError(f"{path}: `{name}` is missing: a checkpoint of another model")
        a, b = got[name], wanted[name]
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            have = f"wanted {b.dtype} {b.shape}, got {a.dtype} {a.shape}"
            raise CheckpointError(f"{path}: `{name}` is of another model: {have}")
    for name in got:
        if name not in wanted:
            raise CheckpointError(f"{path}: `{name}` is unknown: a checkpoint of another model")
