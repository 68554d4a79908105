"""Whatever a program does: one sentence, in time, and nothing that it started is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from judging import run
from survivors import PATIENCE

from refssm.conformance.exchange.program import Ended, Runner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
LIMIT, MORE = 1.0, 5.0  # seconds
ROOT = Path(__file__).parents[3]
DAEMON = "(setsid sleep 1000 &)"  # its parent ends at once
# the program, how its run ends (None: as it should), and words of the message
PROGRAMS = {
    "a daemon": (DAEMON, None, ""),
    "a process in the background": ("sleep 1000 &", None, ""),
    "a daemon, then a hang": (f"{DAEMON}; sleep 1000", "hung", "did not end within 1 s"),
    "a daemon, then a failure": (f"{DAEMON}; echo no; exit 3", "raised", "code 3 (it printed: no)"),
    "a daemon, then a refusal": (f"{DAEMON}; exit 77", "declined", ""),
    "a daemon, then a crash": (f"{DAEMON}; kill -SEGV $$", "crashed", "was killed by SIGSEGV"),
    "a hang without SIGTERM": ("trap '' TERM INT HUP; sleep 1000", "hung", "did not end within"),
    "a stop": ("kill -STOP $$", "hung", "did not end within 1 s"),
    "a kill of its group": ("kill -9 0", "crashed", "was killed by SIGKILL"),
    "a kill of its parent": ("kill -9 $PPID; sleep 1000", "crashed", "lost the process that would"),
    "much output": ("yes", "hung", "did not end within 1 s (it printed: y)"),
    "a question": ("read x && exit 1; exit 0", None, ""),
}


def command(folder, program):
    """A command of --exec that runs a shell program."""
    (folder / "program.sh").write_text(program, encoding="utf-8")
    return f"sh {folder / 'program.sh'} {{case}}"


def others(marked):
    """What runs beside the keeper, which waits for the next run."""
    return [words for words in marked.running().values() if "keeper.py" not in " ".join(words)]


@pytest.mark.long
@pytest.mark.parametrize("what", PROGRAMS)
def test_a_run_leaves_nothing_however_it_ends(what, tmp_path, marked):
    program, status, words = PROGRAMS[what]
    runner, started = Runner(command(tmp_path, program), LIMIT), time.monotonic()
    for _ in range(2):  # the keeper is used again
        came, message = None, ""
        try:
            runner.run(tmp_path)
        except Ended as ended:
            came, message = ended.status, str(ended)
        assert others(marked) == []
        assert (came, words in message) == (status, True)
    assert time.monotonic() - started < 2 * (LIMIT + MORE)
    del runner
    assert marked.soon() == {}


def test_a_keeper_that_is_gone_before_it_answers_is_told_and_replaced(tmp_path, marked):
    runner = Runner(command(tmp_path, "exit 0"), LIMIT)
    runner.run(tmp_path)
    (kept,) = marked.running()
    os.kill(kept, signal.SIGKILL)
    assert marked.soon() == {}
    with pytest.raises(Ended, match="lost the process that would end what it starts"):
        runner.run(tmp_path)
    runner.run(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_judge_that_is_ended_leaves_nothing_of_a_program(number, tmp_path, marked):
    program = command(tmp_path, f"{DAEMON}; touch {tmp_path / 'started'}; sleep 1000")
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from refssm.command import main; main()"
    words = ["verify", "--exec", program, "--as", "linear_scan", "--check", "value", "--no-config"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    until = time.monotonic() + 6 * PATIENCE
    while not (tmp_path / "started").exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(number)
    out, _ = process.communicate(timeout=6 * PATIENCE)
    assert marked.soon() == {}
    assert "Traceback" not in out
    assert process.returncode == (-9 if number == signal.SIGKILL else 2)


@pytest.mark.long
def test_the_report_says_which_command_ran_and_not_numpy(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = command(tmp_path, "exit 77")
    options = ("--as", "linear_scan", "--check", "value", "--dtype", "float32")
    _, out, _ = run(capfd, "verify", "--exec", program, *options)
    assert f"runs {program} for each call, with arrays in .npy files" in out.splitlines()
    assert "numpy arrays" not in out
