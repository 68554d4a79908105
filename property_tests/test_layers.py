"""Laws of every layer: the whole, pieces and steps; the reference and mirrors; single precision."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from layered import (
    CAUSAL,
    DRAWN,
    OPS,
    Example,
    U,
    each_causal_layer,
    each_layer,
    each_role,
    examples,
    few,
    fixed,
    gradients,
    inner,
    inputs,
    like,
    size,
)

import refssm


def in_pieces(layer, ops, p, u, cuts):
    """The output, computed piece by piece; a piece may be empty."""
    state, found = layer.rest(p, u.shape[:-2]), []
    for a, b in zip([0, *cuts], [*cuts, u.shape[-2]], strict=True):
        y, state = layer.stateful(ops, p, u[..., a:b, :], state)
        found.append(y)
    return np.concatenate(found, axis=-2)


def in_steps(layer, ops, p, u):
    state, found = layer.rest(p, u.shape[:-2]), []
    for k in range(u.shape[-2]):
        y, state = layer.step(ops, p, u[..., k, :], state)
        found.append(y)
    return np.stack(found, axis=-2)


def slip(example, program):
    """|φ(program) − φ(reference)| in units of 2 N u S: each of the two may be off by N u S."""
    layer, p, u = example.layer, example.parameters, example.signal
    y = layer.forward(refssm, p, u)
    dy = like(example.rng(2), y)
    found = program(layer, p, u)
    assert (found.shape, found.dtype) == (y.shape, y.dtype)
    scale = size(dy, y, gradients(layer, refssm, dy, p, u), inputs(p, u))
    return float(abs(inner(dy, found - y))) / (2 * example.roundings(p) * U * scale)


@pytest.mark.long
@each_layer
@given(data=st.data())
@few
def test_the_reference_and_the_mirrors_give_one_output(layer, data):
    example = data.draw(examples(layer))
    assert slip(example, lambda layer, p, u: layer.forward(OPS["jit"], p, u)) <= 1


@pytest.mark.long
@each_role
@each_causal_layer
@given(data=st.data())
@few
def test_the_whole_pieces_and_steps_give_one_output(layer, role, data):
    example, ops = data.draw(examples(layer)), OPS[role]
    cuts = sorted(data.draw(st.lists(st.integers(0, example.l), max_size=2)))
    assert slip(example, lambda layer, p, u: in_pieces(layer, ops, p, u, cuts)) <= 1
    assert slip(example, lambda layer, p, u: in_steps(layer, ops, p, u)) <= 1


@pytest.mark.long
@each_role
@each_layer
@given(data=st.data())
@few
def test_single_precision_stays_single_and_is_as_near_as_its_roundings_allow(layer, role, data):
    example, ops = data.draw(examples(layer)), OPS[role]
    p, u = example.parameters.map(single), single(example.signal)
    y, dy = layer.forward(ops, p, u), single(like(example.rng(2), u))
    found = gradients(layer, ops, dy, p, u)
    assert y.dtype == np.float32
    assert [(g.shape, g.dtype) for g in found] == [(x.shape, x.dtype) for x in inputs(p, u)]
    exact_p, exact_u = p.map(double), double(u)
    exact = layer.forward(refssm, exact_p, exact_u)
    scale = size(dy, exact, gradients(layer, refssm, double(dy), exact_p, exact_u), inputs(p, u))
    assert abs(inner(dy, y - exact)) <= example.roundings(p) * 2.0**-24 * scale


def single(x):
    return x.astype(np.complex64 if np.iscomplexobj(x) else np.float32)


def double(x):
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


@each_causal_layer
def test_at_the_usual_sizes_pieces_give_the_output_of_the_whole(layer):
    example = Example(layer, dict(layer.sizes), 4, (2,), 128, 0)
    assert slip(example, lambda layer, p, u: in_pieces(layer, OPS["jit"], p, u, [1, 64, 127])) <= 1


def states_of(layer):
    return len(layer.rest(fixed(layer).parameters))


EACH_STATE = [pytest.param(x, i, id=f"{x}-{i}") for x in CAUSAL for i in range(states_of(x))]


@pytest.mark.parametrize(("layer", "i"), EACH_STATE)
def test_a_layer_that_forgets_one_of_its_states_is_found(layer, i):
    def forgetful(ops, p, u, state):
        rest = layer.rest(p, u.shape[:-2])
        state = tuple(rest[j] if j == i else s for j, s in enumerate(state))
        return layer.stateful(ops, p, u, state)

    wrong = replace(layer, stateful=forgetful)
    assert slip(fixed(layer), lambda _, p, u: in_steps(layer, refssm, p, u)) <= 1
    assert slip(fixed(layer), lambda _, p, u: in_steps(wrong, refssm, p, u)) > 1


@pytest.mark.parametrize("layer", DRAWN, ids=str)
def test_outputs_depend_on_later_inputs_if_and_only_if_a_layer_says_so(layer):
    """Another last input changes all outputs by more than roundings, or only the last one."""
    example = fixed(layer)
    p, u = example.parameters, example.signal
    other = u.copy()
    other[:, -1] += 1
    one, two = layer.forward(refssm, p, u), layer.forward(refssm, p, other)
    noise = 2 * example.roundings(p) * U * max(np.abs(one).max(), np.abs(two).max())
    changed = np.abs(two - one).max(axis=-1) > noise
    assert changed[:, -1].all()
    assert changed[:, :-1].all() == layer.reads_future
    assert changed[:, :-1].any() == layer.reads_future


@pytest.mark.parametrize("layer", DRAWN, ids=str)
def test_outputs_depend_on_the_length_if_and_only_if_a_layer_has_no_states(layer):
    """The signal without its last input changes earlier outputs by more than roundings, or none."""
    example = fixed(layer)
    p, u = example.parameters, example.signal
    one, two = layer.forward(refssm, p, u)[:, :-1], layer.forward(refssm, p, u[:, :-1])
    noise = 2 * example.roundings(p) * U * max(np.abs(one).max(), np.abs(two).max())
    assert (np.abs(two - one) > noise).any() != layer.causal


@each_layer
def test_a_layer_that_rounds_to_single_precision_inside_is_found(layer):
    def rounded(_, p, u):
        return double(layer.forward(refssm, p.map(single), single(u)))

    assert slip(fixed(layer), rounded) > 1
