"""Grade N: differences of cumulative sums pass and say so; bugs beside them do not."""

from dataclasses import replace

import numpy as np
import pytest
from honest.selective_scan.programs import IMPLEMENTATIONS as SELECTIVE
from honest.ssd.programs import IMPLEMENTATIONS as SSD
from judging import judged

from refssm.conformance.gauges import cumulated
from refssm.conformance.judging.allowed import decided
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import _right_bits, compare
from refssm.conformance.judging.verdict import Verdict, worst_of
from refssm.conformance.planted.cancelling import beside_forms
from refssm.conformance.standard import Standard
from refssm.ssd import SSD_RECURRENT
from refssm.testing import Budget

DIFFERENCES = {h.op: h for h in (*SSD, *SELECTIVE) if h.name == "differences_16"}
CHUNKED = ("ssd_chunked", "ssd_recurrent", "selective_scan", "mamba_scan")
SINGLE = Standard.of("float32")


def checked(name, forward, vjp, check="gradient", **more):
    """The result of one check in single precision."""
    only = DIFFERENCES[name].only
    (result,) = judged(
        name, forward, check, vjp=vjp, types=("float32",), profile="default", only=only, **more
    )
    return result


@pytest.mark.parametrize("name", CHUNKED)
@pytest.mark.long
def test_gradients_by_differences_of_cumulative_sums_pass_as_right_in_norm(name):
    honest = DIFFERENCES[name]
    result = checked(name, honest.forward, honest.vjp)
    assert (result.verdict, result.grade) == ("pass", "N")
    assert result.message.startswith("cancels: ")
    assert "bits of the largest entry of its row, " in result.message
    strict = checked(name, honest.forward, honest.vjp, accuracy=Budget(normwise=False))
    assert strict.verdict in ("inaccurate", "wrong")


@pytest.mark.parametrize("name", CHUNKED)
@pytest.mark.long
def test_the_same_with_a_detached_carry_is_refused(name):
    honest = DIFFERENCES[name]
    bugs = beside_forms(SSD_RECURRENT.family) + beside_forms("selective_scan")
    detached = next(bug for bug in bugs if (bug.op, bug.name) == (name, "vjp_detached"))
    assert honest.vjp is not None
    forward, vjp = detached.make(honest.forward, honest.vjp)
    result = checked(name, forward, vjp)
    assert result.failed
    assert result.grade in "CF"


def one_small_head(rng, small=1e-6, l=96):
    """Arguments of `ssd_recurrent` with two heads, one of them far smaller; decays that cancel."""
    x = rng.standard_normal((1, 1, 2, l, 3))
    x[:, :, 1] *= small
    log_a = -(10 ** rng.uniform(-3, 0, (1, 1, 2, l)))
    B, C = rng.standard_normal((2, 1, 1, 1, l, 4))
    dy = rng.standard_normal((1, 1, 2, l, 3))
    return [a.astype(np.float32) for a in (dy, x, log_a, B, C)]


def of_log_a(vjp, arrays, standard=SINGLE):
    """The verdict on the gradient of `log_a`."""
    gauge = expect(SSD_RECURRENT, arrays, {}, SSD_RECURRENT.bare_vjp, standard)[1]
    dims = ("b", "g", "h", "l")
    return compare(vjp(*arrays)[1], gauge, np.dtype(np.float32), dims, "dlog_a", standard=standard)


def test_a_small_entry_of_a_row_may_lose_its_digits_and_the_sentence_says_how_many():
    arrays = one_small_head(np.random.default_rng(1))
    verdict = of_log_a(DIFFERENCES["ssd_recurrent"].vjp, arrays)
    assert (verdict.grade, verdict.verdict, verdict.ok) == ("N", "pass", True)
    assert verdict.ratio <= 16
    most, _, least = verdict.message.removeprefix("cancels: ").partition(" bits of the largest")
    assert int(most) > 16 > int(verdict.bits)
    assert least == f" entry of its row, {verdict.bits} bits of the smallest"
    strict = of_log_a(DIFFERENCES["ssd_recurrent"].vjp, arrays, replace(SINGLE, normwise=False))
    assert not strict.ok


@pytest.mark.parametrize("bug", ["detached", "term", "conjugate"])
@pytest.mark.parametrize("head", [0, 1])
def test_a_bug_in_one_head_is_refused_though_others_are_a_million_times_larger(bug, head):
    right = DIFFERENCES["ssd_recurrent"].vjp
    assert right is not None

    def wrong(*arrays):
        dx, dlog_a, *others = right(*arrays)
        own = dlog_a[:, :, head]
        if bug == "detached":
            alone = [right(*_cut(arrays, w))[1] for w in _chunks()]
            own[...] = np.concatenate(alone, axis=-1)[:, :, head]
        elif bug == "term":
            own[..., 32] = 0
        else:
            own[...] = -own
        return dx, dlog_a, *others

    arrays = one_small_head(np.random.default_rng(2))
    verdict = of_log_a(wrong, arrays)
    assert not verdict.ok
    assert f"dlog_a[0, 0, {head}, " in verdict.message


