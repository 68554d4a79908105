"""NaN and infinity in the inputs: which outputs the judge accepts."""

import numpy as np
import pytest
from honest.ssd.programs import IMPLEMENTATIONS as SSD
from judging import judged, scan

from refssm._declaration.adapted import adapted
from refssm.adapters import oldest_first
from refssm.catalog import OPERATORS
from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.checks import special_values
from refssm.conformance.checks.special_values import poisons
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM
from refssm.ssd import SSD_CHUNKED, SSD_RECURRENT

MASKED = {h.op: h.forward for h in SSD if h.name == "masked_product"}


def doubting(a, b):
    """NaN instead of every infinity."""
    x = scan(a, b)
    return np.where(np.isinf(x), np.nan, x).astype(x.dtype)


def test_an_infinity_handed_in_may_not_come_out_as_nan():
    (line,) = judged("linear_scan", doubting, "nan", types=("float32",))
    assert line.verdict == "wrong"
    assert "= infinity: " in line.message


def test_the_first_decay_from_rest_is_not_poisoned_and_one_from_a_state_is():
    for op, poisoned in ((LINEAR_SCAN, False), (LINEAR_SCAN_FROM, True)):
        told = [what for _, what, _ in poisons(op, ordinary_case(op, "float32", sizes=(1, 3)))]
        assert any(w.startswith("a[") and w.endswith("= NaN") for w in told) == poisoned


@pytest.mark.parametrize(("adapters", "newest"), [((), 0), ((oldest_first(),), 4)], ids=["", "o"])
def test_the_tap_of_the_newest_input_is_poisoned_in_either_order(adapters, newest):
    op = adapted(next(op for op in OPERATORS if op.name == "short_convolution"), adapters)
    case = ordinary_case(op, "float32", sizes=(3, 5))
    told = [(arrays[1], what) for arrays, what, _ in poisons(op, case) if what.startswith("k[")]
    assert told
    for k, what in told:
        assert f", {newest}] = " in what
        assert np.isfinite(np.delete(k, newest, -1)).all()


def test_a_convolution_of_padded_inputs_may_take_its_oldest_tap_first():
    def convolution(u, k):
        t, l = k.shape[-1], u.shape[-1]
        padded = np.concatenate([np.zeros((*u.shape[:-1], t - 1), u.dtype), u], -1)
        return sum(k[..., j, None] * padded[..., j : j + l] for j in range(t))

    how = {"types": ("float32",), "adapters": (oldest_first(),)}
    (line,) = judged("short_convolution", convolution, "nan", **how)
    assert line.verdict == "pass"


def at(op, function, arrays, **statics):
    """The verdict on one call with special values in its arguments."""
    worker = InProcess([Found(op, function, None)])
    candidate = Candidate(op, worker, worker.found[0]).judged_in("float32")
    return special_values.at(candidate, arrays, statics)


def late_nan(step, l=48):
    """Arguments of state-space duality with NaN in x at one step; one head of two numbers."""
    rng = np.random.default_rng(7)
    x, B, C = (rng.standard_normal((1, 1, 1, l, 2)).astype(np.float32) for _ in range(3))
    x[..., step, 1] = np.nan
    return [x, -np.ones((1, 1, 1, l), np.float32), B, C]


@pytest.mark.parametrize("name", ["ssd_quadratic", "ssd_chunked", "ssd_chunked_stateful"])
def test_nan_that_a_masked_matrix_product_spreads_within_its_block_is_a_note(name):
    (line,) = judged(name, MASKED[name], "nan", types=("float32",), profile="default")
    assert line.verdict == "pass"
    assert special_values.IN_BLOCK in line.notes


def test_nan_that_reaches_another_block_is_wrong():
    verdict = at(SSD_CHUNKED, MASKED["ssd_quadratic"], late_nan(40), chunk=48)
    assert verdict.ok
    assert special_values.IN_BLOCK in verdict.notes

    def whole(*arrays, chunk):
        del chunk
        return MASKED["ssd_quadratic"](*arrays)

    verdict = at(SSD_CHUNKED, whole, late_nan(40), chunk=16)
    assert verdict.grade == "F"
    assert "y[0, 0, 0, 0, 1]: got nan (NaN), want finite" in verdict.message
    assert at(SSD_CHUNKED, whole, late_nan(15), chunk=16).ok


@pytest.mark.parametrize(("step", "l", "ok"), [(100, 120, True), (140, 150, False)])
def test_a_kernel_of_a_delta_rule_may_have_a_block_of_its_own_size(step, l, ok):
    op = operator_named("delta_rule_chunked")

    def in_one_block(q, k, v, beta, *, chunk):
        del chunk
        y = op.reference(q, k, v, beta, chunk=64)
        return np.where(np.isnan(v).any(-2, keepdims=True), v.dtype.type("nan"), y)

    rng = np.random.default_rng(7)
    q, k, v = (rng.standard_normal((1, 1, 1, l, 2)).astype(np.float32) for _ in range(3))
    k /= 2 * np.sqrt((k**2).sum(-1, keepdims=True))
    v[..., step, 1] = np.nan
    verdict = at(op, in_one_block, [q, k, v, np.ones((1, 1, 1, l), np.float32)], chunk=1)
    assert verdict.ok == ok
    assert special_values.IN_BLOCK in verdict.notes


def test_a_recurrence_by_masked_matrix_products_may_not_spread_nan():
    verdict = at(SSD_RECURRENT, MASKED["ssd_quadratic"], late_nan(40))
    assert verdict.grade == "F"
    (line,) = judged("ssd_recurrent", MASKED["ssd_quadratic"], "nan", types=("float32",))
    assert line.hint.endswith("declared as `ssd_chunked`, it may do so within a chunk")


def test_a_number_in_place_of_nan_is_wrong_in_a_block_too():
    def without(*arrays, chunk):
        return np.nan_to_num(SSD_CHUNKED.reference(*arrays, chunk=chunk))

    assert at(SSD_CHUNKED, without, late_nan(40), chunk=48).grade == "F"


def test_nan_that_no_output_depends_on_may_come_out_and_is_a_note():
    a, b = np.full((1, 5, 2), 0.5, np.float32), np.ones((1, 5, 2), np.float32)
    a[0, 0, 1] = np.nan
    verdict = at(LINEAR_SCAN, lambda a, b: scan(a, b) + 0 * a[:, :1], [a, b])
    assert (verdict.ok, verdict.notes) == (True, (special_values.WITHOUT_EFFECT,))
    wrong = at(LINEAR_SCAN, lambda a, b: scan(a, b) + 0 * a[:, :1] + 1, [a, b])
    assert wrong.grade == "F"
