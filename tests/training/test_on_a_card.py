"""Training with arrays of another library, as on a card: nothing mixes both, and nothing is read
back silently. The same numbers come out, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
from training.apart import CUPY, Apart, apart, called, held, operators_apart
from training.small import setup

from refssm.layers import operators
from refssm.layers.catalog import NAMED
from refssm.training.loop import Plan, moved
from refssm.training.run import Run
from refssm.training.setup import Setup


@pytest.fixture(scope="module")
def ops():
    return operators("reference")


def bits(arrays):
    return {name: np.asarray(held(a) if isinstance(a, Apart) else a) for name, a in arrays.items()}


def equal(one, other):
    one, other = bits(one), bits(other)
    assert one.keys() == other.keys()
    return all(np.array_equal(one[name], other[name]) for name in one)


def trainers(ops, given):
    """The trainer of these settings on arrays of NumPy, and on those of the other kind."""
    plain = given.trainer()
    return plain, replace(plain, ops=operators_apart(ops))


@pytest.mark.parametrize("layer", NAMED)
def test_a_step_of_each_layer_gives_the_same_bits_on_arrays_of_a_card(layer, ops):
    plain, other = trainers(ops, setup(layer=layer, norm="layer", dropout=0.1, sizes={}))
    one, two = plain.start(), other.start()
    assert all(isinstance(p, Apart) for p in two.parameters.values())
    for _ in range(2):
        (one, facts), (two, same) = plain.step(one), other.step(two)
        assert facts == same
    assert equal(one.parameters, two.parameters)
    assert equal(one.moments, two.moments)
    assert plain.test(one) == other.test(two)
    assert called <= CUPY


@pytest.mark.parametrize("norm", ["batch", "rms"])
def test_norms_and_scalar_steps_do_too(norm, ops):
    given = setup(norm=norm, prenorm=norm == "batch", pieces=3)
    plain, other = trainers(ops, replace(given, start={"steps": "scalar", "frozen": "system"}))
    (one, _), (two, _) = plain.step(plain.start()), other.step(other.start())
    assert equal(one.parameters, two.parameters)
    assert equal(one.averages, two.averages)


@pytest.mark.parametrize("task", ["induction_head", "delay", "pendulum"])
def test_symbols_answers_of_each_step_and_gaps_do_too(task, ops):
    plan = Plan(steps=2, batch=3, warm_up=0)
    how = {"h": 4, "depth": 1, "norm": "layer", "sizes": {"n": 2}, "ops": "reference"}
    plain, other = trainers(ops, Setup(task, "s5_irregular", plan=plan, **how))
    (one, facts), (two, same) = plain.step(plain.start()), other.step(other.start())
    assert facts == same
    assert equal(one.parameters, two.parameters)


@pytest.mark.parametrize("layer", [name for name, layer in NAMED.items() if layer.causal])
def test_states_are_where_the_parameters_are(layer, ops):
    kind = NAMED[layer]
    p = kind.init(np.random.default_rng(0), h=3, **kind.sizes)
    u = np.random.default_rng(1).standard_normal((2, 5, 3))
    beside = [np.ones((2, 5)) for _ in kind.beside]
    y, states = kind.stateful(ops, p, u, *beside, kind.rest(p, (2,)))
    q, on = p.map(apart), operators_apart(ops)
    z, same = kind.stateful(on, q, apart(u), *map(apart, beside), kind.rest(q, (2,)))
    assert np.array_equal(y, held(z))
    assert all(np.array_equal(a, held(b)) for a, b in zip(states, same, strict=True))


def test_an_array_of_numpy_beside_one_of_the_card_is_refused():
    x = apart(np.ones(3))
    for mixed in (
        lambda: x + np.ones(3),
        lambda: np.ones(3) * x,
        lambda: np.concatenate([x, np.ones(3)]),
        lambda: np.asarray(x),
        lambda: x.__setitem__(0, np.zeros(1)),
    ):
        with pytest.raises(TypeError):
            mixed()
    assert held(x + np.float64(1)).tolist() == [2, 2, 2]


def test_a_state_goes_to_a_checkpoint_and_back_as_it_is(ops, tmp_path):
    plain, other = trainers(ops, setup())
    state, _ = other.step(other.start())
    stored = moved(state, other.fetched)
    assert all(type(a) is np.ndarray for a in stored.parameters.values())
    again = moved(stored, other.placed)
    (one, _), (two, _) = other.step(state), other.step(again)
    assert equal(one.parameters, two.parameters)
    assert equal(plain.step(stored)[0].parameters, one.parameters)


def test_a_model_on_no_card_is_a_sentence(monkeypatch):
    pytest.importorskip("array_api_compat", reason="pip install array-api-compat")
    from refssm_gpu._launching import arrays, missing

    monkeypatch.delenv("REFSSM_GPU", raising=False)
    monkeypatch.setattr(missing, "_lack", lambda: "no NVIDIA driver is loaded here")
    with pytest.raises(missing.NoCard, match=r"^a model .* and no NVIDIA driver is loaded here$"):
        arrays.placed(np.ones(2))


def of_run(folder, ops, steps):
    """A run of so many steps on arrays of the card, not begun."""
    run = Run(setup(steps), folder, every=2)
    run.trainer = replace(run.trainer, ops=operators_apart(ops))
    run.state = run.trainer.start()
    return run


def test_a_run_on_a_card_is_saved_and_goes_on_with_the_same_bits(ops, tmp_path):
    first = of_run(tmp_path / "card", ops, 4)
    first.begin()
    steps = first.steps()
    for _ in range(2):
        next(steps)
    steps.close()  # killed after the test of step 2
    again = of_run(tmp_path / "card", ops, 4)
    again.resume()
    assert again.state.step == 2
    assert all(isinstance(p, Apart) for p in again.state.parameters.values())
    assert len([*again.steps()]) == 2
    plain = Run(setup(4), tmp_path / "plain", every=2)
    plain.begin()
    assert len([*plain.steps()]) == 4
    assert equal(again.state.parameters, plain.state.parameters)
    assert equal(again.state.moments, plain.state.moments)
