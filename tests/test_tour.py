"""Every command line of the README's tour runs in the environment that the README makes."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from judging import LATE, SCAN, plugin, run

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOUR = README.split("## A tour\n\n```\n")[1].partition("```")[0].splitlines()
LINES = [line.partition("  #")[0].partition(" # ")[0].strip() for line in TOUR]
NOT_THERE = ("flint", "gmpy2", "dask", "distributed", "torch", "jax", "cupy")  # of other extras
RIGHT = SCAN.replace(
    "def linear_scan",
    "from refssm.testing import implements\n\n"
    '@implements("linear_scan", dtypes=("float32", "complex64"))\ndef linear_scan',
)
SCRIPT = f"#!/bin/sh\nexec '{sys.executable}' prog.py \"$1\"\n"
PROGRAM = """import sys
import numpy as np
case = sys.argv[1]
a, b = np.load(case + "/a.npy"), np.load(case + "/b.npy")
x = np.empty_like(b)
state = 0
for k in range(b.shape[1]):
    state = x[:, k] = a[:, k] * state + b[:, k]
np.save(case + "/x.npy", x)
"""
FEWER = {  # what makes a line shorter, not another
    "--exec": ["--check", "value", "--dtype", "float32", "--profile", "quick"],
    "bench": ["--seconds", "0"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch, capfd):
    """The files that the tour's names stand for, and only the libraries of the README."""
    pytest.importorskip("matplotlib", reason="the tour draws: pip install -e '.[report]'")
    pytest.importorskip("jinja2", reason="the tour writes a page: pip install -e '.[report]'")
    for name in NOT_THERE:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, RIGHT + SCAN.replace("def linear_scan", "def my_scan"))
    for name in ("new.py", "old.py"):
        plugin(tmp_path, RIGHT, name)
    a = np.full((2, 5, 3), 0.5, np.float32)
    np.savez("batch.npz", a=a, b=a)
    plugin(tmp_path, PROGRAM, "prog.py")
    plugin(tmp_path, SCRIPT, "prog")
    Path("prog").chmod(0o755)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/vectors").symlink_to(ROOT / "tests/vectors")
    return tmp_path


def test_the_environment_of_the_readme_has_the_extras_of_the_tour():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (extra,) = re.findall(r"^pip install -e '\.\[(\w+)\]'$", LINES[0])
    assert re.search(rf"^\.venv/installed:.*\n\t\$\(call install,{extra}\)$", makefile, re.M)
    assert re.search(r"^verify: \.venv/installed", makefile, re.M)


def test_the_tour_has_every_subcommand_that_a_user_starts_with():
    used = {line.split()[1] for line in LINES if line.startswith("refssm ")}
    assert used == {
        *["list", "show", "verify", "replay", "vectors", "plot", "experiment", "bench", "new"],
        *["find", "doctor"],
    }
    assert len(LINES) == len({*LINES}) > 15


@pytest.mark.long
@pytest.mark.parametrize("line", LINES[1:])
def test_a_line_of_the_tour_runs(folder, capfd, line):
    program, *words = shlex.split(line)
    if program == "python":
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, *words], check=True, env=environment, capture_output=True)
        return
    assert program == "refssm"
    if words[0] == "replay":
        words[1] = kept_failure(folder, capfd)
    if "--html" in words:  # pictures are of failures
        plugin(folder, LATE)
        words += FEWER["--exec"]
    words += FEWER.get(" ".join(words[1:2]), [])
    before = {*folder.iterdir()}
    code, out, err = run(capfd, *words)
    assert (code, err) == (int("--html" in words), ""), out
    made = {path.name for path in {*folder.iterdir()} - before}
    assert out or made
    for name in ("report.html", "memory_legs.png"):
        assert (name in words or name in out) == (name in made)
    if "--json" in words:
        assert json.loads(out)["results"]


def kept_failure(folder, capfd):
    """The file of a failure that `my_ops.py` no longer has."""
    plugin(folder, LATE, "late.py")
    code, out, _ = run(capfd, "verify", "late.py", "--check", "value", "--dtype", "float32")
    assert code == 1
    return re.findall(r"refssm replay (\S+\.npz)", out)[0]
