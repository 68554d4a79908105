"""The judge on layers: oracles certify ours, honest programs pass, planted bugs are caught."""

import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from honest.layers import IMPLEMENTATIONS

from refssm.catalog import OPERATORS, judged, resumed
from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.checks.checks import PROFILES, checks_of, default_types
from refssm.conformance.judging.certificate import certify
from refssm.conformance.judging.expected import remembering
from refssm.conformance.planted.layers import BUGS
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.layers.catalog import LAYERS
from refssm.layers.catalog import OPERATORS as OF_LAYERS

SLOW = ("mamba_layer", "s4_layer")  # their certificates take more than a second
EACH = pytest.mark.parametrize("op", OF_LAYERS, ids=str)


@pytest.fixture(autouse=True)
def _their_warnings_are_not_ours():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def results(*found, **settings):
    """Judge functions of this process; only the first counts, the others are what a law calls."""
    first, *others = found
    worker = InProcess([first, *(replace(other, judged=False) for other in others)])
    asked = Settings(folder=None, shrink=False, hints=False, **settings)
    return list(results_of(Session(worker, "here", asked)))


def certified():
    """Every operator of a layer; slow ones are left to the long run."""
    for op in OF_LAYERS:
        marks = [pytest.mark.long] if op.name in SLOW else []
        yield pytest.param(op, id=op.name, marks=marks)


def programs(honest):
    """The honest program, and its twin that starts from a state."""
    other = resumed(operator_named(honest.op))
    twins = [h for h in IMPLEMENTATIONS if other and h.op == other.name != honest.op]
    same = [h for h in twins if h.name == honest.name] or twins[:1]
    return [h.found() for h in (honest, *same)]


def test_every_layer_is_an_operator_and_if_causal_one_that_starts_from_its_states():
    names = [op.name for op in OF_LAYERS]
    for layer in LAYERS:
        assert f"{layer}_layer" in names
        whole = operator_named(f"{layer}_layer")
        if not layer.causal:
            assert resumed(whole) is None
            assert not {"causal", "state"} & whole.traits
            continue
        piece = operator_named(f"{layer}_layer_stateful")
        assert {"causal", "state"} <= whole.traits
        assert resumed(whole) is piece
        assert [*piece.inputs][: len(whole.inputs)] == [*whole.inputs]
        assert piece.outputs == ("y", *layer.states)
        assert all(f.metadata["domain"] for f in layer.kind.__dataclass_fields__.values())


def test_layers_are_judged_but_not_in_the_catalog():
    assert judged() == (*OPERATORS, *OF_LAYERS)
    assert not {op.name for op in OF_LAYERS} & {op.name for op in OPERATORS}


@pytest.mark.parametrize("op", [*certified()])
def test_the_oracle_of_every_layer_certifies_its_output_and_its_gradient(op):
    assert certify(op) == ""


def rejected(op, profile):
    """What the judge says against honest programs, all of them on the same cases."""
    told = []
    with_states = {h: InProcess(programs(h)) for h in IMPLEMENTATIONS if h.op == op.name}
    for check in checks_of(op, profile, default_types(op, profile), vjp=op.differentiable):
        judges = [
            (h, check.judging(Candidate(op, worker, worker.found[0]).judged_in(check.dtype)))
            for h, worker in with_states.items()
            if h.vjp is not None or not check.rule.of_gradient
        ]

        with remembering():
            for case in check.cases().cases(check.count, 7):
                for h, judge in judges:
                    verdict = judge(case)
                    if not verdict.ok:
                        told.append(f"{check.id} {h}: {case}: {verdict.message}")
    return told


@pytest.mark.long
@EACH
def test_no_honest_layer_is_rejected_on_a_few_cases(op):
    few = replace(PROFILES["default"], value=2, double=0, gradient=1, law=0)
    assert rejected(op, few) == []


@pytest.mark.long
@EACH
def test_no_honest_layer_is_rejected(op):
    assert rejected(op, PROFILES["default"]) == []


def test_a_causal_layer_has_four_honest_programs_and_all_others_have_three():
    count = Counter(h.op for h in IMPLEMENTATIONS)
    causal = {op.name for op in OF_LAYERS if "causal" in op.traits and not op.form}
    assert all(count[op.name] == (4 if op.name in causal else 3) for op in OF_LAYERS)


def one_of_each_kind():
    """One planted bug for each check and layer family, for the short run."""
    kinds = {}
    for bug in BUGS:
        kinds.setdefault((bug.caught_by.partition("[")[0]), bug)
    return {str(bug) for bug in kinds.values()}


SHORT = one_of_each_kind()


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(b, id=str(b), marks=pytest.mark.short if str(b) in SHORT else pytest.mark.long)
        for b in BUGS
    ],
)
def test_every_planted_bug_in_a_layer_is_caught_by_the_check_it_names(bug):
    name, _, dtype = bug.caught_by.rstrip("]").partition("[")
    lines = results(bug.found(), only_checks=(name,), types=(dtype,))
    assert [line.dtype for line in lines if line.failed] == [dtype]


def test_every_layer_has_a_dozen_planted_bugs_with_names_of_their_own():
    count = Counter(bug.op.removesuffix("_stateful") for bug in BUGS)
    assert all(count[f"{layer}_layer"] >= 12 for layer in LAYERS)
    assert len({str(bug) for bug in BUGS}) == len(BUGS)


@pytest.mark.parametrize("layer", [x for x in LAYERS if x.causal], ids=str)
def test_a_state_that_is_not_carried_fails_the_law_split(layer):
    whole = next(h for h in IMPLEMENTATIONS if h.op == f"{layer}_layer")
    for place in range(len(layer.states)):
        piece = next(h for h in IMPLEMENTATIONS if h.op == f"{layer}_layer_stateful")

        def lost(*args, piece=piece, place=place):
            y, *states = piece.forward(*args)
            states[place] = 0 * states[place]
            return y, *states

        found = [whole.found(), replace(piece.found(), forward=lost)]
        assert all(r.failed for r in results(*found, only_checks=("split",)))


def test_a_parameter_with_a_batch_axis_is_refused():
    import refssm.layers

    (rnn,) = (layer for layer in LAYERS if layer.name == "rnn")
    p = rnn.init(np.random.default_rng(0), h=2, n=3)
    arrays = list(p.arrays().values())
    arrays[0] = np.stack([arrays[0]] * 2)
    with pytest.raises(ValueError, match="without batch axes"):
        refssm.layers.rnn_layer(np.ones((2, 5, 2)), *arrays)


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_domains_are_about_as_large_as_what_init_draws(layer):
    p = layer.init(np.random.default_rng(0), h=16)
    for name, array in p.arrays().items():
        domain = layer.kind.__dataclass_fields__[name].metadata["domain"]
        a, b = np.random.default_rng(1).random((2, *array.shape))
        drawn = [domain.draw(m, a, b, not np.iscomplexobj(array)) for m in domain.maps]
        fitted = [x if domain.fit is None else domain.fit(x) for x in drawn]
        largest = max(np.abs(x).max() for x in fitted)
        assert np.abs(array).max() <= 4 * max(1, largest), name
