"""What a kernel must be like on cards that nobody here has; each refusal is one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpu.gate.compiled import Compiled, compiled
from gpu.gate.occupancy import LARGEST_BLOCK, SHARED_OF_BLOCK

from refssm_gpu._launching.kernel import Instance, Kernel

IN_DOUBLE = ("float64", "complex128")


def refusals(kernel: Kernel, architecture: str) -> list[str]:
    """Why this kernel would not do on this architecture; empty if it would."""
    program = compiled(kernel, architecture)
    where = f"{Path(kernel.source).name} for {architecture}"
    found = [f"{where}: {complaint}" for complaint in program.complaints]
    if not kernel.instances:
        found.append(f"{where}: {kernel.name} has no instances, so nothing was compiled")
    for instance in kernel.instances if program.instances else ():
        wanted = kernel.expression(instance)
        made = next(i for i in program.instances if i.expression == wanted)
        found += [f"{wanted} for {architecture} {why}" for why in _of(kernel, instance, made)]
    return found


def _of(kernel: Kernel, instance: Instance, made: Compiled) -> Iterator[str]:
    if spilled := made.spill_stores + made.spill_loads:
        yield f"spills registers: {spilled} bytes written and read again, wanted none"
    elif made.stack > made.frame:
        yield f"has {made.stack} bytes of local memory a thread (an array whose index varies?)"
    if made.registers > kernel.registers:
        yield f"needs {made.registers} registers a thread, its Kernel allows {kernel.registers}"
    if made.block != kernel.block:
        yield (
            f"is bound to blocks of {made.block or 'any number of'} threads, "
            f"its Kernel launches {kernel.block}: __launch_bounds__ must say the same"
        )
    if kernel.block > LARGEST_BLOCK or made.shared > SHARED_OF_BLOCK[made.architecture]:
        yield f"is too large: {kernel.block} threads, {made.shared} bytes of shared memory"
    if made.double and not (kernel.double_inside or set(instance) & set(IN_DOUBLE)):
        yield f"computes in double precision: {', '.join(made.double)} (a literal without f?)"
    if made.fast:
        yield f"uses approximate instructions: {', '.join(made.fast)}"
