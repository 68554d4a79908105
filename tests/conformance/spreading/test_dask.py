"""`--dask`: a real cluster gives the verdicts of one process, even if a worker is killed."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from judging import LATE, SCAN, plugin, run

pytest.importorskip("distributed", reason="no Dask here: nothing is judged on a cluster")
COMMAND = ("verify", "my_ops.py", "--json", "--check", "value", "--dtype", "float32")
DASK = [sys.executable, "-m", "dask"]


@contextmanager
def started(folder, *command):
    """Start a process of the cluster."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    with subprocess.Popen([*DASK, *command], **quiet) as process:
        try:
            yield process
        finally:
            process.kill()


def worker(folder):
    """Start a worker without a nanny, so that a killed one does not restart."""
    place = ("--scheduler-file", "scheduler.json", "--host", "127.0.0.1", "--no-dashboard")
    more = ("--nthreads", "1", "--no-nanny", "--local-directory", str(folder))
    return started(folder, "worker", *place, *more)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler on the loopback interface: its folder and its address."""
    folder = tmp_path_factory.mktemp("cluster")
    place = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    file = folder / "scheduler.json"
    with started(folder, "scheduler", *place, "--scheduler-file", str(file)):
        for _ in range(600):
            if file.exists() and file.read_text(encoding="utf-8").endswith("}"):
                break
            time.sleep(0.1)
        yield folder, json.loads(file.read_text(encoding="utf-8"))["address"]


@contextmanager
def workers(cluster, count):
    """Start `count` workers and wait for them; their processes."""
    from distributed import Client

    folder, address = cluster
    with worker(folder) as first, worker(folder) as second:
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=60)
        yield first, second
    with Client(address, set_as_default=False) as client:
        for _ in range(600):
            if not client.scheduler_info(n_workers=-1)["workers"]:
                break
            time.sleep(0.1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "refssm.conformance.running.patience.EXPLAIN", np.inf
    )  # the number of tries ends shrinking, not a time limit
    return tmp_path


def verdicts(out):
    return [result | {"seconds": 0} for result in json.loads(out)["results"]]


@pytest.mark.long
def test_a_cluster_says_what_one_process_says_also_where_a_worker_is_killed(cluster, folder, capfd):
    crashing = SCAN.replace("    x =", "    if b.shape[-2] == 64: import os; os.abort()\n    x =")
    texts = {"late.py": LATE, "crashing.py": crashing}
    with workers(cluster, 2) as (_, second):
        for name, text in texts.items():
            plugin(folder, text, name)
            command = ("verify", name, *COMMAND[2:])
            alone, spread = (run(capfd, *command, *o) for o in ((), ("--dask", cluster[1])))
            assert spread[0] == alone[0]
            assert verdicts(spread[1]) == verdicts(alone[1])
        # the scan records its calls; at the 31st, one of the two workers is killed
        telling = "    with open('calls', 'a') as calls:\n        calls.write('x')\n    x ="
        plugin(folder, SCAN.replace("    x =", telling, 1))
        command = [*COMMAND, "--cases", "100"]
        spread = [sys.executable, "-m", "refssm", *command, "--dask", cluster[1]]
        with subprocess.Popen(
            spread, stdout=subprocess.PIPE, encoding="utf-8", cwd=folder
        ) as judge:
            while judge.poll() is None and size("calls") < 31:
                time.sleep(0.01)
            second.kill()
            assert size("calls") < 100, "all was done before the worker was killed"
            out, _ = judge.communicate(timeout=120)
        assert judge.returncode == 0
        assert verdicts(out) == verdicts(run(capfd, *command)[1])


def size(name):
    return Path(name).stat().st_size if os.path.exists(name) else 0


def test_a_cluster_without_workers_is_told(cluster, folder, capfd):
    plugin(folder, SCAN)
    result, out, err = run(capfd, *COMMAND, "--dask", cluster[1])
    assert (result, out) == (4, "")
    assert err == f"refssm: --dask '{cluster[1]}': the cluster has no workers\n"


@pytest.mark.parametrize(
    "address", ["", "nonsense", "tcp://", "http://x/", "a b", "tls://127.0.0.1:8", "inproc://x"]
)
def test_an_address_that_is_none_is_told_in_one_sentence(address, folder, capfd):
    plugin(folder, SCAN)
    result, out, err = run(capfd, *COMMAND, "--dask", address)
    assert (result, out) == (4, "")
    assert err.startswith(f"refssm: --dask '{address}': no scheduler answers: ")
    assert len(err.splitlines()) == 1


def test_nobody_at_the_address_is_told(folder, capfd, monkeypatch):
    monkeypatch.setattr("refssm.conformance.spreading.processes.SECONDS", 0.3)
    plugin(folder, SCAN)
    result, out, err = run(capfd, *COMMAND, "--dask", "tcp://127.0.0.1:1")
    assert (result, out) == (4, "")
    assert "--dask 'tcp://127.0.0.1:1': no scheduler answers: " in err  # or a reason, or a duration
    assert not err.rstrip().endswith(":")


def test_without_dask_the_extra_is_named(folder, capfd, monkeypatch):
    monkeypatch.setattr("refssm.conformance.spreading.processes.find_spec", lambda name: None)
    plugin(folder, SCAN)
    result, _, err = run(capfd, *COMMAND, "--dask", "127.0.0.1:1")
    assert (result, err) == (
        4,
        "refssm: --dask needs Dask: pip install 'dask[distributed]'\n",
    )
