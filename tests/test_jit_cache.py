import gc
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import refssm.jit
from refssm.jit._compiling import cache, everything
from refssm.jit._compiling.gufunc import GufuncKernel, gufunc

# a mirror as ours are made, small enough to compile in a second
MIRROR = """
import sys
import numpy as np
from refssm.jit._compiling.gufunc import GufuncKernel, gufunc

@gufunc("(l)->(l)")
def doubled(u, y):
    for i in range(u.size):
        y[i] = u[i] + u[i]

@gufunc("(l)->(l)")
def squared(u, y):
    for i in range(u.size):
        y[i] = u[i] * u[i]

u = np.arange(1, 4, dtype=sys.argv[1])
print(doubled(u).tolist(), squared(u).tolist())
"""
RIGHT = "[2.0, 4.0, 6.0] [1.0, 4.0, 9.0]"
BOTH = [f"__main__.{name}.{kind}{kind}" for name in ("doubled", "squared") for kind in ("f4", "f8")]


@pytest.fixture
def program(tmp_path):
    """Starts the program with a cache of its own."""
    file = tmp_path / "mirror.py"
    file.write_text(MIRROR, encoding="utf-8")

    def start(dtype="f8", cache=tmp_path / "cache", **settings):
        environment = {**os.environ, "REFSSM_CACHE_DIR": str(cache), **settings}
        return subprocess.Popen(
            [sys.executable, str(file), dtype], env=environment, text=True, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return start


def output(process):
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    return out.strip()


def folders(tmp_path):
    """What the cache holds, but locks."""
    found = (tmp_path / "cache" / "mirrors").glob("*/*")
    return sorted(path.name for path in found if path.suffix != ".lock")


def files(tmp_path):
    """The files of compiled code, with the times when they were written."""
    found = (tmp_path / "cache").rglob("compiled")
    return {path.parent.name: path.stat().st_mtime_ns for path in found}


def wait_for(condition):
    while not condition():
        time.sleep(0.01)


@pytest.mark.long
def test_eight_processes_fill_an_empty_cache_three_are_killed_and_the_others_are_right(
    tmp_path, program
):
    started = [program(dtype) for dtype in ("f4", "f8") * 4]
    for victim in started[:3]:  # one of them or another compiles: one is killed while it writes
        wait_for(lambda: any(name.endswith(".part") for name in folders(tmp_path)))
        victim.kill()
        victim.communicate()
    assert {output(process) for process in started[3:]} == {RIGHT}
    assert folders(tmp_path) == BOTH
    written = files(tmp_path)
    assert {output(program(dtype)) for dtype in ("f4", "f8")} == {RIGHT}
    assert files(tmp_path) == written  # later processes only read


@pytest.mark.long
def test_a_process_killed_while_it_compiles_leaves_nothing_that_a_later_one_reads(
    tmp_path, program
):
    killed = program()
    wait_for(lambda: folders(tmp_path))
    killed.kill()
    killed.communicate()
    assert all(name.endswith(".part") for name in folders(tmp_path))
    assert output(program()) == RIGHT
    assert folders(tmp_path) == ["__main__.doubled.f8f8", "__main__.squared.f8f8"]


@pytest.mark.long
def test_a_damaged_file_is_compiled_again_and_replaced(tmp_path, program):
    assert output(program()) == RIGHT
    whole = {}
    for path in (tmp_path / "cache").rglob("compiled"):
        whole[path] = path.stat().st_size
        path.write_bytes(path.read_bytes()[:100])
    assert output(program()) == RIGHT  # the damaged folder is removed
    assert output(program()) == RIGHT  # and made anew
    assert {path: path.stat().st_size for path in whole} == whole


@pytest.mark.long
def test_where_nothing_can_be_written_mirrors_are_compiled_in_memory(tmp_path, program):
    file = tmp_path / "a_file"
    file.write_text("", encoding="utf-8")
    assert output(program(cache=file)) == RIGHT


@pytest.mark.long
@pytest.mark.parametrize("writable", [True, False], ids=["a cache", "no cache"])
def test_a_package_installed_read_only_works(tmp_path, writable):
    """With a cache elsewhere, and without any; a file in place of the folder stops root, too."""
    package = tmp_path / "site" / "refssm"
    shutil.copytree(Path(refssm.__path__[0]), package, ignore=shutil.ignore_patterns("*.pyc"))
    cache = tmp_path / "cache"
    if not writable:
        cache.write_text("", encoding="utf-8")
    before = {*package.rglob("*")}
    for path in (package, *before):
        path.chmod(path.stat().st_mode & ~0o222)
    environment = {**os.environ, "REFSSM_CACHE_DIR": str(cache), "PYTHONPATH": str(package.parent)}
    call = "import refssm; from refssm.jit.scan import linear_scan as f"
    call = f"{call}; print(refssm.__file__, f([[2.0]], [[3.0]]))"
    told = subprocess.run(
        [sys.executable, "-B", "-c", call], env=environment, cwd=tmp_path,
        capture_output=True, text=True, encoding="utf-8", check=True,
    )  # fmt: skip
    assert told.stdout.split() == [str(package / "__init__.py"), "[[3.]]"]
    assert told.stderr == ""
    assert {*package.rglob("*")} == before
    assert cache.is_dir() == writable


@pytest.mark.parametrize("terminal", [True, False])
def test_compiling_all_says_so_first_and_shows_progress_on_a_terminal_only(
    monkeypatch, capsys, terminal
):
    monkeypatch.setattr(everything, "parts", list)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setenv("FORCE_COLOR", "1")  # with it, rich takes a pipe for a terminal
    everything.main()
    first, *shown = capsys.readouterr().err.splitlines()
    assert first.startswith("compiling 0 kernels of mirrors on ")
    assert any("compiling mirrors" in line for line in shown) == terminal


def test_a_user_without_a_home_gets_no_folder_of_that_name(tmp_path, monkeypatch):
    monkeypatch.delenv("REFSSM_CACHE_DIR", raising=False)
    monkeypatch.setattr(cache, "user_cache_path", lambda *_, **__: Path("~/.cache/refssm"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cache, "of_these_sources", cache.of_these_sources.__wrapped__)
    assert cache.kept(lambda: ("in memory", b""), bytes, "scan") == "in memory"
    assert [*tmp_path.iterdir()] == []


def test_other_settings_of_numba_have_a_folder_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("REFSSM_CACHE_DIR", str(tmp_path))
    plain = cache.of_these_sources.__wrapped__()
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")  # as joblib does in its processes
    assert cache.of_these_sources.__wrapped__() == plain
    monkeypatch.setenv("NUMBA_OPT", "1")
    assert cache.of_these_sources.__wrapped__() != plain


def test_other_sources_have_a_folder_of_their_own_but_pages_and_the_judge_do_not_count(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(cache, "PACKAGE", tmp_path)
    states = []
    for name in ("jit/scan.py", "scan.py", "conformance/judge.py", "jit/scan.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"x = {len(states)}", encoding="utf-8")
        states.append(cache._state())
    assert states[2] == states[1]
    assert len({*states}) == 3


def test_clones_of_the_same_sources_share_what_they_compile(tmp_path, monkeypatch):
    states = []
    for name, text in (("one", "x = 1\n"), ("two", "x = 1\n"), ("other", "x = 2\n")):
        folder = tmp_path / name / "refssm"
        (folder / "jit").mkdir(parents=True)
        (folder / "jit" / "scan.py").write_text(text, encoding="utf-8")
        os.utime(folder / "jit" / "scan.py", (0, len(states)))
        monkeypatch.setattr(cache, "PACKAGE", folder)
        states.append(cache._state())
    assert states[0] == states[1] != states[2]


def test_folders_of_other_sources_are_removed_after_a_month(tmp_path, monkeypatch):
    monkeypatch.setenv("REFSSM_CACHE_DIR", str(tmp_path))
    old, recent = tmp_path / "mirrors" / "old", tmp_path / "mirrors" / "recent"
    old.mkdir(parents=True)
    recent.mkdir()
    (tmp_path / "mirrors" / "gone").symlink_to("removed")  # by another process, meanwhile
    os.utime(old, (0, time.time() - cache.UNUSED - 60))
    kept = cache.of_these_sources.__wrapped__()
    left = {path for path in (tmp_path / "mirrors").iterdir() if not path.is_symlink()}
    assert left == {recent, kept}


def test_a_folder_that_is_not_finished_gets_no_name(tmp_path):
    folder = tmp_path / "scan"
    filling = cache.whole(folder)
    assert filling.__enter__() != folder
    assert filling.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None) is False
    assert [path.name for path in tmp_path.iterdir()] == ["scan.lock"]


def test_every_kernel_is_compiled_once_by_the_command_and_no_family_is_left_out():
    parts = everything.parts()
    assert len({*parts}) == len(parts)
    families = {p.stem for p in Path(refssm.jit.__path__[0]).iterdir() if p.stem[0] != "_"}
    assert families - {part.module.split(".")[2] for part in parts} == {"krylov"}  # it has none
    functions = {kernel.function for _, _, kernel in everything.kernels()}
    # in whatever wrapper; `type`, for weak references of other tests may be dead
    held = [x.function for x in gc.get_objects() if type(x) is GufuncKernel]
    assert functions == {f for f in held if f.__module__.startswith("refssm.jit.")}


def test_a_function_with_a_closure_is_refused():

    factor = np.float64(2)

    def scaled(u, y):
        y[0] = factor * u[0]

    with pytest.raises(AssertionError, match="closure"):
        gufunc("(l)->(l)")(scaled)
