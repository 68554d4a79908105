"""Programs that the judge runs: how they end, what they leave behind, what they must not do."""

import json
import os
import shlex
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from exchanging import answer, manifest, written
from judging import run

from refssm.conformance.exchange.program import Ended, Programs, Runner

ROOT = Path(__file__).parents[3]
SMALL = ("--profile", "quick", "--dtype", "float32", "--where", "l=1..3", "--where", "n=1..2")
NUMPY = """import sys
import numpy as np
folder = sys.argv[1]
a, b = np.load(folder + "/a.npy"), np.load(folder + "/b.npy")
x = np.empty_like(b)
state = 0
for k in range(b.shape[1]):
    state = a[:, k] * state + b[:, k]
    x[:, k] = state
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small cases of linear_scan."""
    place = tmp_path_factory.mktemp("programs") / "cases"
    return written(place, "--operator", "linear_scan", *SMALL, "--check", "value")


def judge(capfd, folder, program, *options):
    """Exit code and the only result of a shell program."""
    command = f"sh {script(folder, program)} {{case}}"
    options = ("--json", "--exec", command, *options)
    code, out, err = run(capfd, "cases", "judge", folder, *options)
    assert err == ""
    (result,) = json.loads(out)["results"]
    return code, result


def script(folder, program, name="program.sh"):
    """A file with shell commands; $1 is the folder of the case."""
    path = folder.parent / name
    path.write_text(program, encoding="utf-8")
    return path


@pytest.mark.long
def test_a_right_program_passes_and_its_outputs_stay_in_the_folder(capfd, folder, tmp_path):
    (tmp_path / "scan.py").write_text(NUMPY + 'np.save(folder + "/x.npy", x)\n', encoding="utf-8")
    command = f"{sys.executable} {tmp_path / 'scan.py'} {{case}}"
    result, out, err = run(capfd, "cases", "judge", folder, "--exec", command)
    assert (result, err, "grade A" in out) == (0, "", True)
    assert run(capfd, "cases", "judge", folder)[0] == 0
    assert not [*folder.glob("*/declined.txt")]


ENDS = {
    "that writes nothing": ("true", "wrote no x.npy"),
    "that fails": ("echo first; echo no such kernel >&2; exit 3",
                   "ended with exit code 3 (it printed: no such kernel)"),
    "that crashes": ("echo here; kill -SEGV $$", "was killed by SIGSEGV (it printed: here)"),
    "that aborts": ("kill -ABRT $$", "was killed by SIGABRT"),
    "that writes half": ("head -c 100 $1/b.npy > $1/x.npy", "not a readable .npy file"),
    "that writes over its input": ("cp $1/b.npy $1/x.npy; cp $1/case.txt $1/a.npy",
                                   "the call wrote to its input `a`"),
    "that loses its input": ("cp $1/b.npy $1/x.npy; rm $1/a.npy",
                             "the call wrote to its input `a`"),
    "that prints bytes": ("printf '\\377\\033[2J\\n'; exit 1", "exit code 1 (it printed: "),
}  # fmt: skip


@pytest.mark.parametrize(("program", "words"), ENDS.values(), ids=ENDS)
def test_a_program_that_gives_no_result_is_told_as_a_crash_of_a_function_is(
    capfd, folder, program, words
):
    answer(folder)  # answers of an earlier run must not count
    code, result = judge(capfd, folder, program)
    assert (code, result["verdict"] in ("error", "wrong")) == (1, True)
    assert words in result["message"]
    assert "\x1b" not in result["message"]
    inputs = [p.read_bytes() for p in folder.glob("*/a.npy")]
    assert all(data.startswith(b"\x93NUMPY") for data in inputs)
    assert run(capfd, "cases", "judge", folder)[0] in (1, 5)  # its files are still there


def test_a_program_that_hangs_is_killed_with_all_that_it_started(capfd, folder, tmp_path):
    note = tmp_path / "pids"
    program = f"sleep 1000 & echo $! >> {note}; echo waiting; wait"
    started = time.monotonic()
    code, result = judge(capfd, folder, program, "--timeout", 0.3)
    assert time.monotonic() - started < 60  # two time limits, not one per case
    assert (code, result["verdict"]) == (1, "error")
    assert "did not end within 0.3 s" in result["message"]
    pids = [int(pid) for pid in note.read_text(encoding="utf-8").split()]
    assert len(pids) == 2
    for pid in pids:
        for _ in range(100):
            if not running(pid):
                break
            time.sleep(0.05)
        assert not running(pid)


