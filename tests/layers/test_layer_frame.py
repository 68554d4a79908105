"""What every layer's declaration says is true of what it makes."""

from dataclasses import replace

import numpy as np
import pytest

import refssm
from refssm.catalog import OPERATORS
from refssm.layers import Layer, operators
from refssm.layers.catalog import LAYERS, NAMED
from refssm.layers.s5 import S5_LAYER
from refssm.training.optimizer import GROUPS

CAUSAL = [layer for layer in LAYERS if layer.causal]
OTHERS = [layer for layer in LAYERS if not layer.causal]
each_layer = pytest.mark.parametrize("layer", LAYERS, ids=str)
each_causal_layer = pytest.mark.parametrize("layer", CAUSAL, ids=str)


def small(layer):
    """A layer with two channels and small sizes."""
    sizes = {name: min(4, most) for name, most in layer.sizes.items()}
    return layer.init(np.random.default_rng(0), h=2, **sizes)


def length(dim, letters):
    """`2h` is twice h, `2` is two."""
    number = dim.rstrip("abcdefghijklmnopqrstuvwxyz")
    return int(number or 1) * (letters | {"": 1})[dim.removeprefix(number)]


@each_layer
def test_parameters_have_the_shapes_that_are_declared(layer):
    p, letters = small(layer), {}
    for name, array in p.arrays().items():
        dims = layer.kind.__dataclass_fields__[name].metadata["shape"]
        assert len(dims) == array.ndim, name
        letters |= {d: s for d, s in zip(dims, array.shape, strict=True) if d.isalpha()}
    for name, array in p.arrays().items():
        dims = layer.kind.__dataclass_fields__[name].metadata["shape"]
        assert array.shape == tuple(length(d, letters) for d in dims), name
    assert letters["h"] == 2


@each_layer
def test_parameters_are_double_and_every_one_has_a_start_and_a_group(layer):
    for name, array in small(layer).arrays().items():
        told = layer.kind.__dataclass_fields__[name].metadata
        assert array.dtype in (np.float64, np.complex128), name
        assert np.isfinite(array).all(), name
        assert told["start"], name
        assert told["group"] in GROUPS, name


@each_layer
def test_the_same_seed_gives_the_same_layer(layer):
    for a, b in zip(*(small(layer).arrays().values() for _ in range(2)), strict=True):
        assert np.array_equal(a, b)


@each_causal_layer
def test_a_step_is_a_piece_of_length_one(layer):
    p, u = small(layer), np.random.default_rng(1).standard_normal((3, 2))
    beside = [np.array([0.5, 1.0, 2.0]) for _ in layer.beside]
    y, state = layer.step(refssm, p, u, *beside, layer.rest(p, (3,)))
    given = [u[:, None, :], *(x[:, None] for x in beside)]
    whole, after = layer.stateful(refssm, p, *given, layer.rest(p, (3,)))
    assert np.array_equal(y, whole[:, 0, :])
    assert all(np.array_equal(a, b) for a, b in zip(state, after, strict=True))


@each_causal_layer
def test_an_empty_piece_leaves_the_state(layer):
    p, u = small(layer), np.random.default_rng(1).standard_normal((4, 2))
    beside = [np.array([0.5, 1.0, 2.0, 0.0]) for _ in layer.beside]
    _, state = layer.stateful(refssm, p, u, *beside, layer.rest(p))
    y, after = layer.stateful(refssm, p, u[:0], *(x[:0] for x in beside), state)
    assert y.shape == (0, 2)
    assert all(np.array_equal(a, b) for a, b in zip(state, after, strict=True))


@each_layer
def test_a_layer_has_states_and_all_that_steps_need_or_nothing_of_it(layer):
    assert bool(layer.states) == layer.causal


@pytest.mark.parametrize("layer", OTHERS, ids=str)
def test_a_layer_without_states_says_why_when_it_is_asked_to_step(layer):
    p, u = small(layer), np.ones((4, 2))
    why = "reads the future" if layer.reads_future else "kernel depends on the length of the signal"
    for call in (
        lambda: layer.rest(p),
        lambda: layer.step(refssm, p, u[0], ()),
        lambda: layer.stateful(refssm, p, u, ()),
    ):
        with pytest.raises(TypeError, match=f"{why} has no states and no steps; call"):
            call()


@pytest.mark.parametrize("layer", OTHERS, ids=str)
def test_an_empty_signal_has_an_empty_output(layer):
    assert layer.forward(refssm, small(layer), np.zeros((3, 0, 2))).shape == (3, 0, 2)


def test_layers_are_known_by_their_names():
    assert list(NAMED) == [str(layer) for layer in LAYERS]


def test_what_a_mirror_lacks_comes_from_the_reference():
    ops = operators("jit")
    assert ops.diagonal_ssm_real is not refssm.diagonal_ssm_real
    lacking = [op for op in OPERATORS if "jit" in op.lacks]
    assert lacking
    assert all(getattr(ops, op.name) is getattr(refssm, op.name) for op in lacking)


def test_a_layer_gives_one_function_or_forward_and_gradient():
    derived = {"vjp": S5_LAYER.vjp, "forward": S5_LAYER.forward}
    with pytest.raises(
        TypeError, match=r"layer s5: wanted `run`, or `forward` and `vjp`; got none"
    ):
        Layer("s5", S5_LAYER.kind, S5_LAYER.init, **derived)
    with pytest.raises(TypeError, match="got run, vjp"):
        replace(S5_LAYER, vjp=lambda *given: None)


def test_a_layer_with_another_function_has_another_forward_and_gradient():
    def twice(ops, q, u):
        y, back = S5_LAYER.run(ops, q, u)
        return 2 * y, lambda dy: back(2 * dy)

    p, u = S5_LAYER.init(np.random.default_rng(0), h=2, n=2), np.ones((3, 2))
    other = replace(S5_LAYER, run=twice)
    assert np.array_equal(other.forward(refssm, p, u), 2 * S5_LAYER.forward(refssm, p, u))
    given = refssm, u, p, u
    for one, two in zip(
        S5_LAYER.vjp(*given)[0].arrays().values(),
        other.vjp(*given)[0].arrays().values(),
        strict=True,
    ):
        assert np.array_equal(two, 2 * one)


@pytest.mark.parametrize("name", ["D", "b"])
def test_a_parameter_of_more_precision_is_not_rounded(name):
    p = S5_LAYER.init(np.random.default_rng(0), h=2, n=2)
    single = p.map(lambda x: x.astype(np.complex64 if x.dtype.kind == "c" else np.float32))
    mixed = replace(single, **{name: getattr(p, name)})
    y = S5_LAYER.forward(refssm, mixed, np.ones((3, 2), np.float32))
    assert y.dtype == np.float64
