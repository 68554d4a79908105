"""How wide the registers are of the processor for which Numba compiles."""

from functools import cache

import llvmlite.binding as llvm
from numba.core.registry import cpu_target

PROBE = """
define void @probe(<16 x float>* %place) {
  %x = load <16 x float>, <16 x float>* %place
  %y = fadd <16 x float> %x, %x
  store <16 x float> %y, <16 x float>* %place
  ret void
}
"""


@cache
def wide() -> bool:
    """True for AVX-512: a register has 64 bytes, and there are 32.

    The compiler is asked, not the processor: NUMBA_CPU_NAME and NUMBA_CPU_FEATURES may name others.
    """
    return wide_for(*cpu_target.target_context.codegen().magic_tuple())


def wide_for(triple: str, name: str, features: str) -> bool:
    """The same for a processor by its name and features."""
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=name, features=features)
    return "zmm" in machine.emit_assembly(llvm.parse_assembly(PROBE))
