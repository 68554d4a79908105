"""The same report in every locale: LC_ALL=POSIX, and one that has neither ± nor Σ."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from judging import SCAN, plugin

ROOT = Path(__file__).parents[2]
PRINTING = SCAN.replace("    state = 0", "    print('Σ_n ± ü')\n    state = 0")
LATER = PRINTING.replace("    return x", "    x[..., 1:2, :] += 1\n    return x")
FEW = ("--check", "value", "--dtype", "float32", "--profile", "quick")
UTF_8 = {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
ASCII = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def ran(folder, environment, *arguments):
    """Exit code, standard output and error, as bytes; times are left out."""
    usual = {key: value for key, value in os.environ.items() if not key.startswith("PYTHONIO")}
    done = subprocess.run(
        [sys.executable, "-m", "refssm", *arguments], cwd=folder, capture_output=True,
        env={**usual, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip
    return done.returncode, re.sub(rb" +\d+\.\d s", b"", done.stdout), done.stderr


@pytest.mark.long
def test_a_failure_is_reported_with_the_same_bytes_in_a_posix_locale(tmp_path):
    name = plugin(tmp_path, LATER)
    usual = ran(tmp_path, UTF_8, "verify", name, *FEW)
    assert usual[0] == 1
    assert " ± ".encode() in usual[1]
    assert ran(tmp_path, ASCII, "verify", name, *FEW) == usual


@pytest.mark.long
def test_what_refssm_new_writes_are_utf_8_in_a_posix_locale(tmp_path):
    options = ("new", "hippo_legs", "--output")
    for name, environment in (("usual.py", UTF_8), ("posix.py", ASCII)):
        assert ran(tmp_path, environment, *options, name)[0] == 0
    usual = (tmp_path / "usual.py").read_text(encoding="utf-8")
    posix = (tmp_path / "posix.py").read_text(encoding="utf-8")
    assert posix == usual.replace("usual.py", "posix.py")


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_what_an_encoding_lacks_is_escaped(tmp_path, encoding):
    environment = {"PYTHONIOENCODING": encoding}
    result, out, err = ran(tmp_path, environment, "show", "hippo_legs")
    assert (result, err) == (0, b"")
    assert out.decode(encoding)
    result, out, err = ran(tmp_path, environment, "verify", "Σ.py")
    assert (result, out) == (4, b"")
    assert b"\\u03a3.py: no such file" in err
