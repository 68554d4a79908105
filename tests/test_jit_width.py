"""Mirrors for processors whose registers are shorter than this machine's may be."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from refssm.jit._compiling import width

AVX2 = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma"}
TILES = """
from test_ssd_mirror import accepted, drawn
from refssm.ssd import SSD_RECURRENT_STATEFUL
assert accepted(SSD_RECURRENT_STATEFUL, drawn(0, "float32", 41, 37, 50, 2))
"""
LANES = """
from selective import usual
from refssm.conformance.judging.grading import judge
from refssm.selective_scan import SELECTIVE_SCAN as op
arrays = usual(op, 0, "float32", {"b": 1, "d": 19}, l=37)
assert judge(op, op.implementation("jit"), *arrays).grade == "A"
"""
SUMS = """
import numpy as np
from refssm.conformance.judging.grading import judge
from refssm.vandermonde import VANDERMONDE_KERNEL_REAL as op
v, x = np.random.default_rng(0).standard_normal((2, 2, 5))
x = -np.exp(x)
assert judge(op, op.implementation("jit"), v, x, l=150).grade == "A"
"""


@pytest.mark.long
@pytest.mark.parametrize("program", [TILES, LANES, SUMS], ids=["tiles", "lanes", "sums"])
def test_mirrors_are_right_where_registers_have_32_bytes(program, tmp_path):
    if platform.machine() != "x86_64" or not llvm.get_host_cpu_features().get("avx2"):
        pytest.skip("not for this processor")
    first = "from refssm.jit._compiling.width import wide\nassert not wide()\n"
    done = subprocess.run(
        [sys.executable, "-c", first + program],
        cwd=Path(__file__).parent,
        env={
            **os.environ,
            **AVX2,
            "REFSSM_CACHE_DIR": str(tmp_path),
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        },
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "wide"), [("haswell", False), ("znver3", False), ("skylake-avx512", True)]
)
def test_the_compiler_says_how_wide_registers_are(name, wide):
    if platform.machine() != "x86_64":
        pytest.skip("not for this processor")
    width.wide()  # Numba starts LLVM
    assert width.wide_for(llvm.get_process_triple(), name, "") is wide
