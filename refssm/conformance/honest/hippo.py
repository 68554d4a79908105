"""Honest HiPPO operators, family by family of them."""

from refssm.conformance.honest import hippo_memory, hippo_reconstruct

IMPLEMENTATIONS = [*hippo_memory.IMPLEMENTATIONS, *hippo_reconstruct.IMPLEMENTATIONS]
