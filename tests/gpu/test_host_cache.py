"""What the C++ compiler made is kept in whole folders that may move; unused ones are removed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from gpu.hosted import kernel

from refssm_gpu._host import build
from refssm_gpu._launching.kernel import Kernel

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

    folder = build.kept(["a"], make)
    (folder / "made").unlink()
    folder.rmdir()
    left = folder.parent / f"{folder.name}.killed.part"
    left.mkdir()
    assert build.kept(["a"], make) == folder
    assert folders(place) == {folder.name}


def test_a_folder_that_could_not_be_filled_does_not_exist(place):
    def fails(folder):
        (folder / "half").touch()
        raise build.CompileError("refused")

    with pytest.raises(build.CompileError):
        build.kept(["a"], fails)
    assert folders(place) == set()


@pytest.fixture
def broken(tmp_path):
    """A kernel whose header has an error, so that the compiler begins with where it is included."""
    (tmp_path / "inner.cuh").write_text("inline float one() { return missing; }\n", "utf-8")
    text = '#include "common/number.cuh"\n#include "inner.cuh"\n'
    text += "template <class E> __global__ void made(E* out) { out[0] = one(); }\n"
    (tmp_path / "made.cuh").write_text(text, encoding="utf-8")
    return Kernel(str(tmp_path / "made.cuh"), "made", (("float",),), 32, 32)


def test_the_first_error_of_the_compiler_is_the_first_that_it_says(broken):
    with pytest.raises(build.CompileError) as caught:
        build.library(broken, ("float",))
    head, *rest = str(caught.value).splitlines()
    assert head.startswith("made<float>: the C++ compiler refuses it: ")
    assert "inner.cuh:1:" in head
    assert "error: " in head
    assert "missing" in head
    assert any(line.startswith("In file included from") for line in rest)
    assert "unrecognized" not in str(caught.value)


def test_what_the_compiler_refused_is_not_compiled_again_until_it_changes(
    broken, tmp_path, monkeypatch
):
    calls, run = [], build.run_compiler
    monkeypatch.setattr(build, "run_compiler", lambda *how: calls.append(how) or run(*how))
    build.runtime_library()
    calls.clear()
    said = set()
    for _ in range(3):
        with pytest.raises(build.CompileError) as caught:
            build.library(broken, ("float",))
        said.add(str(caught.value))
    assert (len(calls), len(said)) == (1, 1)
    (tmp_path / "inner.cuh").write_text("inline float one() { return 1.0f; }\n", "utf-8")
    assert build.library(broken, ("float",)).is_file()
    assert len(calls) == 2


def test_a_folder_that_another_process_takes_away_meanwhile_is_no_error(place):
    kept = build.kept(["a"], nothing)
    (place / "host" / "b.xyz.part").symlink_to("renamed")  # it is listed, but it is not there
    build._tidied.__wrapped__(place)
    assert kept.is_dir()


def test_folders_that_nobody_used_for_a_month_are_removed(place):
    old, young = (build.kept([name], nothing) for name in "ab")
    long_ago = time.time() - 2 * build.UNUSED
    os.utime(old, (long_ago, long_ago))
    build._tidied.__wrapped__(place)
    assert folders(place) == {young.name}
    build.kept(["a"], nothing)  # and it is made again
    assert folders(place) == {old.name, young.name}
