import warnings
from collections import Counter

import numpy as np
import pytest

from refssm.catalog import OPERATORS
from refssm.conformance.deviations import deviations
from refssm.conformance.expectation import remembering
from refssm.conformance.honest import implementations
from refssm.conformance.session import Session
from refssm.conformance.worker import InProcess

DEVIATIONS = deviations()
HONEST = implementations()
SEEDS = 5  # `make soak` takes 300
# those of one operator in one process, seed by seed: what is expected is worked out once for all
SEEDED = [
    pytest.param(h, seed, id=f"{h}-{seed}", marks=pytest.mark.xdist_group(op.name))
    for op in OPERATORS
    for seed in range(SEEDS)
    for h in HONEST
    if h.op == op.name
]


@pytest.fixture(autouse=True)
def _their_warnings_are_not_ours():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(autouse=True, scope="module")
def _what_is_expected_is_worked_out_once():
    with remembering():
        yield


def results(found, **settings):
    """Judge functions of this process, nothing saved, nothing shrunk."""
    session = Session(InProcess([found]), "here", folder=None, shrink=False, **settings)
    return list(session.run())


@pytest.mark.parametrize(
    "deviation",
    [pytest.param(d, id=str(d), marks=pytest.mark.xdist_group(d.op)) for d in DEVIATIONS],
)
def test_every_planted_bug_is_caught_by_the_check_it_names(deviation):
    name, _, dtype = deviation.caught_by.rstrip("]").partition("[")
    lines = results(deviation.found(), only_checks=(name,), types=(dtype,))
    caught = [line for line in lines if line.failed]
    assert [line.dtype for line in caught] == [dtype]
    assert caught[0].message


def test_planted_bugs_have_names_of_their_own_and_a_dozen_for_every_operator():
    count = Counter(d.op for d in DEVIATIONS)
    assert all(count[op.name] >= (12 if op.inputs else 8) for op in OPERATORS)
    assert len({str(d) for d in DEVIATIONS}) == len(DEVIATIONS)


@pytest.mark.parametrize(("honest", "seed"), SEEDED)
def test_no_honest_implementation_is_rejected(honest, seed):
    if honest.needs:
        pytest.importorskip(honest.needs)
    lines = results(honest.found(), seed=seed, profile="quick")
    assert [line for line in lines if line.failed] == []
    assert any(line.verdict == "pass" for line in lines)


def test_every_operator_has_three_honest_implementations():
    count = Counter(h.op for h in HONEST)
    assert all(count[op.name] >= 3 for op in OPERATORS)
