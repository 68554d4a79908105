from collections import Counter

import pytest
from honest import implementations
from rotation import SEEDS, of_turn, one_of_each_kind, seed_of_turn
from selftest import soak

from refssm.catalog import OPERATORS
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.checks.checks import PROFILES, checks_of, default_types
from refssm.conformance.judging.expected import remembering
from refssm.conformance.planted import planted_bugs
from refssm.conformance.running.own_faults import REPORT
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings

BUGS = planted_bugs()
HONEST = implementations()
QUICK = PROFILES["quick"]
SHORT = one_of_each_kind(BUGS)


pytestmark = pytest.mark.usefixtures("their_warnings_are_not_ours")


@pytest.fixture(autouse=True, scope="module")
def _what_is_expected_is_worked_out_once():
    with remembering():
        yield


def results(found, **settings):
    """Judge functions of this process, without saved files and without shrinking."""
    session = Session(
        InProcess([found]), "here", Settings(folder=None, shrink=False, hints=False, **settings)
    )
    return list(results_of(session))


def in_short_run(short: bool):
    return pytest.mark.short if short else pytest.mark.long


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(
            d, id=str(d), marks=[pytest.mark.xdist_group(d.op), in_short_run(str(d) in SHORT)]
        )
        for d in BUGS
    ],
)
def test_every_planted_bug_is_caught_by_the_check_it_names(bug):
    name, _, dtype = bug.caught_by.rstrip("]").partition("[")
    lines = results(bug.found(), only_checks=(name,), types=(dtype,))
    caught = [line for line in lines if line.failed]
    assert [line.dtype for line in caught] == [dtype]
    assert caught[0].message
    assert not any(REPORT in told for line in lines for told in (line.message, *line.notes))


def test_planted_bugs_have_names_of_their_own_and_a_dozen_for_every_operator():
    count = Counter(d.op for d in BUGS)
    assert all(count[op.name] >= (12 if op.inputs else 8) for op in OPERATORS)
    assert len({str(d) for d in BUGS}) == len(BUGS)


def in_turn(op, seed):
    """One seed for a twelfth of the operators, the others in the next rotations."""
    return seed == seed_of_turn() and of_turn(f"honest {op}")


@pytest.mark.parametrize(
    ("op", "seed"),
    [
        pytest.param(op, s, id=f"{op}-{s}", marks=in_short_run(in_turn(op, s)))
        for op in OPERATORS
        for s in range(SEEDS)
    ],
)
def test_no_honest_implementation_is_rejected(op, seed):
    honest, passed = soak.here(op.name), set()
    for check in checks_of(op, QUICK, default_types(op, QUICK), vjp=False):
        if check.strategy is None and seed:  # conduct checks have only one case
            continue
        count = max(1, check.count // (6 if seed else 2))
        seen = soak.judged(check, honest, soak.usual(check, count, seed))
        assert seen.rejected == [], check.id
        passed |= seen.passed
    assert passed == {h.name for h in honest} or seed  # few cases: some may decline all


def test_every_operator_has_three_honest_implementations():
    count = Counter(h.op for h in HONEST)
    assert all(count[op.name] >= 3 for op in OPERATORS)
