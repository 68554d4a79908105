"""Kernels of these tests, which only the compiler sees."""

from pathlib import Path

import pytest
from gpu.gate import nvrtc

from refssm_gpu._launching.kernel import Kernel

PLANTED = Path(__file__).parent / "planted_gate"


def kernel(file, name, kind="float32", block=128, registers=64, **more):
    """The declaration of a kernel in the folder planted_gate."""
    return Kernel(str(PLANTED / file), name, ((kind,),), block, registers, **more)


def _lack():
    try:
        nvrtc.version()
    except nvrtc.NoCompiler as error:
        return str(error)
    return ""


LACK = _lack()
needs_compiler = pytest.mark.skipif(bool(LACK), reason=LACK)
