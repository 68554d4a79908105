"""`refssm train` in several processes, on a cluster, on a terminal, and stopped by signals."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from judging import run

PATIENCE = 60.0
SMALL = ("--h", 4, "--depth", 1, "--size", "n=2", "--batch", 8, "--ops", "reference")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def timeless(text):
    """The lines of metrics without the times."""
    return [json.loads(line) | {"seconds": 0} for line in text.splitlines()]


DIGITS = ("train", "digits", *SMALL, "--steps", 4, "--every", 2)


@pytest.mark.long
def test_processes_give_the_runs_of_one_process(folder, capfd):
    result, out, err = run(capfd, *DIGITS, "--seeds", 3, "--workers", 2, "--folder", "shared")
    assert (result, err) == (0, "")
    assert "test accuracy of 3 seeds: " in out
    assert run(capfd, *DIGITS, "--seeds", 3, "--folder", "alone")[0] == 0
    for i in range(3):
        one, other = (
            (folder / name / f"digits-s5-{i}/metrics.jsonl").read_text(encoding="utf-8")
            for name in ("shared", "alone")
        )
        assert timeless(one) == timeless(other)
    again = run(capfd, *DIGITS, "--seeds", 4, "--workers", 2, "--folder", "shared", "--resume")
    assert again[0] == 0
    assert (folder / "shared/digits-s5-3/card.md").exists()


@pytest.mark.long
def test_a_cluster_gives_the_runs_of_one_process(folder, capfd):
    distributed = pytest.importorskip(
        "distributed", reason="no Dask here: nothing is trained on it"
    )
    how = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None, "processes": True}
    with distributed.LocalCluster(**how) as cluster:
        arguments = (*DIGITS, "--seeds", 2, "--dask", cluster.scheduler_address)
        result, out, err = run(capfd, *arguments)
    assert (result, err) == (0, "")
    assert "test accuracy of 2 seeds: " in out


@pytest.mark.long
def test_a_scheduler_that_does_not_answer_is_one_sentence(folder, capfd):
    pytest.importorskip("distributed", reason="no Dask here: nothing is trained on it")
    result, _, err = run(capfd, *DIGITS, "--dask", "tcp://127.0.0.1:1")
    assert result == 4
    assert "no scheduler answers" in err
    assert [*folder.iterdir()] == []


STARTED = """import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup has it ignored
from refssm.command import main
sys.argv[0] = "refssm"
sys.exit(main())
"""


@contextmanager
def started(folder, *arguments, **how):
    """The command in a process of its own, which does not outlive the test."""
    words = [sys.executable, "-c", STARTED, *map(str, arguments)]
    with subprocess.Popen(words, cwd=folder, **how) as process:
        try:
            yield process
        finally:
            process.kill()


LONG = ("train", "digits", *SMALL, "--steps", 100000, "--every", 5)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_saves_and_ends_with_code_2(folder, number):
    metrics = folder / "digits-s5-0/metrics.jsonl"
    with started(folder, *LONG, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + PATIENCE
        while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert isinstance(err, bytes)
    found = re.fullmatch(rb"refssm: interrupted at step (\d+): .*goes on\n", err)
    assert found
    assert json.loads(metrics.read_bytes().splitlines()[-1])["step"] == int(found[1])


@pytest.mark.long
def test_a_terminal_shows_the_bar_and_a_pipe_does_not(folder):
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
    arguments = (*DIGITS[:-4], "--steps", 60, "--every", 30)
    with started(folder, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        _, piped = process.communicate(timeout=PATIENCE)
    assert (process.returncode, piped) == (0, b"")
    terminal, theirs = pty.openpty()
    drawn = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    arguments = (*arguments, "--seed", 1)
    with started(
        folder, *arguments, stdout=subprocess.DEVNULL, stderr=theirs, env=drawn
    ) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                more = os.read(terminal, 65536)
            except OSError:  # the process has ended
                break
            if not more:
                break
            seen += more
    os.close(terminal)
    assert process.returncode == 0
    for shown in (b"digits-s5-1", b"loss ", b"accuracy ", b"steps/s", b"/60"):
        assert shown in seen, shown
    assert re.search(rb"\d:\d\d:\d\d", seen)  # the time left