def running(pid):
    """True if a process exists and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")")[-1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_program_whose_child_goes_on_writing_does_not_keep_the_judge(tmp_path):
    runner = Runner(f"sh {script(tmp_path, '(sleep 1000; echo late) & exit 0')} {{case}}", 30)
    runner.run(tmp_path)
    with pytest.raises(Ended, match="exit code 7 "):
        Runner(f"sh {script(tmp_path, 'yes | head -c 3000000; echo last; exit 7')} {{case}}", 30
               ).run(tmp_path)  # fmt: skip


def test_a_program_that_declines_is_skipped_and_that_is_remembered(capfd, folder):
    answer(folder)
    code, result = judge(capfd, folder, "echo n = 16 only; exit 77")
    assert (code, result["verdict"], result["message"][:12]) == (5, "skipped", "declined all")
    assert (
        (next(folder.glob("*/declined.txt"))).read_text(encoding="utf-8").endswith("n = 16 only)\n")
    )
    assert run(capfd, "cases", "judge", folder)[0] == 5
    answer(folder)
    some = "grep -q ' l=1 ' $1/case.txt && cp $1/b.npy $1/x.npy && exit 0; exit 77"
    code, result = judge(capfd, folder, some)
    assert (code, result["verdict"]) == (0, "pass")
    assert 0 < result["declined"] < result["examples"]


def test_a_program_sees_the_arguments_and_no_answer(capfd, folder):
    listed = folder.parent / "listed"
    judge(capfd, folder, f"ls $1 > {listed}; pwd >> {listed}")
    assert listed.read_text(encoding="utf-8").split() == ["a.npy", "b.npy", "case.txt", os.getcwd()]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("./prog", "wanted {case} in it"),
        ("no_such_program {case}", "'no_such_program' does not exist"),
        ("docs {case}", "write ./docs"),
        ("README.md {case}", "is not executable"),
        ("'./prog {case}", "no closing quotation"),
        ("", "nothing to judge"),
    ],
)
def test_a_command_that_cannot_be_run_is_one_sentence(capfd, folder, command, words, monkeypatch):
    monkeypatch.chdir(ROOT)
    result, _, err = run(capfd, "verify", "--exec", command, "--as", "linear_scan")
    assert (result, words in err, err.count("\n")) == (4, True, 1)
    if command:
        result, _, err = run(capfd, "cases", "judge", folder, "--exec", command)
        assert (result, words in err, err.count("\n")) == (4, True, 1)


def test_a_file_that_is_no_program_is_one_sentence(capfd, folder, tmp_path):
    path = tmp_path / "prog"
    path.write_bytes(b"\x7fELF and nothing else")
    result, _, err = run(capfd, "cases", "judge", folder, "--exec", f"{path} {{case}}")
    assert (result, "is not executable" in err) == (4, True)
    path.chmod(0o755)
    result, _, err = run(capfd, "cases", "judge", folder, "--exec", f"{path} {{case}}")
    assert (result, "cannot be run" in err) == (4, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("my_ops.py",), "--as OPERATOR and no target"),
        (("--subject", "scipy"), "no target"),
        (("--framework", "torch"), "--framework works with Python functions only"),
        (("--layout", "x y"), "layout"),
    ],
)
def test_options_that_a_program_has_not_are_one_sentence(capfd, options, words):
    command = ("--exec", "true {case}", "--as", "linear_scan", *options)
    result, _, err = run(capfd, "verify", *command)
    assert (result, words in err, err.count("\n")) == (4, True, 1)
    assert run(capfd, "verify", "--exec", "true {case}")[0] == 4
    assert run(capfd, "verify", "--exec", "true {case}", "--as", "nplr_legs", "--vjp")[0] == 4


@pytest.mark.long
def test_verify_runs_a_program_for_every_check_and_makes_its_failures_smaller(
    capfd, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    copies = f"sh {script(tmp_path, 'cp $1/b.npy $1/x.npy')} {{case}}"  # right only for one step
    options = ("--as", "linear_scan", "--check", "value", "--dtype", "float32")
    result, out, _ = run(capfd, "verify", "--exec", copies, *options, "--where", "n=1..3")
    assert result == 1
    assert "worst x[0, 1, 0]: got " in out
    assert "smallest: l=2 n=1;" in out
    again = next(line for line in out.splitlines() if "again: refssm replay " in line)
    words = shlex.split(again.partition("refssm ")[2])
    assert words[-2:] == ["--exec", copies]
    assert run(capfd, *words)[0] == 1
    right = f"sh {script(tmp_path, 'exit 77', 'declining.sh')} {{case}}"
    assert run(capfd, *words[:-1], right)[0] == 5  # it declines: nothing is left to judge


def test_a_program_is_called_slice_by_slice_where_its_layout_has_no_batch(tmp_path):
    told = {"layout": "l n, l n -> l n"}
    copies = f"sh {script(tmp_path, 'cp $1/b.npy $1/x.npy; cat $1/case.txt')} {{case}}"
    worker = Programs(copies, "linear_scan", 30, told)
    a = np.ones((2, 1, 3), np.float32)
    outcome = worker.call("linear_scan", [a, a], {}, dtype="float32")
    assert outcome.status == "ok"
    assert np.array_equal(outcome.outputs[0], a)


def test_memory_is_not_judged_of_a_program(capfd, tmp_path):
    copies = f"sh {script(tmp_path, 'cp $1/b.npy $1/x.npy')} {{case}}"
    options = ("--as", "linear_scan", "--dtype", "float32", "--check", "strides", "--check",
               "unchanged", "--check", "alias")  # fmt: skip
    result, out, _ = run(capfd, "verify", "-v", "--exec", copies, *options)
    assert (result, out.count("its use of memory cannot be checked")) == (0, 2)
    assert "pass linear_scan/unchanged[float32]" in out
    writes = f"sh {script(tmp_path, 'cp $1/b.npy $1/x.npy; cp $1/case.txt $1/b.npy')} {{case}}"
    result, out, _ = run(capfd, "verify", "--exec", writes, *options)
    assert (result, "the call wrote to its input `b`" in out) == (1, True)


def test_writing_leaves_everything_or_nothing(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ("--operator", "linear_scan", *SMALL, "--check", "value")
    assert run(capfd, "cases", "write", "cases", *options)[0] == 0
    before = (tmp_path / "cases" / "manifest.json").read_text(encoding="utf-8")
    result, _, err = run(capfd, "cases", "write", "cases", *options)
    assert (result, "--force" in err) == (4, True)
    with monkeypatch.context() as patched:
        patched.setattr("refssm.conformance.exchange.writing.Writer._manifest", _interrupted)
        assert run(capfd, "cases", "write", "cases", *options, "--force", "--seed", 1)[0] == 2
        assert run(capfd, "cases", "write", "other", *options)[0] == 2
    assert [p.name for p in tmp_path.iterdir()] == ["cases"]
    assert (tmp_path / "cases" / "manifest.json").read_text(encoding="utf-8") == before
    assert run(capfd, "cases", "write", "cases", *options, "--force", "--seed", 1)[0] == 0
    assert manifest(tmp_path / "cases")["seed"] == 1
    assert [p.name for p in tmp_path.iterdir()] == ["cases"]


def _interrupted(self):
    raise KeyboardInterrupt


def test_a_folder_of_something_else_is_never_written_over(capfd, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years", encoding="utf-8")
    (tmp_path / "file").write_text("", encoding="utf-8")
    options = ("--operator", "linear_scan", *SMALL, "--check", "value", "--force")
    for name in ("mine", "file", "file/in"):
        result, _, err = run(capfd, "cases", "write", tmp_path / name, *options)
        assert (result, err.count("\n")) == (4, 1)
    assert (tmp_path / "mine" / "thesis.txt").read_text(encoding="utf-8") == "years"
    (tmp_path / "empty").mkdir()
    assert run(capfd, "cases", "write", tmp_path / "empty", *options)[0] == 0
    assert run(capfd, "cases", "write", tmp_path / "new" / "er", *options)[0] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "no operator is given"),
        (("--operator", "linear_skan"), "did you mean linear_scan"),
        (
            ("--operator", "linear_scan", "--check", "strides"),
            "strides: files can only be judged by",
        ),
        (("--operator", "linear_scan", "--check", "split"), "split: files can only be judged by"),
        (("--operator", "linear_scan", "--check", "group"), "nothing to write"),
        (("--operator", "linear_scan", "--dtype", "int8"), "int8"),
        (("--operator", "linear_scan", "--layout", "l n, l n -> l n"), "leaves out the axis b"),
        (("--operator", "linear_scan", "--layout", "q"), "--layout"),
        (("--operator", "nplr_legs", "--vjp"), "has no gradient"),
        (("--operator", "linear_scan", "--where", "q=1..2"), "--where"),
        (
            ("--operator", "linear_scan", "--operator", "dense_scan", "--layout", "b"),
            "give only one",
        ),
        (("--operator", "cauchy_kernel", "--dtype", "float32"), "choose one of these types"),
    ],
)
def test_what_cannot_be_written_is_one_sentence_and_no_folder(capfd, tmp_path, options, words):
    result, _, err = run(capfd, "cases", "write", tmp_path / "cases", *options)
    assert (result, words in err, err.count("\n")) == (4, True, 1)
    assert [*tmp_path.iterdir()] == []


def test_control_c_ends_the_program_too(tmp_path):
    pid = tmp_path / "pid"
    runner = Runner(f"sh {script(tmp_path, f'echo $$ > {pid}; sleep 1000')} {{case}}", 30)
    before = signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            runner.run(tmp_path)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not running(int(pid.read_text(encoding="utf-8")))


def _interrupt(number, frame):
    raise KeyboardInterrupt
