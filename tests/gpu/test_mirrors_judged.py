"""Every mirror on the GPU is judged like anybody's implementation: here on the host build."""

import pytest
from kernel_judging import MIRRORED, judge, type_of_turn, types

EVERY = [(op, dtype) for op in MIRRORED for dtype in types(op)]


@pytest.mark.parametrize("op", MIRRORED, ids=str)
def test_the_judge_passes_the_mirror_in_one_type(op):
    judge(op, type_of_turn(op))


@pytest.mark.long
@pytest.mark.parametrize(("op", "dtype"), EVERY, ids=lambda x: str(x))
def test_the_judge_passes_the_mirror_in_every_type_with_the_default_profile(op, dtype):
    judge(op, dtype, "default")


@pytest.mark.parametrize("op", MIRRORED, ids=str)
def test_a_mirror_off_by_a_thousandth_is_refused(op):
    from refssm.testing import check

    def wrong(*args, **statics):
        y = op.implementation("gpu")(*args, **statics)
        first, *others = y if isinstance(y, tuple) else (y,)
        moved = first * first.dtype.type(1.001)
        return (moved, *others) if others else moved

    wrong.__refssm__ = op.implementation("gpu").__refssm__  # CuPy's arrays, on a card
    with pytest.raises(AssertionError, match="value"):
        check(op.name, wrong, profile="quick", dtypes=(type_of_turn(op),), checks=("value",))
