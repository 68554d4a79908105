"""Whatever a call does: one sentence, in time, and no process is left."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hostile_plugins import CALLS, LOADS, PLUGIN
from judging import plugin
from survivors import PATIENCE

from refssm.conformance.calling.processes import keeper, kept
from refssm.conformance.calling.worker import Worker
from refssm.conformance.usage_error import UsageError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
LIMIT, MORE = 2.0, 5.0  # seconds
ROOT = Path(__file__).parents[3]
ONE, TWO = ([np.ones((n, 1), np.float32)] * 2 for n in (1, 2))


def called(folder, body):
    """The outcome of the hostile call, which follows a usual one, and its seconds."""
    name = plugin(folder, PLUGIN.format(body=body))
    with Worker(name, timeout=LIMIT) as worker:
        worker.timeout = PATIENCE
        assert worker.call("linear_scan", TWO, {}).status == "ok"
        worker.timeout, started = LIMIT, time.monotonic()
        outcome = worker.call("linear_scan", ONE, {})
        return outcome, time.monotonic() - started


@pytest.mark.long
@pytest.mark.parametrize("what", CALLS)
def test_a_call_ends_in_time_with_a_sentence_and_leaves_no_process(what, tmp_path, marked):
    body, status, words = CALLS[what]
    outcome, seconds = called(tmp_path, body)
    assert marked.running() == {}
    assert outcome.status == status
    assert words in outcome.message
    assert len(outcome.message.splitlines()) <= 1
    assert "Traceback" not in outcome.message
    assert seconds < LIMIT + MORE


@pytest.mark.long
@pytest.mark.parametrize("what", LOADS)
def test_a_plugin_that_is_loaded_leaves_no_process(what, tmp_path, marked):
    body, words = LOADS[what]
    name = plugin(tmp_path, PLUGIN.format(body="pass") + body)
    with pytest.raises(UsageError) as refused:
        Worker(name, timeout=LIMIT / 4 if "2.5" in words else PATIENCE)
    assert marked.running() == {}
    assert words in str(refused.value)


@pytest.mark.long
def test_the_process_that_judges_stays_as_it_was(tmp_path, marked):
    own = subprocess.Popen(["sleep", "1000"])
    try:
        called(tmp_path, "daemon()")
        assert [*marked.running()] == [own.pid]
        is_subreaper = ctypes.c_int(-1)
        assert ctypes.CDLL(None).prctl(37, ctypes.byref(is_subreaper), 0, 0, 0) == 0
        assert is_subreaper.value == 0
    finally:
        own.kill()
        own.wait()


@pytest.mark.long
def test_without_a_subreaper_the_process_group_ends_and_a_daemon_does_not_keep_the_judge(
    tmp_path, marked, monkeypatch
):
    program = tmp_path / "keeper_elsewhere.py"
    program.write_text(
        f"import runpy, sys\nsys.platform = 'darwin'\n"
        f"runpy.run_path({keeper.__file__!r}, run_name='__main__')\n", encoding="utf-8",
    )  # fmt: skip
    monkeypatch.setattr(kept, "PROGRAM", program)
    outcome, seconds = called(tmp_path, "os.fork(); os.system('sleep 1000 &'); sleep()")
    assert (outcome.status, marked.running()) == ("hung", {})
    assert seconds < LIMIT + MORE
    outcome, seconds = called(tmp_path, "ctypes.CDLL(None).fork() or os.setsid(); sleep()")
    assert outcome.status == "hung"
    assert seconds < LIMIT + MORE
    assert len(marked.running()) == 1  # as docs/judge_checks.md says


STARTED = """
from pathlib import Path
daemon()
subprocess.Popen(SLEEP, start_new_session=True)
Path("started").touch()
"""
CALL = "sleep()"


def verifying(folder, body, *options):
    """`refssm verify` of a plug-in that starts a daemon and another process, as it has started."""
    name = plugin(folder, PLUGIN.format(body=body) + STARTED)
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from refssm.command import main; main()"
    words = ["verify", name, "--check", "value", "--dtype", "float32", "--no-config", *options]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], cwd=folder, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    until = time.monotonic() + 6 * PATIENCE
    while not (folder / "started").exists() and time.monotonic() < until:
        time.sleep(0.05)
    return process


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "options", "code"),
    [("pass", (), 0), ("b = 2 * b", (), 1), ("sleep()", ("--timeout", "1"), 1)],
    ids=["right", "wrong", "hanging"],
)
def test_nothing_survives_a_run_that_ends_by_itself(body, options, code, tmp_path, marked):
    process = verifying(tmp_path, body, *options)
    out, _ = process.communicate(timeout=12 * PATIENCE)
    assert (process.returncode, marked.running()) == (code, {}), out
    assert "Traceback" not in out


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_nothing_survives_a_run_that_is_ended(number, workers, tmp_path, marked):
    process = verifying(tmp_path, "sleep()", "--timeout", "60", "--workers", workers)
    process.send_signal(number)
    out, _ = process.communicate(timeout=6 * PATIENCE)
    assert marked.soon() == {}
    assert "Traceback" not in out
    assert process.returncode == (-9 if number == signal.SIGKILL else 2)
