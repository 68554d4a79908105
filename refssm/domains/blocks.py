"""Sizes of block-diagonal matrices: every number of blocks divides every size."""

from refssm.domains.domain import Counts

block_counts = Counts("1, 2 or 4 blocks", (1, 2, 4))
block_orders = Counts(
    "4 to 128 states of all blocks together, a multiple of 4", (4, 8, 12, 16, 32, 36, 64, 128)
)
