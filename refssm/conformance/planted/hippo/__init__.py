"""Planted bugs in HiPPO's operators and their VJPs, collected."""

from refssm.conformance.planted.hippo.constructors import PLANTINGS
from refssm.conformance.planted.hippo.memory import OF_MEMORIES, OF_RECONSTRUCTIONS
from refssm.conformance.planted.hippo.scaled import OF_STEPS

BUGS = [b for p in (*PLANTINGS, *OF_MEMORIES, *OF_RECONSTRUCTIONS, *OF_STEPS) for b in p.bugs]
