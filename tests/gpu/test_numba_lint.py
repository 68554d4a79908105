import json
import os
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest
from gpu.numba_cuda.field import FIELDS
from gpu.numba_cuda.lint import CARDS, MISSING, NoNVVM, faults, toolkit
from numba_tier import KERNELS

PLANT = """
import os, sys, tempfile
from pathlib import Path
from numba import cuda
from gpu.numba_cuda import lint
from gpu.numba_cuda.field import FIELDS
from gpu.numba_cuda.launch import NumbaKernel
def wide(field):
    E = field.element
    def kernel(x):
        {line}
    return kernel
with tempfile.TemporaryDirectory() as folder:
    os.environ["CUDA_HOME"] = str(lint.toolkit(Path(folder)))
    field = FIELDS["float32"]
    print(*lint.faults(lint.ptx(NumbaKernel(wide, "e1"), field, (9, 0)), field), sep="\\n")
"""


@pytest.fixture(scope="module", autouse=True)
def _nvvm():
    if not any(d.name == "nvidia-nvvm" for d in distributions()):
        pytest.skip(MISSING)


def printed(*arguments):
    """The lines that Python prints."""
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    call = [sys.executable, *arguments]
    done = subprocess.run(
        call, capture_output=True, text=True, encoding="utf-8", timeout=300, env=path
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.long
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_compiles_without_double_precision_and_local_memory(kernel):
    lines = [*map(json.loads, printed("-m", "gpu.numba_cuda.lint", kernel))]
    seen = {(line["type"], tuple(line["card"])) for line in lines}
    assert seen == {(kind, card) for kind in FIELDS for card in CARDS}
    assert [line for line in lines if line["faults"]] == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("x[0] = 0.1 * x[0]", "double precision: "),
        ("x[0] = x[1] / cuda.threadIdx.x", "double precision: "),
        ("y = cuda.local.array(99, E); y[int(x[0])] = x[1]; x[2] = y[int(x[3])]", "local memory: "),
        ("x[0] = E(0.1) * x[0]", ""),
    ],
)
def test_the_lint_sees_what_numba_widens_or_spills(line, told):
    found = printed("-c", PLANT.format(line=line))
    assert found[0].startswith(told) if told else found == [""]


def test_the_lint_reads_lines_of_ptx():
    text = "mov.f32 %f1, 0f0;\ncvt.f64.f32 %fd1, %f1;\nst.local.u32 [%rd1], %r1;\n.reg .b32 %r<3>;"
    double, local = faults(text, FIELDS["complex64"])
    assert double == "double precision: cvt.f64.f32 %fd1, %f1;"
    assert local == "local memory: st.local.u32 [%rd1], %r1;"
    assert faults(text, FIELDS["float64"]) == [local]


def test_a_missing_compiler_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("gpu.numba_cuda.lint.files", lambda name: [])
    with pytest.raises(NoNVVM, match=r"lacks libnvvm\.so or libdevice\.10\.bc"):
        toolkit(tmp_path)
