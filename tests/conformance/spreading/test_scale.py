"""One process or several: the same verdicts, byte for byte except the seconds."""

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
import warnings
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from judging import LATE, SCAN, plugin, run, without_clock

from refssm.conformance.calling.fingerprint import versions_here
from refssm.conformance.calling.worker import Worker
from refssm.conformance.cases.ranges import Where
from refssm.conformance.checks.piece import Piece
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.conformance.spreading import processes
from refssm.conformance.spreading.crew import Crew, local
from refssm.conformance.spreading.processes import Spread
from refssm.conformance.usage_error import UsageError

BODY = "    x = np.empty_like"


def before(statement):  # at the beginning of the scan
    return SCAN.replace(BODY, f"    {statement}\n{BODY}")


CORE = SCAN.replace("b.shape[-2]", "b.shape[0]").replace("..., k, :", "k")
DECLARED = """from refssm.testing import implements

@implements("linear_scan", layout="l b n, l b n -> l b n",
            only=lambda x: x if len(x["a"]) % 3 else None)
"""
LAYOUT = CORE.replace("def linear_scan", f"{DECLARED}def linear_scan")
VJP = """
def linear_scan_vjp(dx, a, b):
    x = linear_scan(a, b)
    later = np.concatenate([a[..., 1:, :], 0 * a[..., :1, :]], -2)
    db = linear_scan(later[..., ::-1, :], dx[..., ::-1, :])[..., ::-1, :]
    return db * np.concatenate([0 * x[..., :1, :], x[..., :-1, :]], -2), db
"""
TORCH = """
import torch
from refssm.testing import implements

@implements("linear_scan", framework="torch", vjp=True)
def linear_scan(a, b):
    a, b = torch.broadcast_tensors(a, b)
    state, x = torch.zeros_like(b[..., 0, :]), []
    for k in range(b.shape[-2]):
        state = a[..., k, :] * state + b[..., k, :]
        x.append(state)
    return torch.stack(x, -2)
"""
STEP = """
def linear_step(a, b, x):
    return a * x + b
"""
# the text, and the options of its run
TARGETS = {
    "right": (SCAN, {}),
    "wrong in late cases": (LATE, {"shrink": True, "checks": ("value",)}),
    "wrong in the last of many pieces": (before("if b.shape[-2:] == (5, 2): b = 2 * b"),
                                         {"cases": 40, "shrink": True, "checks": ("value",)}),
    "declines": (before("if b.shape[-2] % 3 == 2: raise NotImplementedError('no')"), {}),
    "inaccurate": (SCAN.replace("return x", "return x.astype('f2').astype(x.dtype)"), {}),
    "raises or is wrong": (
        LATE.replace(BODY, f"    assert b.shape[-1] - 3\n{BODY}"), {"shrink": True}),
    "crashes": (before("if b.shape[-2] == 64: import os; os.abort()"), {}),
    "crashes in every call": (before("import os; os.abort()"), {}),
    "crashes where shapes are wrong": (before("if len(a) - len(b): import os; os.abort()"), {}),
    "crashes, with another operator": (
        before("if b.shape[-2] == 64: import os; os.abort()") + STEP, {}),
    "hangs": (before("while b.shape[-2] == 64: pass"), {"timeout": 1.0}),
    "slice by slice": (CORE, {}),
    "layout, declining": (LAYOUT, {}),
    "narrowed": (LATE, {"where": Where(sizes={"l": (60, 70)}), "checks": ("value",)}),
    "wrong gradient": (SCAN + VJP, {"checks": ("gradient",), "types": ("complex64",)}),
    "beside an old one": (LATE, {"against": SCAN, "checks": ("against",)}),
    "beside one that is wrong": (SCAN, {"against": LATE, "checks": ("against",)}),
    "beside one that crashes": (SCAN, {
        "against": before("if b.shape[-2] == 64: import os; os.abort()"), "checks": ("against",)}),
}  # fmt: skip
CHECKS = ("value", "prefix", "shapes")


class Shuffled(Crew):
    """Simulates other processes in this one: pickles all messages and shuffles their order."""

    def __init__(self):
        super().__init__("none", 1)

    def each(self, function, tasks):
        came = [self._one(function, task) for task in [*tasks]]
        random.Random(1).shuffle(came)
        yield from came

    def _one(self, function, task):
        return pickle.loads(pickle.dumps(function(*pickle.loads(pickle.dumps(task)))))


