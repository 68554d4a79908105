"""The start of processes: before the imports of the judge, and what they find first."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from judging import SCAN, plugin

from refssm.command import code
from refssm.conformance.calling.worker import Worker
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.conformance.spreading import processes
from refssm.conformance.spreading.crew import Crew
from refssm.conformance.spreading.processes import Spread

TOLD = """
import os, sys
from refssm.conformance.spreading.crew import Crew

def start(crew, module):
    print(module, "refssm.catalog" in sys.modules, "scipy" in sys.modules, flush=True)
    os._exit(0)

Crew.start = start
from refssm.command import main
main()
"""
HERE = "refssm.conformance.spreading.processes"


class Here(Crew):
    """A crew that does all tasks in this process."""

    def __init__(self):
        super().__init__("none", 1)

    def each(self, function, tasks):
        yield from (function(*task) for task in tasks)


@pytest.mark.parametrize("table", ["", "[project]\nname = 'mine'\n"], ids=["no file", "a file"])
def test_processes_start_before_this_one_imports_the_judge(table, tmp_path):
    (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
    command = [sys.executable, "-c", TOLD, "verify", plugin(tmp_path, SCAN), "--workers", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == f"{HERE} False False\n"


def test_a_cluster_is_asked_after_the_other_options(capfd):
    wrong = ("--subject", "nobody", "--no-config")
    assert code(["verify", *wrong, "--dask", "tcp://127.0.0.1:1"]) == 4
    assert "unknown subject 'nobody'" in capfd.readouterr().err


def test_no_process_imports_the_optimizers_of_scipy():
    code = f"import sys, {HERE}; print('scipy.optimize' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout == "False\n"


def test_a_doubt_about_the_reference_is_found_by_a_task_of_its_own(tmp_path, monkeypatch):
    asked = []

    def doubtful(op):
        asked.append(op.name)
        return "it is wrong"

    monkeypatch.setattr(processes, "certified", doubtful)
    how = {"types": ("float32",), "only_checks": ("value",), "folder": None}
    try:
        with Worker(str(tmp_path / plugin(tmp_path, SCAN))) as worker:
            session = Session(worker, worker.target, Settings(**how), spread=Spread(Here()))
            told = [(result.verdict, result.message) for result in results_of(session)]
    finally:
        processes.clear()
    assert told == [("error", "not judged: it is wrong")]
    assert asked == ["linear_scan"]


def descendants(process):
    """The processes that a process started, and those that they did."""
    tasks = Path(f"/proc/{process}/task")
    told = [(task / "children").read_text(encoding="utf-8").split() for task in tasks.iterdir()]
    mine = [int(child) for words in told for child in words]
    return mine + [other for child in mine for other in descendants(child)]


@pytest.mark.long
@pytest.mark.parametrize("wait", [0.05, 0.1, 0.2])
def test_an_early_ctrl_c_is_heard_by_the_first_process_only(wait, tmp_path):
    if not Path("/proc/self/task").exists():
        pytest.skip("no /proc here: the start of a process is not seen")
    hearing = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{hearing}; from refssm.command import main; main()"
    command = [sys.executable, "-c", code, "verify", plugin(tmp_path, SCAN), "--workers", "2"]
    how = {"cwd": tmp_path, "stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **how) as run:
        while len(descendants(run.pid)) < 4:  # two, and two that track their resources
            assert run.poll() is None
            time.sleep(0.01)
        time.sleep(wait)
        os.killpg(run.pid, signal.SIGINT)
        _, told = run.communicate(timeout=60)
    assert told == "refssm: interrupted\n"
