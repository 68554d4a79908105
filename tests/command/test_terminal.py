"""On a terminal: progress, colours, Ctrl-C. Uses a pseudo-terminal and real signals."""

import json
import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from judging import SCAN, plugin

from refssm.conformance.diagnosis.shrinking import SHRINK_TRIES

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
ROOT = Path(__file__).parents[2]
ONE = ("--check", "alias", "--dtype", "float32", "--no-config")
WRONG = SCAN.replace("return x", "return x * (1 + (x.shape[-2] > 2))")
HIDDEN, SHOWN, COLOUR, BAR = b"\x1b[?25l", b"\x1b[?25h", b"\x1b[3", "━".encode()
PATIENCE = 60.0  # after so many seconds a run counts as hanging
PLAIN = {"TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
UNSET = ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "CI")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in UNSET:
        monkeypatch.delenv(name, raising=False)
    plugin(tmp_path, SCAN)
    return tmp_path


def on_terminal(*arguments, interrupt=None, piped=False, **variables):
    """Exit code, text on the terminal and in the pipe; sends Ctrl-C as soon as a file exists."""
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", CONTROLLING, "verify", *map(str, arguments)],
        stdin=theirs,
        stdout=subprocess.PIPE if piped else theirs,
        stderr=theirs,
        env={**os.environ, **PLAIN, **variables},
        start_new_session=True,
    )
    os.close(theirs)
    seen, deadline = b"", time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 0.1)
        try:
            more = os.read(terminal, 65536) if ready else b""
        except OSError:  # the last process that had it open has ended
            break
        seen += more
        if interrupt and interrupt.exists():
            os.write(terminal, b"\x03")
            interrupt = None
        if not more and process.poll() is not None:
            break
    process.kill()
    out, _ = process.communicate()
    os.close(terminal)
    return process.returncode, seen, out


# makes the terminal the controlling one of the session: Ctrl-C then sends SIGINT to all of it
CONTROLLING = """
import fcntl, signal, termios
signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup has it ignored
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from refssm.command import main
main()
"""


def shown(seen):
    """The text that stays visible, without erased lines."""
    lines = seen.decode().replace("\r\n", "\n").split("\n")
    kept = [re.sub(r".*\r", "", re.sub(r".*\x1b\[1A\x1b\[2K", "", line)) for line in lines]
    return "\n".join(re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", line) for line in kept)


@pytest.mark.long
def test_a_terminal_shows_a_bar_that_is_gone_when_a_line_is_printed(folder):
    plugin(folder, WRONG)
    call = ("my_ops.py", "--check", "value", "--dtype", "float32", "--no-config")
    result, seen, _ = on_terminal(*call)
    assert result == 1
    assert COLOUR in seen
    assert BAR in seen
    assert seen.rindex(SHOWN) > seen.rindex(HIDDEN)  # the cursor is back
    parts = ("importing my_ops.py", "the first calls", "checking the reference", "float32] ", "/25")
    for part in (
        *parts,
        "float32]: making the case smaller",
        f"/{SHRINK_TRIES}",
        "float32]: explaining the failure",
    ):
        assert part.encode() in seen
    lines = shown(seen).splitlines()
    assert any(line.startswith("FAIL linear_scan/value[float32]") for line in lines)
    assert any(line.startswith("WRONG: linear_scan (my_ops.py): ") for line in lines)
    assert not any(line.startswith("pass") for line in lines)


@pytest.mark.long
def test_json_goes_into_a_pipe_and_the_bar_to_the_terminal_without_colours_if_so_wanted(folder):
    result, seen, out = on_terminal("my_ops.py", *ONE, "--json", piped=True, NO_COLOR="1")
    assert result == 0
    assert BAR in seen
    assert COLOUR not in seen
    assert b"\x1b[9" not in seen
    assert b"\x1b" not in out
    assert json.loads(out)["results"][0]["verdict"] == "pass"


@pytest.mark.long
def test_a_dumb_terminal_has_no_bar_and_no_colours(folder):
    result, seen, _ = on_terminal("my_ops.py", *ONE, TERM="dumb")
    assert result == 0
    assert b"\x1b" not in seen
    assert BAR not in seen


@pytest.mark.long
def test_colours_may_be_forced_into_a_pipe_and_the_bar_may_not(folder):
    environment = {**os.environ, **PLAIN, "FORCE_COLOR": "1"}
    command = [sys.executable, "-m", "refssm", "verify", "my_ops.py", *ONE]
    ran = subprocess.run(command, env=environment, capture_output=True)
    assert ran.returncode == 0
    assert ran.stderr == b""
    assert BAR not in ran.stdout
    assert b"\x1b[32mpass" in ran.stdout


SLOW = """
import os, time
from pathlib import Path
Path("child").write_text(str(os.getpid()))

def linear_scan(a, b):
    x = ours(a, b)
    if b.shape[-2] > 100:
        print("now", flush=True)
        Path("long").touch()
        time.sleep(1000)
    return x
""" + SCAN.replace("def linear_scan", "def ours")


def ended(pid):
    """True if a process has ended, or ends within a moment."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.long
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["lines", "json"])
def test_ctrl_c_prints_what_was_found_and_leaves_no_child_and_no_half_file(folder, form):
    plugin(folder, WRONG, "first.py")
    plugin(folder, SLOW, "slow.py")
    call = ("first.py", "slow.py", "--check", "value", "--dtype", "float32", "--no-config")
    more = ("--profile", "quick", "--write-known", "known.toml", *form)
    result, seen, out = on_terminal(
        *call, *more, interrupt=folder / "long", piped=bool(form), COLUMNS="300"
    )
    text = shown(seen)
    assert result == 2
    assert "refssm: interrupted" in text
    assert "Traceback" not in text
    assert ended(int((folder / "child").read_text(encoding="utf-8")))
    names = {path.name for path in folder.rglob("*") if "__pycache__" not in path.parts}
    saved = {name for name in names if name.endswith(".npz") or name.startswith("repro_")}
    left = {"first.py", "slow.py", "my_ops.py", "child", "long", ".refssm", ".gitignore"}
    assert names - {"__pycache__"} - saved == left
    assert len(saved) == 2  # the arguments, and the script that uses them
    if form:
        document = json.loads(out)
        assert document["interrupted"]
        assert [line["implementation"] for line in document["results"]] == ["first.py"]
    else:
        assert "FAIL linear_scan/value[float32]" in text
        assert "INTERRUPTED: WRONG so far: linear_scan (first.py): " in text


@pytest.mark.long
def test_to_be_terminated_is_to_be_interrupted(folder):
    plugin(folder, SLOW, "slow.py")
    call = [sys.executable, "-m", "refssm", "verify", "slow.py", "--check", "value", "--no-config"]
    process = subprocess.Popen(call, env={**os.environ, **PLAIN}, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + PATIENCE
        while not (folder / "long").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert (process.returncode, err.splitlines()[-1]) == (2, b"refssm: interrupted")
    assert b"Traceback" not in err
    assert ended(int((folder / "child").read_text(encoding="utf-8")))


@pytest.mark.long
def test_ctrl_c_while_a_module_is_imported_is_an_interruption(folder):
    text = "from pathlib import Path\nimport time\nPath('long').touch()\ntime.sleep(1000)\n"
    plugin(folder, text)
    result, seen, _ = on_terminal("my_ops.py", *ONE, interrupt=folder / "long")
    assert result == 2
    assert shown(seen).strip().splitlines()[-1] == "refssm: interrupted"