def workers(folder, text, against="", timeout=60.0):
    """The processes of an implementation, and of the old one if there is one."""
    files = [plugin(folder, text), *([plugin(folder, against, "old.py")] if against else ())]
    return [Worker(str(folder / file), timeout=timeout) for file in files]


def results(of, crew=None, *, checks=CHECKS, **settings):
    """The results of a session, without their durations."""
    spread = Spread(crew)
    how = {"types": ("float32",), "only_checks": checks, "cases": 12, "shrink": False}
    asked = Settings(older="old.py", folder=None, **(how | settings))
    session = Session(of[0], of[0].target, asked, *of[1:], spread=spread)
    return [replace(result, seconds=0.0) for result in results_of(session)]


@pytest.fixture(autouse=True)
def no_clock(monkeypatch):
    """The number of tries ends shrinking, also on a busy machine."""
    without_clock(monkeypatch)


@pytest.fixture
def folder(tmp_path):
    yield tmp_path
    processes.clear()


@pytest.mark.long
@pytest.mark.parametrize("name", TARGETS)
def test_pieces_judged_elsewhere_in_any_order_come_to_the_same(name, folder):
    text, settings = TARGETS[name]
    how = {key: value for key, value in settings.items() if key in ("against", "timeout")}
    settings = {key: value for key, value in settings.items() if key not in how}
    with ExitStack() as stack:
        of = [stack.enter_context(w) for w in workers(folder, text, **how)]
        alone = results(of, **settings)
        if any(w.restarts or not w.alive for w in of):  # a process that remains has a history
            of = [stack.enter_context(w) for w in workers(folder, text, **how)]
        assert results(of, Shuffled(), **settings) == alone
    assert alone


def test_the_gradient_of_a_framework_is_the_same(folder):
    pytest.importorskip("torch", reason="no PyTorch here: its gradients are not judged in pieces")
    with workers(folder, TORCH)[0] as worker:
        settings = {"checks": ("value", "gradient"), "cases": 12}
        alone = results([worker], **settings)
        assert results([worker], Shuffled(), **settings) == alone
    assert [r.verdict for r in alone] == ["pass", "pass"]


NOISY = SCAN.replace(
    "return x", "return x + np.random.default_rng().random(x.shape).astype(x.dtype)"
)
ONCE = SCAN.replace("    return x", "    global calls\n    calls += 1\n    return x * (calls < 9)")
ONCE = ONCE.replace("def linear_scan", "calls = 0\n\n\ndef linear_scan")


@pytest.mark.long
@pytest.mark.parametrize("text", [NOISY, ONCE], ids=["noise", "wrong from the ninth call on"])
def test_a_failure_that_is_not_repeated_is_never_lost(text, folder):
    with workers(folder, text)[0] as worker:
        told = results([worker], Shuffled(), checks=("value",))
    assert [r.verdict for r in told] == ["wrong"]


@pytest.mark.long
def test_a_piece_of_other_cases_is_no_verdict(folder):
    stranger = Piece((("of no case", Verdict("F")),))

    class Liar(Shuffled):
        def each(self, function, tasks):
            for came in super().each(function, tasks):
                yield (*came[:2], stranger) if function is processes.judge_piece else came

    with workers(folder, SCAN)[0] as worker:
        told = results([worker], Liar(), checks=("value",))
    assert told
    assert {result.verdict for result in told} == {"error"}
    assert all("gives other cases here than in another process" in r.message for r in told)


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "told"),
    [
        ({"versions": versions_here() | {"numpy": "1.0"}}, "numpy .* but the run began with 1.0"),
        ({"versions": versions_here() | {"refssm": "0"}}, "refssm .* but the run began with 0"),
        ({"own": ("0",)}, "my_ops.py: its code differs from that where the run began"),
        ({"loaded": (("gone.py", None, 60.0, {}),)}, "gone.py: no such file"),
    ],
    ids=["numpy", "refssm", "target", "no target"],
)
def test_another_machine_must_have_the_same_versions_and_files(what, told, folder):
    with workers(folder, SCAN)[0] as worker:
        kit = processes.Kit.of(Session(worker, worker.target))
    with pytest.raises(UsageError, match=f"a process on .*{told}"):
        processes.ReadyChild(replace(kit, **what))


def verdicts(out):  # without their durations
    return [result | {"seconds": 0} for result in json.loads(out)["results"]]


