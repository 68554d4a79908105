"""Helpers of tests of associative scans: the schedules, and strings that show an order."""

from itertools import accumulate

import numpy as np
import pytest

from refssm.associative import blelloch, chunked, hillis_steele, sequential

SCHEDULES = [sequential, hillis_steele, blelloch, *map(chunked, (1, 2, 3, 7, 8, 64))]
each_schedule = pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)


def letters(l):
    """Distinct strings of one letter: adding joins them, so the order is visible."""
    return np.array([chr(0x4E00 + k) for k in range(l)], dtype=object)


def prefixes(words):
    return list(accumulate(words))
