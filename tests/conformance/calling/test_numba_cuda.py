"""The guide's Numba kernel behind CuPy arrays, in Numba's simulator and with a fake CuPy.

The simulator knows no streams of others; the stand-in for `external_stream` runs what is queued on
the stream first, as a kernel launched there comes after it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLE = (ROOT / "docs/examples/numba_scan.py").read_text(encoding="utf-8")
CODE = """
import sys

import numpy as np
from fake_cupy import Stream, double
from frameworks import found, judged
from numba import cuda
from refssm.conformance.calling.adapters import cuda as shared

shared.BUSY, shared.ROUNDS = 4, 2
sys.modules["cupy"] = cupy = double(1)
cupy.result_type = lambda *arrays: np.result_type(*(a.dtype for a in arrays))
cuda.external_stream = lambda ptr: Stream.every[ptr].synchronize()
import numba_scan

declared = {"framework": "cupy", "layout": "b l n, b l n -> b l n", "sizes": {"l": (1, 5)}}
for check in ("value", "stream", "empty"):
    result = judged("linear_scan", numba_scan.scan, check, **declared)
    print(check, result.verdict, result.message, *result.notes)
"""


def told(folder, text):
    """What the judge says of a kernel: check, verdict and message in each line."""
    (folder / "numba_scan.py").write_text(text, encoding="utf-8")
    paths = [str(folder), str(ROOT), str(ROOT / "tests")]
    variables = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": os.pathsep.join(paths)}
    ran = subprocess.run(
        [sys.executable, "-c", CODE],
        env=variables,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_the_guide_shows_the_kernel_of_the_example():
    page = (ROOT / "docs/frameworks.md").read_text(encoding="utf-8")
    assert EXAMPLE.partition("THREADS = 128\n\n\n")[2] in page


@pytest.mark.long
def test_the_kernel_of_the_guide_is_right_on_any_stream(tmp_path):
    assert [line.split()[:2] for line in told(tmp_path, EXAMPLE)] == [
        ["value", "pass"],
        ["stream", "pass"],
        ["empty", "pass"],
    ]


@pytest.mark.long
def test_the_kernel_of_the_guide_without_its_stream_fails_the_check_of_streams(tmp_path):
    (line,) = [line for line in EXAMPLE.splitlines(True) if "external_stream" in line]
    without = EXAMPLE.replace(line, "").replace("THREADS, stream]", "THREADS]")
    assert "stream" not in without.partition("def scan")[2]
    value, stream, _ = told(tmp_path, without)
    assert value.startswith("value pass")
    assert stream.startswith("stream wrong wrong under another current stream")
