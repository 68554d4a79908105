"""Options of the start: each does what it says, and a layer refuses what it does not know."""

import re
from dataclasses import replace

import numpy as np
import pytest
from training.small import setup

from refssm.layers.catalog import LAYERS, NAMED
from refssm.training.loop import Trainer
from refssm.training.setup import starts_of
from refssm.training.tasks import TrainingError

WORDS = {
    "poles": ["hippo-n", "antisymmetric", "random", "lin", "inv", "quad", "real", "legs"],
    "measure": ["legs", "legt", "lagt", "fourier"],
    "steps": ["vector", "scalar"],
    "bias": ["zero", "alibi"],
    "recurrence": ["uniform", "hippo"],
    "frozen": ["none", "system"],
}
NUMBERS = {
    "dt_min": 1e-4, "dt_max": 0.5, "gamma": 1.5, "r_min": 0.5, "r_max": 0.9, "max_phase": 1.0,
}  # fmt: skip
CASES = [
    pytest.param(layer, name, value, id=f"{layer}-{name}={value}")
    for layer in LAYERS
    for name in starts_of(layer)
    for value in WORDS.get(name) or [NUMBERS[name]]
]


def trainer(layer, **start):
    sizes = {name: min(4, most) for name, most in NAMED[layer].sizes.items()}
    return setup(layer=layer, sizes=sizes, start=start, norm="layer").trainer()


def trained(made, steps=3):
    state = made.start()
    for _ in range(steps):
        state, _ = made.step(state)
    return state


def in_layers(parameters, *names):
    return {n: a for n, a in parameters.items() if n.rpartition(".")[2] in names}


@pytest.mark.parametrize(("layer", "name", "value"), CASES)
def test_every_option_changes_the_start_or_is_the_usual_one_and_trains(layer, name, value):
    usual, made = trainer(str(layer)), trainer(str(layer), **{name: value})
    one, two = usual.start().parameters, made.start().parameters
    assert one.keys() == two.keys()
    changed = any(not np.array_equal(one[n], a) for n, a in two.items())
    plain = value == starts_of(layer)[name] or name == "frozen"
    same = (name, value) in (("poles", "legs"), ("poles", "hippo-n"))  # two names of one system
    assert changed != plain or same
    end = trained(made).parameters
    assert all(np.isfinite(a).all() for a in end.values())


@pytest.mark.parametrize("layer", [x for x in LAYERS if "frozen" in starts_of(x)], ids=str)
def test_a_frozen_system_stays_bit_for_bit_and_all_else_is_trained(layer):
    made = trainer(str(layer), frozen="system")
    begin, end = made.start().parameters, trained(made).parameters
    system = {n for n, kind in made.model.groups().items() if kind == "system"}
    assert system
    assert {n for n in begin if begin[n].tobytes() == end[n].tobytes()} >= system
    moved = {n for n in begin if (begin[n] != end[n]).any()}
    assert moved & system == set()
    assert {"encoder.W", "decoder.W"} <= moved
    free = trainer(str(layer))
    assert {n for n in system if (free.start().parameters[n] != trained(free).parameters[n]).any()}


def test_a_frozen_system_does_not_count_in_the_norm_of_the_gradient():
    free, frozen = trainer("s5"), trainer("s5", frozen="system")
    given = free.task.batch(free.start().rng, 8)
    grads = free.gradients(free.start(), given, None)[2]
    kept = [g for n, g in grads.items() if n not in frozen.fixed]
    want = np.sqrt(sum((np.abs(g.astype(complex)) ** 2).sum() for g in kept))
    masks = free.model.masks(free.start().rng, (1,), np.float32)
    assert masks is not None  # dropout changes the gradient, so it is left out here
    plain = replace(frozen, model=replace(frozen.model, dropout=0.0))
    norm = plain.step(plain.start())[1]["gradient"]
    assert abs(norm - want) <= 2.0**-20 * want  # squares of numbers in single precision


@pytest.mark.parametrize("layer", [x for x in LAYERS if "steps" in x.starts], ids=str)
def test_a_scalar_step_stays_one_number_and_vector_steps_move_apart(layer):
    names = ("log_dt", "log_dt_future")
    for steps, one in (("scalar", True), ("vector", False)):
        for parameters in (
            (made := trainer(str(layer), steps=steps)).start().parameters,
            trained(made).parameters,
        ):
            found = in_layers(parameters, *names)
            assert found
            assert all((np.ptp(a) == 0) == one for a in found.values())
    begin, end = made.start().parameters, trained(made).parameters
    assert all((begin[n] != end[n]).all() for n in in_layers(begin, *names))


def test_a_step_that_is_one_number_moves_by_the_gradient_of_that_number(monkeypatch):
    """Its gradient is the slope of the loss along equal changes of all entries."""
    made = trainer("s5", steps="scalar")
    g = np.array([1.0, -2.0, 4.0, 1.0], np.float32)
    held = made._held("blocks.0.layer.log_dt", g)
    assert np.linalg.norm(held) == abs(g.sum())
    assert (held == held[0]).all()
    assert (made._held("blocks.0.layer.D", g) == g).all()
    state = trained(made, 1)
    monkeypatch.setattr(Trainer, "_held", lambda self, name, g: g)
    loose = trained(made, 1)
    assert np.ptp(state.parameters["blocks.0.layer.log_dt"]) == 0
    assert np.ptp(loose.parameters["blocks.0.layer.log_dt"]) > 0


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_an_option_that_a_layer_does_not_know_is_refused_with_those_it_knows(layer):
    known = ", ".join(starts_of(layer))
    sentence = f"wanted one of {known}" if known else "there is none"
    with pytest.raises(TrainingError, match=re.escape(f"start of {layer} 'x'; {sentence}")):
        trainer(str(layer), x=1.0)


@pytest.mark.parametrize("change", [{"r_max": 0.0}, {"max_phase": 0.0}, {"max_phase": -1.0}])
def test_a_ring_without_a_logarithm_is_refused(change):
    with pytest.raises(TrainingError, match="lru: wanted 0 < r_max and 0 < max_phase ≤ 2π, got"):
        trainer("lru", **change)
