"""A run killed at random moments, time and again, ends as the uninterrupted one, bit for bit."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from training.small import setup
from training.test_run import same, without_times

from refssm.training import checkpoint
from refssm.training.run import Run

TESTS = Path(__file__).parents[1]
LIFE = 0.25  # seconds within which a process is killed after its first steps may begin


def process(folder, steps):
    """The run in another process, once it is about to train."""
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    started = subprocess.Popen(
        [sys.executable, "-m", "training.killed", str(folder), str(steps)],
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    assert started.stdout is not None
    assert started.stdout.readline() == b"ready\n"
    return started


def killed(folder, steps, rng):
    """Kill it at a random moment; whether it was writing a checkpoint, and the step of the last."""
    with process(folder, steps) as run:
        time.sleep(rng.uniform(0, LIFE))
        run.kill()
    assert run.returncode == -9, "it ended before it was killed"
    half = [*folder.glob(checkpoint.PARTS)]
    arrays, facts = checkpoint.read(folder / "checkpoint.safetensors")  # readable each time
    assert len(half) <= 1
    assert arrays
    return bool(half), facts["step"]


@pytest.mark.long
def test_a_run_killed_twice_ends_as_the_uninterrupted_one(tmp_path):
    ends_alike(tmp_path, kills=2, steps=250, seed=0)


@pytest.mark.long
def test_a_run_killed_thirty_times_ends_as_the_uninterrupted_one(tmp_path, record_property):
    half, steps = ends_alike(tmp_path, kills=30, steps=6000, seed=1)
    record_property("while writing", half)
    assert len(set(steps)) > 15  # the moments were spread over the run


def ends_alike(tmp_path, kills, steps, seed):
    rng, found = random.Random(seed), []
    for _ in range(kills):
        found.append(killed(tmp_path / "killed", steps, rng))
    with process(tmp_path / "killed", steps) as last:
        last.wait()
    assert last.returncode == 0
    whole, resumed = (
        Run(setup(steps, dropout=0.2), tmp_path / name, 10**9) for name in ("whole", "killed")
    )
    whole.begin()
    for _ in whole.steps():
        pass
    resumed.resume()
    assert same(resumed.state, whole.state)
    tests = ("test_loss", "test_accuracy")  # which the killed run has after every step
    lines = [{k: v for k, v in line.items() if k not in tests} for line in without_times(resumed)]
    alone = [{k: v for k, v in line.items() if k not in tests} for line in without_times(whole)]
    assert lines == alone
    assert [*(tmp_path / "killed").glob(checkpoint.PARTS)] == []
    return sum(half for half, _ in found), [step for _, step in found]
