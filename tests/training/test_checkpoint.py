"""A checkpoint is complete or absent, gives back what was written, and executes nothing."""

import errno
import json
import os
import pickle

import numpy as np
import pytest
from safetensors.numpy import save_file

from refssm.training import checkpoint
from refssm.training.checkpoint import CheckpointError

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "z": np.array([[1 + 2j, -0.0 - 1j]], np.complex64),
    "w": np.array([1e300 + 1j]),
    "none": np.zeros((0, 2)),
    "one": np.array(0.5, np.float32),
    "pair": np.array(0.5 - 2j),
    "turned": np.arange(6.0).reshape(2, 3).T,
}
FACTS = {"step": 3, "generator": np.random.default_rng(1).bit_generator.state}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint.safetensors"


def test_what_is_read_is_what_was_written_bit_for_bit(path):
    checkpoint.write(path, ARRAYS, FACTS)
    arrays, facts = checkpoint.read(path)
    assert facts == {"version": checkpoint.VERSION, **FACTS}
    assert arrays.keys() == ARRAYS.keys()
    for name, a in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (a.dtype, a.shape)
        assert arrays[name].tobytes() == a.tobytes()


def failing(error):
    def fail(*arguments, **more):
        raise error

    return fail


FAILURES = {
    "a full disk": ("fsync", OSError(errno.ENOSPC, "No space left on device")),
    "a read-only folder": ("replace", OSError(errno.EROFS, "Read-only file system")),
    "Ctrl-C while writing": ("fsync", KeyboardInterrupt()),
    "Ctrl-C before the rename": ("replace", KeyboardInterrupt()),
}


@pytest.mark.parametrize("what", FAILURES)
def test_after_a_failure_the_old_checkpoint_is_there_and_nothing_else(path, monkeypatch, what):
    checkpoint.write(path, {"a": np.ones(3)}, {"step": 1})
    function, error = FAILURES[what]
    with monkeypatch.context() as patch:
        patch.setattr(os, function, failing(error))
        with pytest.raises(type(error)):
            checkpoint.write(path, {"a": np.zeros(3)}, {"step": 2})
    arrays, facts = checkpoint.read(path)
    assert (facts["step"], arrays["a"].tolist()) == (1, [1, 1, 1])
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_device_without_room_stops_with_an_oserror_and_leaves_the_old_one(path, monkeypatch):
    checkpoint.write(path, {"a": np.ones(3)}, {"step": 1})

    def full(handle, mode):
        os.dup2(os.open("/dev/full", os.O_WRONLY), handle)
        return fdopen(handle, mode)

    fdopen = os.fdopen
    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.write(path, {"a": np.zeros(10**6)}, {"step": 2})
    assert checkpoint.read(path)[1]["step"] == 1
    assert [*path.parent.iterdir()] == [path]


def test_a_file_that_is_cut_off_anywhere_is_refused_in_one_sentence(path):
    checkpoint.write(path, ARRAYS, FACTS)
    whole = path.read_bytes()
    for length in {*range(0, len(whole), 97), len(whole) - 1}:
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="not a checkpoint") as refused:
            checkpoint.read(path)
        assert "\n" not in str(refused.value)


def test_nothing_in_a_checkpoint_is_executed(path):
    class Evil:
        def __reduce__(self):
            return os.system, ("touch executed",)

    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(CheckpointError):
        checkpoint.read(path)
    assert not os.path.exists("executed")


@pytest.mark.parametrize("told", ["{}", '{"version": 0}', "[]", "3", "not json", "[" * 100000])
def test_another_version_or_another_file_is_refused(path, told):
    save_file({"a": np.ones(2)}, path, metadata={"refssm": told})
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        checkpoint.read(path)


def test_another_version_is_named(path):
    save_file({"a": np.ones(2)}, path, metadata={"refssm": json.dumps({"version": 7})})
    with pytest.raises(CheckpointError, match=rf"wanted version {checkpoint.VERSION}, got 7"):
        checkpoint.read(path)


def test_a_missing_checkpoint_is_called_missing(path):
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        checkpoint.read(path)
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        checkpoint.read(path.parent)


def test_every_setting_that_differs_is_named(path):
    got, wanted = {"h": 4, "rate": 0.1, "task": "digits"}, {"h": 8, "rate": 0.1, "task": "waves"}
    told = "h was 4, now 8; task was 'digits', now 'waves'"
    with pytest.raises(CheckpointError, match=told):
        checkpoint.check_settings(path, got, wanted)
    checkpoint.check_settings(path, wanted, wanted)
    with pytest.raises(CheckpointError, match="h was None, now 8"):
        checkpoint.check_settings(path, None, wanted)


WRONG = {
    "`b` is missing": {"a": np.zeros(2)},
    r"`b` is of another model: wanted float64 \(3,\), got float64 \(4,\)": {
        "a": np.zeros(2), "b": np.zeros(4),
    },
    r"got float32 \(2,\)": {"a": np.zeros(2, np.float32), "b": np.zeros(3)},
    "`c` is unknown": {"a": np.zeros(2), "b": np.zeros(3), "c": np.zeros(1)},
}  # fmt: skip


@pytest.mark.parametrize("sentence", WRONG)
def test_the_first_array_that_differs_is_named(path, sentence):
    wanted = {"a": np.zeros(2), "b": np.zeros(3)}
    with pytest.raises(CheckpointError, match=sentence):
        checkpoint.check_shapes(path, WRONG[sentence], wanted)
    checkpoint.check_shapes(path, wanted, wanted)
