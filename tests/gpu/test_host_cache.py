"""What the C++ compiler made is kept in whole folders that may move; unused ones are removed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from gpu.hosted import kernel

from refssm_gpu._host import build, cache

LAUNCH = """
import numpy as np
from gpu.hosted import kernel
kernel("twice", "float32")(1, np.ones(64, "f"), out := np.zeros(64, "f"), np.int64(64))
assert (out == 2).all()
"""


def launched():
    kernel("twice", "float32")(1, np.ones(64, "f"), out := np.zeros(64, "f"), np.int64(64))
    return (out == 2).all()


@pytest.fixture
def place(monkeypatch, tmp_path):
    monkeypatch.setenv("REFSSM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def nothing(folder):
    """Fills a folder with nothing."""


def folders(place):
    return {path.name for path in (place / "host").iterdir() if path.is_dir()}


@pytest.mark.long
def test_a_cache_may_be_moved_and_nothing_is_compiled_again(place, tmp_path):
    assert launched()
    made, moved = folders(place), tmp_path / "moved"
    place.rename(moved)
    paths = [str(Path(__file__).parents[1]), str(Path(build.__file__).parents[2]), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH], capture_output=True, encoding="utf-8",
        env=os.environ | {"REFSSM_CACHE_DIR": str(moved), "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert folders(moved) == made
    assert len(made) == 2  # the engine and the instance


def test_what_a_killed_process_left_is_removed(place):
    def make(folder):
        (folder / "made").touch()

    folder = cache.kept(["a"], make)
    (folder / "made").unlink()
    folder.rmdir()
    left = folder.parent / f"{folder.name}.killed.part"
    left.mkdir()
    assert cache.kept(["a"], make) == folder
    assert folders(place) == {folder.name}


def test_a_folder_that_could_not_be_filled_does_not_exist(place):
    def fails(folder):
        (folder / "half").touch()
        raise build.CompileError("refused")

    with pytest.raises(build.CompileError):
        cache.kept(["a"], fails)
    assert folders(place) == set()


def test_folders_that_nobody_used_for_a_month_are_removed(place):
    old, young = (cache.kept([name], nothing) for name in "ab")
    long_ago = time.time() - 2 * cache.UNUSED
    os.utime(old, (long_ago, long_ago))
    cache._tidied.__wrapped__(place)
    assert folders(place) == {young.name}
    cache.kept(["a"], nothing)  # and it is made again
    assert folders(place) == {old.name, young.name}
