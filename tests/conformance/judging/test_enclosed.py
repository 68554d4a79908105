import numpy as np
import pytest

from refssm import oracle
from refssm._declaration.adapted import adapted, adapters_of, refuse_unfit
from refssm.adapters import dt_and_A, halves, log_dt, neg_exp, neg_softplus
from refssm.catalog import OPERATORS
from refssm.cauchy import CAUCHY_KERNEL
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.checks.checks import types_of
from refssm.conformance.gauges.contracts import bounds
from refssm.conformance.judging import expected
from refssm.conformance.judging.certificate import certify
from refssm.conformance.judging.expected import enclosed_values
from refssm.scan import LINEAR_SCAN
from refssm.ssd import SSD_QUADRATIC, SSD_RECURRENT, SSD_STEP

U = 2.0**-53
QUICK = [op for op in OPERATORS if expected._quick(op, 12)]
PARAMETERS = (
    [log_dt()], [neg_exp("w")], [neg_softplus("w")], [halves()],
    [log_dt(), neg_exp("w"), halves()],
)  # fmt: skip


def _fits(op, adapters):
    """Whether the operator has the arguments of these adapters."""
    try:
        for adapter in adapters:
            refuse_unfit(op, adapter)
    except ValueError:
        return False
    return True


ADAPTED = [adapted(op, given) for op in QUICK for given in PARAMETERS if _fits(op, given)]
ADAPTED += [adapted(SSD_STEP, [dt_and_A()])]


@pytest.fixture(autouse=True)
def needs_flint():
    return pytest.importorskip("flint", reason="balls need python-flint: '.[flint]'")


def _case(op, seed, sizes=(12, 3, 4, 2)):
    """A case in double precision, its gauges, and its exact values by the oracle."""
    dtype = types_of(op)[-1]
    case = ordinary_case(op, dtype, sizes, seed)
    gauged = bounds(op, case.arrays, case.statics, None, unit=U, floor=2.0**-1022)
    return case, gauged


def _named(op):
    return f"{op}-{'-'.join(map(str, adapters_of(op)))}"


def _each(ops):
    """Those with an enclosure for any length, and as a long test those for few steps only."""
    for op in ops:
        always = expected._quick(op, expected.SHORT + 1)
        yield op if always else pytest.param(op, marks=pytest.mark.long)


@pytest.mark.parametrize("op", [*_each([*QUICK, *ADAPTED])], ids=_named)
def test_values_from_balls_are_those_of_the_oracle(op):
    cubic = op.contract.judges_whole_matrices
    for seed in (1, 2):
        case, gauged = _case(op, seed, (4, 3, 3, 2) if cubic else (12, 3, 4, 2))
        values = enclosed_values(op, case.arrays, case.statics, gauged, U)
        assert values is not None
        right = oracle.evaluate(op, *case.arrays, **case.statics)
        for y, exact, gauge in zip(values, right, gauged, strict=True):
            assert y.shape == exact.shape
            assert y.dtype == exact.dtype
            assert (np.abs(y - exact) <= 2 * expected.TIGHT * U * gauge.k0).all()


def test_steps_and_rates_of_a_whole_scan_have_the_enclosure_of_the_scan():
    from refssm.enclosure import middles  # needs flint

    op = adapted(SSD_RECURRENT, [dt_and_A()])
    case, (gauge,) = _case(op, 1)
    ((values, radii),) = middles(op, case.arrays, case.statics, 192)
    (right,) = oracle.evaluate(op, *case.arrays, **case.statics)
    assert (radii <= U * U * gauge.k0.ravel()).all()
    assert (np.abs(values.reshape(right.shape) - right) <= U * U * gauge.k0).all()


def test_adapters_of_all_kinds_have_enclosures():
    assert len(ADAPTED) > 100


def test_balls_that_are_too_large_are_not_used(monkeypatch):
    case, gauged = _case(CAUCHY_KERNEL, 1)
    monkeypatch.setattr(expected, "BITS", (60,))
    assert enclosed_values(CAUCHY_KERNEL, case.arrays, case.statics, gauged, U) is None


def test_a_midpoint_beyond_every_double_is_not_used():
    large = [np.array([1e300 + 0j]), np.array([-1e-10 + 0j]), np.array([0j])]  # v/(z − w)
    gauged = bounds(CAUCHY_KERNEL, large, {}, None, unit=U, floor=2.0**-1022)
    assert np.isinf(gauged[0].k0).all()
    assert enclosed_values(CAUCHY_KERNEL, large, {}, gauged, U) is None


def test_an_enclosure_that_adds_up_all_of_the_past_is_used_for_few_steps_only():
    for length, used in ((expected.SHORT, True), (expected.SHORT + 1, False)):
        case, gauged = _case(LINEAR_SCAN, 1, (length, 3, 4, 2))
        values = enclosed_values(LINEAR_SCAN, case.arrays, case.statics, gauged, U)
        assert (values is not None) == used


def test_without_flint_the_oracle_gives_the_same_values(monkeypatch):
    case, _ = _case(CAUCHY_KERNEL, 1)
    with_balls = expected.expect(CAUCHY_KERNEL, case.arrays)
    monkeypatch.setattr(expected, "find_spec", lambda name: None)
    without = expected.expect(CAUCHY_KERNEL, case.arrays)
    assert (np.abs(with_balls[0].value - without[0].value) <= U**2 * without[0].k0 * 2048).all()


def test_a_wrong_enclosure_changes_no_certificate(monkeypatch):
    monkeypatch.setattr(expected, "enclosed_values", lambda *_: 1 / 0)
    assert certify(CAUCHY_KERNEL) == ""


def test_the_attention_form_is_judged_by_the_oracle_of_the_recurrence(monkeypatch):
    case, _ = _case(SSD_QUADRATIC, 3, (40, 3, 4, 2))
    right = oracle.evaluate(SSD_QUADRATIC, *case.arrays)[0]
    asked, evaluate = [], oracle.evaluate
    monkeypatch.setattr(
        oracle, "evaluate", lambda op, *arrays: asked.append(op) or evaluate(op, *arrays)
    )
    gauge = expected.expect(SSD_QUADRATIC, case.arrays)[0]
    assert asked == [SSD_RECURRENT]
    assert (np.abs(gauge.value - right) <= U * U * gauge.k0).all()