def _chunks():
    return [slice(0, 32), slice(32, 64), slice(64, 96)]


def _cut(arrays, w):
    dy, x, log_a, B, C = arrays
    return dy[..., w, :], x[..., w, :], log_a[..., w], B[..., w, :], C[..., w, :]


def strong_decays(rng, l=16):
    """Arguments whose gradient of `log_a` is e^{-30} of the terms that cancel in it."""
    dy, x, log_a, B, C = (a[:, :, :1] for a in one_small_head(rng, l=l))
    dy[..., :-1, :] = 0
    return [dy, x, np.full_like(log_a, -30), B, C]


def test_a_gradient_below_the_rounding_of_its_terms_may_be_anything_below_it():
    arrays = strong_decays(np.random.default_rng(5))
    lost = np.zeros_like(arrays[2])
    verdict = of_log_a(lambda *_: (None, lost), arrays)
    assert (verdict.ok, verdict.grade) == (True, "-")  # a gradient of zeros says nothing


@pytest.mark.parametrize("error", [1e-3, 1e-4])
def test_a_gradient_above_the_rounding_of_its_terms_is_refused_where_it_should_be_small(error):
    arrays = strong_decays(np.random.default_rng(5))
    verdict = of_log_a(lambda *_: (None, np.full_like(arrays[2], error)), arrays)
    assert verdict.grade == "F"


def test_five_percent_of_the_largest_entry_are_no_lack_of_digits_whatever_the_sums_lose():
    arrays = [a[:, :, :1] for a in one_small_head(np.random.default_rng(5), l=256)]
    arrays[2][...] = -1
    dlog_a = SSD_RECURRENT.bare_vjp(*arrays)[1]
    dlog_a[..., 0] += np.abs(dlog_a).max() / 20
    gauge = expect(SSD_RECURRENT, arrays, {}, SSD_RECURRENT.bare_vjp, SINGLE)[1]
    assert gauge.cumulated is not None
    assert np.abs(dlog_a).max() / 20 < SINGLE.room * SINGLE.u * gauge.cumulated.whole()[..., 0]
    assert of_log_a(lambda *_: (None, dlog_a), arrays).grade == "F"


def test_nan_is_never_right_in_norm():
    arrays = one_small_head(np.random.default_rng(3))
    poisoned = np.full_like(arrays[2], np.nan)
    verdict = of_log_a(lambda *_: (None, poisoned), arrays)
    assert verdict.grade == "F"


def test_the_second_gauge_is_worked_out_only_where_the_first_refuses(monkeypatch):
    runs = []
    kept = cumulated._FormRun.bounds.func
    watched = property(lambda self: runs.append(self) or kept(self))
    monkeypatch.setattr(cumulated._FormRun, "bounds", watched)
    arrays = one_small_head(np.random.default_rng(4))
    assert of_log_a(SSD_RECURRENT.bare_vjp, arrays).grade == "A"
    assert not runs
    assert of_log_a(DIFFERENCES["ssd_recurrent"].vjp, arrays).grade == "N"
    assert runs


def test_right_in_norm_ranks_between_backward_stable_and_inaccurate():
    grades = [Verdict(grade, 1.0) for grade in "-ABNCF"]
    for worse in range(1, len(grades)):
        assert worst_of(grades[: worse + 1]).grade == grades[worse].grade
        assert worst_of(grades[worse::-1]).grade == grades[worse].grade


def test_a_budget_refuses_another_normwise_than_true_or_false():
    with pytest.raises(ValueError, match="`normwise` must be True or False, got 'no'"):
        Budget(normwise="no")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("computes", ["tf32", "bfloat16", "float16"])
def test_arithmetic_of_few_bits_is_never_right_in_norm(computes):
    arrays = one_small_head(np.random.default_rng(1))
    held = Standard.of("float32", Budget(computes=computes))
    gauge = expect(SSD_RECURRENT, arrays, {}, SSD_RECURRENT.bare_vjp, held)[1]
    error, judged = np.full(gauge.value.shape, np.inf), np.ones(gauge.value.shape, bool)
    assert decided(gauge, held, np.dtype(np.float32), error, judged).n is None
    assert decided(gauge, SINGLE, np.dtype(np.float32), error, judged).n is not None


def test_bits_are_counted_where_a_subnormal_value_is_smaller_than_its_error():
    size, error = np.array([5e-324, 1e8, 0.0]), np.array([4.0, 0.1, 1.0])
    assert _right_bits(error, size, 24.0) == (24, 0)
    assert _right_bits(error[1:2], size[1:2], 53.0) == (29, 29)  # 1e9 is nearly 2^30
    assert _right_bits(np.array([5e-324]), np.array([1e308]), 53.0) == (53, 53)
