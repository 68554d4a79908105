"""Contractions of arrays that may be empty."""

import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from refssm._numerics.contraction import einsum

FORMULAS = (
    "...pn,...n->...p",
    "...pn,...p->...n",
    "...lp,...ln->...pn",
    "...n,...n->...",
    "kn,n->k",
)
CORRUPTING = """
import numpy as np
from refssm._numerics.contraction import einsum
a, b = np.ones((1, 2), np.clongdouble), np.ones((1, 0), np.clongdouble)
for k in range(2000):
    y = einsum("ln,lr->nr", a, b)
    held = [np.ones(size, np.uint8) for size in range(1 + k % 7, 300, 40)]
"""


@pytest.mark.parametrize("formula", FORMULAS)
def test_empty_or_not_the_result_is_that_of_numpy(formula):
    letters = sorted({*formula} & {*"klnp"})
    for sizes in product((0, 1, 3), repeat=len(letters)):
        named = dict(zip(letters, sizes, strict=True))
        batch = (2,) if "..." in formula else ()
        terms = formula.partition("->")[0].split(",")
        operands = [np.ones((*batch, *(named[c] for c in t if c in named))) for t in terms]
        operands = [operands[0].astype(np.float32), *operands[1:]]
        found, wanted = einsum(formula, *operands), np.einsum(formula, *operands)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert np.array_equal(found, wanted)


def test_leading_axes_broadcast_in_an_empty_result():
    a, b = np.ones((3, 1, 2, 0)), np.ones((4, 0))
    assert einsum("...pn,...n->...p", a, b).shape == (3, 4, 2)


@pytest.mark.long
def test_many_empty_results_in_long_double_leave_the_memory_whole():
    """The same loop with NumPy's own `einsum` ends in SIGABRT (docs/findings.md)."""
    assert subprocess.run([sys.executable, "-c", CORRUPTING], check=False).returncode == 0
