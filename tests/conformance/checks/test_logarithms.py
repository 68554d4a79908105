"""Programs that take logarithms are right within rounding; `scaling` still sees absolute errors."""

import numpy as np
import pytest

from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.convolution import CAUSAL_CONVOLUTION_DIRECT
from refssm.discretize import DISCRETIZE_ZOH
from refssm.scan import LINEAR_SCAN
from refssm.testing import Declaration

scan = LINEAR_SCAN.reference


def positive(case):
    """Real and positive arguments."""
    if any(np.iscomplexobj(v) for v in case.values()):
        return None
    return {name: np.maximum(np.abs(v), v.dtype.type(1e-6)) for name, v in case.items()}


ONLY = Declaration("linear_scan", dtypes=("float32", "float64"), only=positive)


def in_logarithms(a, b, floor=0.0):
    """x_k = exp of the running logaddexp."""
    decays, inputs = np.broadcast_arrays(np.log(a), np.log(np.maximum(b, b.dtype.type(floor))))
    x, s = np.empty_like(inputs), np.full_like(inputs[..., 0, :], -np.inf)
    for k in range(inputs.shape[-2]):
        s = np.logaddexp(decays[..., k, :] + s, inputs[..., k, :])
        x[..., k, :] = np.exp(s)
    return x


def line_of(check, op, forward, declared, seed=0):
    """The result of one check in the first type that is judged."""
    found = Found(op, forward, None, declared=declared)
    settings = Settings(only_checks=(check,), shrink=False, folder=None, seed=seed)
    judged = (r for r in results_of(Session(InProcess([found]), "", settings)) if r.grade != "-")
    return next(r for r in judged if r.check == check)


@pytest.mark.parametrize("check", ["scaling", "value"])
def test_a_scan_of_logarithms_passes_with_a_note(check):
    line = line_of(check, LINEAR_SCAN, in_logarithms, ONLY)
    assert line.verdict == "pass"
    assert any("logarithms" in note for note in line.notes)


def test_a_change_of_units_that_rounds_passes():
    def in_decimals(a, b):
        few = np.abs(b).max(initial=0) < 1
        return scan(a, b * b.dtype.type(10)) / b.dtype.type(10) if few else scan(a, b)

    real = Declaration("linear_scan", dtypes=("float32",))
    assert line_of("scaling", LINEAR_SCAN, in_decimals, real).verdict == "pass"


def test_a_floor_below_the_logarithm_is_not_rounding():
    def alike(case):
        """Positive arguments of one size, so that small ones are accepted together."""
        kept = positive(case)
        return kept if kept and case["b"].min() > 2.0**-10 * case["b"].max() > 0 else None

    def floored(a, b):
        return in_logarithms(a, b, floor=1e-15)

    def any_size(case):
        kept = alike(case)
        return {**kept, "b": case["b"]} if kept else None

    given = Declaration("linear_scan", dtypes=("float32",), only=any_size)
    assert line_of("scaling", LINEAR_SCAN, in_logarithms, given).verdict == "pass"
    assert line_of("scaling", LINEAR_SCAN, floored, given).failed


@pytest.mark.parametrize(
    "forward",
    [
        lambda a, b: (scan(a, b) + 1e-12).astype(np.result_type(a, b)),
        lambda a, b: scan(a, (np.round(b * 4096) / 4096).astype(b.dtype)),
        lambda a, b: scan(a, np.clip(b, -1e6, 1e6)),
        lambda a, b: scan(a, b.astype(np.float32) * np.float32(1 + 1e-4 * (np.abs(b).max() > 1e5))),
    ],
    ids=["epsilon", "fixed_point", "clipped", "other_code_for_large_inputs"],
)
def test_what_depends_on_the_size_of_inputs_still_fails(forward):
    real = Declaration("linear_scan", dtypes=("float32",))
    assert line_of("scaling", LINEAR_SCAN, forward, real).failed


def test_exact_integers_are_still_asked_of_what_scales_exactly():
    def by_fft(u, k):
        n = 2 * u.shape[-1]
        y = np.fft.irfft(np.fft.rfft(u, n) * np.fft.rfft(k, n), n)[..., : u.shape[-1]]
        return y.astype(np.result_type(u, k))

    real = Declaration("causal_convolution_direct", dtypes=("float64",))
    line = line_of("value", CAUSAL_CONVOLUTION_DIRECT, by_fft, real)
    assert line.failed
    assert "exact integers" in line.message


@pytest.mark.parametrize("seed", [0, 4, 7])  # at seed 4 no case of `value` is so small
def test_small_numbers_taken_as_zero_are_seen_at_each_seed(seed):
    def without_small(A, B, dt):
        A_bar, B_bar = DISCRETIZE_ZOH.reference(A, B, dt)
        least = 1e-6 * np.abs(A_bar).max((-1, -2), keepdims=True)
        return A_bar, np.where(np.abs(B_bar) < least, 0, B_bar).astype(B_bar.dtype)

    real = Declaration("discretize_zoh", dtypes=("float32",))
    assert line_of("scaling", DISCRETIZE_ZOH, without_small, real, seed).failed
