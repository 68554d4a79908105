"""What the tests of associative scans share: the schedules, and words that show an order."""

from itertools import accumulate

import numpy as np
import pytest

from refssm.associative import blelloch, chunked, hillis_steele, sequential

SCHEDULES = [sequential, hillis_steele, blelloch, *map(chunked, (1, 2, 3, 7, 8, 64))]
each_schedule = pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)


def letters(l):
    """Distinct words of one letter: adding them joins them, and the order shows."""
    return np.array([chr(0x4E00 + k) for k in range(l)], dtype=object)


def prefixes(words):
    return list(accumulate(words))