@pytest.mark.long
def test_several_processes_say_what_one_says(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "part.py").write_text(LATE, encoding="utf-8")
    plugin(tmp_path, "from part import linear_scan as scan\n\ndef linear_scan(a, b):\n"
                     "    return scan(a, b)\n")  # fmt: skip
    command = ("verify", "my_ops.py", "--json", "--dtype", "float32", "--check", "value")
    alone, several = (run(capfd, *command, *more) for more in ((), ("--workers", "2")))
    assert (several[0], several[2]) == (1, "")
    assert verdicts(several[1]) == verdicts(alone[1])


def grown(task):
    """After this task, loky finds that its process has grown and replaces it."""
    from joblib.externals.loky import process_executor

    process_executor._MEMORY_LEAK_CHECK_DELAY = 0.0
    process_executor._MAX_MEMORY_LEAK_SIZE = -(2.0**60)
    return task, os.getpid()


@pytest.mark.long
def test_a_process_that_has_grown_is_renewed_without_a_word():
    pytest.importorskip("psutil", reason="without psutil loky does not measure its processes")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")  # an error in loky's own thread would make the test hang
        with local(2) as crew:
            came = [*crew.each(grown, [(task,) for task in range(6)])]
    assert told == []
    assert sorted(task for task, _ in came) == [*range(6)]
    assert len({process for _, process in came}) > 2


@pytest.mark.long
def test_ctrl_c_ends_all_processes_and_leaves_nothing(tmp_path):
    if not Path("/proc/self/stat").exists():
        pytest.skip("no /proc here: which processes are left is not seen")
    endless = before("open('called', 'w').close()\n    while b.shape[-2] > 60: pass")
    plugin(tmp_path, endless)
    hearing = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # in nohup too
    )
    run_it = f"{hearing}; from refssm.command import main; main()"
    command = [sys.executable, "-c", run_it, "verify", "my_ops.py", "--workers", "2"]
    command += ["--check", "value", "--dtype", "float32", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **pipes) as judge:
        for _ in range(600):
            if (tmp_path / "called").exists() and len(in_session(judge.pid)) >= 5:
                break
            time.sleep(0.1)
        time.sleep(0.5)
        os.killpg(judge.pid, signal.SIGINT)  # as a terminal does
        out, err = judge.communicate(timeout=60)
    assert (judge.returncode, err) == (2, "refssm: interrupted\n")
    assert json.loads(out)["interrupted"]
    for _ in range(50):
        if not in_session(judge.pid):
            break
        time.sleep(0.1)
    assert in_session(judge.pid) == []


def in_session(leader):
    """The processes of a session that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, of = path.read_text(encoding="utf-8").rpartition(")")[2].split()[:4]
            if int(of) == leader and state != "Z":
                found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--workers", "0"], "--workers 0: wanted 1"),
        (["--workers", "-2"], "--workers"), (["--workers", "two"], "--workers"),
        (["--workers", "2", "--dask", "127.0.0.1:1"], "leave one out"),
        (["--workers", "2", "--in-process"], "--in-process"),
        (["--resume", "--in-process"], "--in-process"),
        (["--workers", "2", "--inputs", "x.npz"], "leave --workers out"),
        (["--resume", "--inputs", "x.npz"], "leave --resume out"),
        (["--cases", "0"], "--cases"), (["--cases", "many"], "--cases"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_options_that_mean_nothing_are_told_in_one_sentence(options, told, folder, capfd):
    result, out, err = run(capfd, "verify", str(folder / plugin(folder, SCAN)), *options)
    assert (result, out) == (4, "")
    assert err.startswith("refssm: ")
    assert told in err
    assert len(err.splitlines()) == 1


@pytest.mark.long
def test_what_fails_in_one_of_the_first_cases_fails_for_every_number_of_cases(folder, capfd):
    target = str(folder / plugin(folder, before("if b.shape[-2] == 64: b = 2 * b")))
    command = ("verify", target, "--json", "--profile", "quick", "--check", "value")
    first, second = (run(capfd, *command, *more)[1] for more in ((), ("--cases", "40")))
    assert {r["verdict"] for out in (first, second) for r in verdicts(out)} == {"wrong"}
    _, out, _ = run(capfd, *command[:2], *command[3:], "--cases", "12", "--check", "causal")
    assert "cases 12" in out
