"""Planted bugs in HiPPO's operators and their VJPs, collected."""

from refssm.conformance.planted.hippo import constructors, memory, reconstruct

BUGS = [b for file in (constructors, memory, reconstruct) for p in file.PLANTINGS for b in p.bugs]
