"""What Windows and macOS lack is replaced: simulated here by taking it away."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from judging import LATE, SCAN, plugin, run

from refssm.conformance.calling import links
from refssm.conformance.calling.processes import parent
from refssm.conformance.calling.worker import Worker
from refssm.conformance.exchange.program import Ended, Runner
from refssm.conformance.usage_error import UsageError

ROOT = Path(__file__).parents[3]
FEW = ("--check", "value", "--dtype", "float32", "--profile", "quick")
NO_LONG_DOUBLE = """
import sys
import numpy as np
np.longdouble, np.clongdouble = np.float64, np.complex128
from refssm.command import main
main()
"""


UNIX = ("fcntl", "grp", "pwd", "resource", "termios")


def test_the_command_and_the_judge_are_imported_without_the_modules_of_unix():
    text = f"import sys; sys.modules.update(dict.fromkeys({UNIX})); "
    text += "import refssm.command.application, refssm.conformance.exchange.program"
    text += ", refssm.conformance.calling.child, refssm.conformance.spreading.processes"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.fixture
def without_descriptors(monkeypatch, tmp_path):
    """No `pass_fds`, no `os.pread`: as on Windows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(links, "inherits_descriptors", lambda: False)
    monkeypatch.delattr(os, "pread", raising=False)
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize(("text", "code"), [(SCAN, 0), (LATE, 1)], ids=["right", "wrong"])
def test_a_child_without_descriptors_is_judged_as_any_other(capfd, without_descriptors, text, code):
    noisy = text.replace("    state = 0", "    print('Σ')\n    state = 0")
    assert run(capfd, "verify", plugin(without_descriptors, noisy), *FEW)[0] == code


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("print('why'); os._exit(7)", "ended the process with exit code 7 (it printed: why)"),
        ("while True: pass", "did not return within"),
    ],
)
def test_a_child_without_descriptors_that_ends_is_an_error(
    capfd, without_descriptors, body, sentence
):
    text = f"import os\ndef linear_scan(a, b):\n    {body}\n"
    name = plugin(without_descriptors, text.replace("os._exit", "sys.stdout.flush(); os._exit"))
    Path(name).write_text("import sys\n" + Path(name).read_text("utf-8"), "utf-8")
    result, out, _ = run(capfd, "verify", name, *FEW, "--timeout", 2, "--json")
    (line,) = json.loads(out)["results"]
    assert (result, line["verdict"]) == (1, "error")
    assert sentence in line["message"]


def test_a_child_that_ends_before_it_joins_is_a_sentence(monkeypatch, without_descriptors):
    monkeypatch.setattr(links, "MODULE", "no.such.module")
    with pytest.raises(UsageError, match=r"ended the process with exit code 1 .it printed: .*no"):
        Worker(plugin(without_descriptors, SCAN))


def test_a_stranger_at_the_socket_is_sent_away(without_descriptors, monkeypatch):
    monkeypatch.setattr(links.secrets, "token_hex", lambda: "right")
    monkeypatch.setattr(links, "compare_digest", lambda given, wanted: given == b"other")
    monkeypatch.setattr(subprocess, "Popen", stranger_then_gone)
    link = links.start(None)
    with pytest.raises((EOFError, OSError)):
        link.channel.receive()
    link.close()


def stranger_then_gone(command, **_):
    """A process that sends a wrong secret and ends."""
    program = (
        "import socket, sys\n"
        "socket.create_connection(('127.0.0.1', int(sys.argv[1]))).sendall(b'wrong')"
    )
    return real_popen([sys.executable, "-c", program, command[-1]])


real_popen = subprocess.Popen


def test_a_program_that_hangs_is_ended_where_there_are_no_process_groups(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "killpg", raising=False)
    program = f"{sys.executable} -c 'import time; time.sleep(1000)' {{case}}"
    started = time.monotonic()
    with pytest.raises(Ended, match=r"did not end within 0.5 s"):
        Runner(program, 0.5).run(tmp_path)
    assert time.monotonic() - started < 100


def test_a_child_ends_itself_where_there_is_no_sigkill(monkeypatch):
    sent = []
    monkeypatch.delattr(signal, "SIGKILL", raising=False)
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    parent._watch(-1)
    assert sent == [(os.getpid(), signal.SIGTERM)]


def without_long_double(folder, *arguments):
    """Exit code and what is printed where long double is double: macOS on ARM, Windows."""
    ran = subprocess.run(
        [sys.executable, "-c", NO_LONG_DOUBLE, *arguments], cwd=folder, capture_output=True,
        encoding="utf-8", env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.long
def test_the_judge_works_where_long_double_is_double(tmp_path):
    quick = ("--profile", "quick", "--dtype", "float64")
    assert without_long_double(tmp_path, "verify", plugin(tmp_path, SCAN), *quick)[0] == 0
    late = plugin(tmp_path, LATE, "late.py")
    assert without_long_double(tmp_path, "verify", late, "--check", "value")[0] == 1


@pytest.mark.long
def test_what_needs_long_double_says_so_in_a_sentence(tmp_path):
    a = np.full((30000, 2), 0.5)
    np.savez(tmp_path / "large.npz", a=a, b=a)
    name = plugin(tmp_path, SCAN)
    code, printed = without_long_double(tmp_path, "verify", name, "--inputs", "large.npz")
    assert code == 4
    assert "linear_scan: 60000 numbers are too many for the oracle" in printed
