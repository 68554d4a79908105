"""Makers of pages, `python -m docs.build.NAME`, say in a sentence what they need."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAKERS = sorted(path.stem for path in (ROOT / "docs/build").glob("*.py") if "_" not in path.stem)
ABSENT = "raise ModuleNotFoundError(\"No module named 'matplotlib'\", name='matplotlib')\n"
WRONG = "raise ValueError('another error')\n"


def made(maker, folder, text):
    """A maker's exit code and errors, where matplotlib is this program."""
    (folder / "matplotlib.py").write_text(text, encoding="utf-8")
    path = os.pathsep.join(map(str, (folder, ROOT, ROOT / "tests")))
    done = subprocess.run(
        [sys.executable, "-m", f"docs.build.{maker}"], cwd=folder, capture_output=True,
        encoding="utf-8", env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.long
@pytest.mark.parametrize("maker", ["gallery", "pictures", "stages", "experiments"])
def test_a_maker_of_pictures_without_matplotlib_says_so(maker, tmp_path):
    assert maker in MAKERS
    told = "this needs matplotlib: pip install -e '.[dev]' in a clone of refssm\n"
    assert made(maker, tmp_path, ABSENT) == (1, told)


@pytest.mark.long
def test_another_error_of_a_maker_is_not_hidden(tmp_path):
    result, err = made("gallery", tmp_path, WRONG)
    assert result == 1
    assert err.startswith("Traceback")
    assert err.endswith("ValueError: another error\n")


def test_what_the_sentence_names_brings_matplotlib():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r'^dev = \["refssm\[test,', text, re.MULTILINE)
    assert re.search(r'^test = \[\n  "refssm\[[\w,]*report', text, re.MULTILINE)
    assert re.search(r'^report = \[.*"matplotlib', text, re.MULTILINE)
