"""Planted bugs in HiPPO operators and their gradients."""

from refssm.conformance.deviations import hippo_memory, hippo_reconstruct

DEVIATIONS = [*hippo_memory.DEVIATIONS, *hippo_reconstruct.DEVIATIONS]
