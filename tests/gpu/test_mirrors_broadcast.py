"""Any argument may have leading axes that no other has: outputs and gradients are the reference's.

The judge draws batches as the declaration names them; a mirror that looks up rows by them must be
right for all others, too.
"""

import numpy as np
import pytest
from kernel_judging import MIRRORED
from on_target import given, taken
from rotation import of_turn

from refssm._declaration.arguments import several
from refssm.catalog import named
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.cases.sizes import core_dims
from refssm.conformance.checks.checks import types_of
from refssm_gpu._launching import batch

SIZES = ((9, 4, 3, 2), (1, 4, 3, 2), (0, 4, 3, 2))  # of core dimensions; time first, mostly
PAIRS = [(op, name) for op in MIRRORED for name in op.inputs]
# Nine steps of numbers near one, in double precision: the mirrors' errors are thousands of units in
# the last place below this, and a row in another's place is wrong in the first digits.
BOUND = 2.0**-26
IDS = [f"{op}-{name}" for op, name in PAIRS]


def widened(op, name, sizes):
    """Arguments without batch, but one: three members with two axes; each another multiple."""
    dtype = "complex128" if "complex128" in types_of(op) else "float64"
    case = ordinary_case(op, dtype, sizes)
    cores = [len(dims) for dims in op.input_dims]
    alone = [
        np.ascontiguousarray(a[(0,) * (a.ndim - core)])
        for a, core in zip(case.arrays, cores, strict=True)
    ]
    i = [*op.inputs].index(name)
    steps = (1, 0.93, 0.97) if alone[i].dtype.kind in "fc" else (1, 1, 1)
    alone[i] = np.stack([alone[i] * np.asarray(s, alone[i].dtype) for s in steps])[:, None]
    return alone, case.statics


def assert_close(got, wanted, what):
    """Shapes and types are equal, and numbers up to the bound.

    Or up to the last digit of the largest of all numbers: what is 0 by mathematics, as the angles'
    gradient of one step, is rounding.
    """
    largest = max((np.abs(x).max(initial=0) for x in wanted if x is not None), default=0)
    for mine, theirs in zip(got, wanted, strict=True):
        if theirs is None:
            assert mine is None, what
            continue
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), what
        bound = max(BOUND * np.abs(theirs).max(initial=0), 2.0**-52 * largest)
        assert np.abs(mine - theirs).max(initial=0) <= bound, what


def agree(op, name):
    """Outputs and gradients of the mirror are the reference's at every size that it takes."""
    for sizes in SIZES:
        if sizes[0] or "l" in core_dims(op):  # matrices of size 0 are not all allowed
            agree_at(op, name, sizes)


def agree_at(op, name, sizes):
    """Outputs and gradients of the mirror are the reference's at one size."""
    arrays, statics = widened(op, name, sizes)
    wanted = several(op.implementation("reference")(*arrays, **statics))
    got = several(taken(op.implementation("gpu")(*given(*arrays), **statics)))
    assert_close(got, wanted, "outputs")
    if op.differentiable:
        r = np.random.default_rng(1)
        dy = [r.standard_normal(y.shape).astype(y.dtype) for y in wanted]
        pulled = op.vjp("reference")(*dy, *arrays, **statics)
        mine = op.vjp("gpu")(*given(*dy, *arrays), **statics)
        assert_close(several(taken(mine)), several(pulled), "gradients")


@pytest.mark.parametrize(
    ("op", "name"),
    [pair for pair, i in zip(PAIRS, IDS, strict=True) if of_turn(i)],
    ids=lambda x: str(x),
)
def test_an_argument_with_axes_of_its_own_is_right(op, name):
    agree(op, name)


@pytest.mark.long
@pytest.mark.parametrize(("op", "name"), PAIRS, ids=IDS)
def test_every_argument_with_axes_of_its_own_is_right(op, name):
    agree(op, name)


def test_a_member_in_anothers_place_is_seen(monkeypatch):
    right = batch.contiguous
    swapped = lambda x, *kind: right(x[::-1] if x.ndim > 3 else x, *kind)  # noqa: E731
    monkeypatch.setattr(batch, "contiguous", swapped)
    with pytest.raises(AssertionError):
        agree(named("linear_scan"), "a")
