"""Every mirror on the GPU is judged like anybody's implementation: here on the host build."""

from pathlib import Path

import pytest
from kernel_judging import MIRRORED, each_in_turn, judge, type_of_turn, types

from refssm.testing import Budget, check
from refssm_gpu._launching.arrays import HALVES

EVERY = [  # with another order of threads for each type
    (op, dtype, (0, 1, 7)[i % 3]) for op in MIRRORED for i, dtype in enumerate(types(op))
]
INFO = Path("/proc/cpuinfo")
PROCESSOR = INFO.read_text(encoding="utf-8").split() if INFO.exists() else []
FUSED = ("-mfma", "-ffp-contract=fast")  # a product and a sum in one rounding, as on a card


@pytest.mark.parametrize("op", each_in_turn(MIRRORED, 6))
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


# in bfloat16; in float16, where subnormal numbers may be flushed, the bound of float32 allows more
TAKING_HALVES = [op for op in MIRRORED if "bfloat16" in types(op)]
INSIDE = {"ssd": "tf32"}  # tensor cores multiply; other families compute in single precision
ROUNDED_ONCE = ("selective_scan",)  # other gradients are sums of rounded ones, or of rounded states


@pytest.mark.long
@pytest.mark.parametrize("op", TAKING_HALVES, ids=str)
def test_bfloat16_is_rounded_once_and_computed_in_a_finer_type(op):
    checks = ("value", *(("state",) if op.state_outputs else ()))
    checks += ("gradient",) if op.family in ROUNDED_ONCE else ()
    finer = Budget(computes=INSIDE.get(op.family, "float32"))
    declared = {"dtypes": ("bfloat16",), "accuracy": finer}
    check(op.name, op.implementation("gpu"), vjp=op.vjp("gpu"), checks=checks, **declared)


def test_a_state_kept_in_bfloat16_is_refused():
    op = next(op for op in TAKING_HALVES if op.name == "linear_scan")

    def rounding(a, b):
        x = b * (a * 0 + 1)
        for k in range(1, b.shape[-2]):
            x[..., k, :] += a[..., k, :] * x[..., k - 1, :]
        return x

    rounding.__refssm__ = op.implementation("gpu").__refssm__
    how = {"dtypes": ("bfloat16",), "checks": ("value",), "accuracy": Budget(computes="float32")}
    check(op.name, op.implementation("gpu"), **how)
    with pytest.raises(AssertionError, match="linear_scan/value"):
        check(op.name, rounding, **how)


@pytest.mark.parametrize("op", each_in_turn(MIRRORED, 12))
def test_a_mirror_off_by_a_thousandth_is_refused(op):
    turn = type_of_turn(op)
    dtype = "float32" if turn in HALVES else turn  # a thousandth is two roundings of a half

    def wrong(*args, **statics):
        y = op.implementation("gpu")(*args, **statics)
        first, *others = y if isinstance(y, tuple) else (y,)
        moved = first * first.dtype.type(1.001)
        return (moved, *others) if others else moved

    wrong.__refssm__ = op.implementation("gpu").__refssm__  # CuPy's arrays, on a card
    with pytest.raises(AssertionError, match="value"):
        check(op.name, wrong, profile="quick", dtypes=(dtype,), checks=("value",))
