"""Every mirror on the GPU is judged like anybody's implementation: here on the host build."""

from pathlib import Path

import pytest
from kernel_judging import MIRRORED, judge, type_of_turn, types

EVERY = [  # with another order of threads for each type
    (op, dtype, (0, 1, 7)[i % 3]) for op in MIRRORED for i, dtype in enumerate(types(op))
]
INFO = Path("/proc/cpuinfo")
PROCESSOR = INFO.read_text(encoding="utf-8").split() if INFO.exists() else []
FUSED = ("-mfma", "-ffp-contract=fast")  # a product and a sum in one rounding, as on a card


@pytest.mark.parametrize("op", MIRRORED, ids=str)
def test_the_judge_passes_the_mirror_in_one_type(op):
    judge(op, type_of_turn(op))


@pytest.mark.long
@pytest.mark.parametrize(("op", "dtype", "order"), EVERY, ids=lambda x: str(x))
def test_the_judge_passes_the_mirror_in_every_type_with_the_default_profile(op, dtype, order):
    judge(op, dtype, "default", order)


@pytest.mark.long
@pytest.mark.skipif("fma" not in PROCESSOR, reason="this processor has no fused products")
@pytest.mark.parametrize("op", MIRRORED, ids=str)
def test_the_judge_passes_the_mirror_whose_products_and_sums_are_fused(op):
    judge(op, type_of_turn(op), flags=FUSED)


@pytest.mark.parametrize("op", MIRRORED, ids=str)
def test_a_mirror_off_by_a_thousandth_is_refused(op):
    from refssm.testing import check

    turn = type_of_turn(op)
    dtype = "float32" if turn == "float16" else turn  # a thousandth is two roundings of a half

    def wrong(*args, **statics):
        y = op.implementation("gpu")(*args, **statics)
        first, *others = y if isinstance(y, tuple) else (y,)
        moved = first * first.dtype.type(1.001)
        return (moved, *others) if others else moved

    wrong.__refssm__ = op.implementation("gpu").__refssm__  # CuPy's arrays, on a card
    with pytest.raises(AssertionError, match="value"):
        check(op.name, wrong, profile="quick", dtypes=(dtype,), checks=("value",))
