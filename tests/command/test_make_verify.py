"""`make verify` is one screen: its commands are run here, and their lines counted."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from judging import run

ROOT = Path(__file__).parents[2]
SCREEN = 40  # lines


def commands():
    """The commands of `make verify`, without those that install."""
    done = subprocess.run(
        ["make", "--dry-run", "--old-file=.venv/installed", "verify"],
        cwd=ROOT, capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    return [line for line in done.stdout.splitlines() if "echo" in line or "verify" in line]


@pytest.mark.long
def test_make_verify_prints_one_screen_with_three_mirrors_scipy_and_a_wrong_scan(
    capfd, monkeypatch, tmp_path
):
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    lines, codes = [], []
    told = commands()
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    monkeypatch.chdir(tmp_path)
    for command in told:
        if command.startswith("echo"):
            lines.append(command)
            continue
        arguments = shlex.split(command.partition("; test")[0])
        code, out, err = run(capfd, *arguments[arguments.index("verify") :])
        lines += [*out.splitlines(), *err.splitlines()]
        codes.append(code)
    assert codes == [0, 1]
    assert len(lines) <= SCREEN
    assert sum(line.startswith("pass ") for line in lines) == 4
    assert any("looks like: the carry lost at chunks of 64" in line for line in lines)
    versions = [line for line in lines if line.startswith("refssm ")]
    assert len(versions) == 2  # once for each command, not for each target
    assert ". .venv/bin/activate" in lines[-1]
