"""Sizes of matrices to decompose: the judge's work is cubic in them, in long double."""

from refssm.domains.domain import Counts

mode_orders = Counts("1 to 65 modes", (3, 1, 2, 4, 5, 8, 9, 16, 31, 32, 33, 64, 65))
even_mode_orders = Counts(
    "2 to 66 modes, an even number",
    (4, 2, 6, 8, 10, 16, 30, 32, 34, 64, 66),
    "an even integer >= 2",
    multiple=2,
)
block_counts = Counts("1, 2 or 4 blocks", (1, 2, 4))
block_orders = Counts(  # every number of blocks divides every size
    "4 to 64 modes of all blocks together, a multiple of 4", (4, 8, 12, 16, 32, 36, 64)
)
filter_lengths = Counts("24 to 130 samples", (24, 25, 32, 33, 64, 65, 100, 127, 128, 130))
filter_counts = Counts(
    "1 to 24 filters, never more than samples",
    (3, 1, 2, 4, 8, 15, 16, 17, 23, 24, 24),
    "an integer from 1 to l",
    at_most="l",
)
