"""Laws of every layer's gradient: it is the adjoint of the Jacobian, which long double tells.

The product of the Jacobian with a direction comes from central differences of the output, so no law
here knows how a gradient is computed.
"""

from dataclasses import replace

import numpy as np
import pytest
from differences import (
    derivative,
    error_function_of_long_double,
    extended,
    needs_long_double,
)
from hypothesis import given
from hypothesis import strategies as st
from layered import DRAWN, OPS, U, each_layer, examples, few, fixed, inner, inputs, like, size

import refssm


def slope(example, dy, name, t):
    """Re⟨dy, J t⟩ for a direction t of one parameter, or of u, in long double."""
    layer, p, u = example.layer, example.parameters.map(extended), extended(example.signal)
    arrays = p.arrays()

    def along(e):
        moved = p if name == "u" else type(p)(**(arrays | {name: arrays[name] + e * t}))
        return inner(dy, layer.forward(refssm, moved, u + e * t if name == "u" else u))

    with error_function_of_long_double():
        return derivative(along)


def adjoint_slip(example, vjp, name):
    """|Re⟨dy, J t⟩ − Re⟨vjp(dy), t⟩| in units of what its two sides may be off by.

    The quotient's values in long double are off by N u S/2^11, which it divides by 2^-10 or more;
    its extrapolation by what the last step changed. The gradient is a sum of N roundings, off by
    N u (S + Σ|g t|) if its inputs are.
    """
    layer, p, u = example.layer, example.parameters, example.signal
    y = layer.forward(refssm, p, u)
    dy = like(example.rng(2), y)
    order = [*p.arrays(), "u"].index(name)
    t = like(example.rng(3), inputs(p, u)[order])
    exact, uncertain = slope(example, dy, name, t)
    all_found = inputs(*vjp(dy, p, u))
    scale = size(dy, y, all_found, inputs(p, u)) + float(np.abs(all_found[order] * t).sum())
    allowed = 2 * example.roundings(p) * U * scale + float(uncertain)
    return float(abs(exact - inner(all_found[order], t))) / allowed


def names_of(layer):
    return [*layer.kind.groups(), "u"]


@pytest.mark.long
@needs_long_double
@each_layer
@given(data=st.data())
@few
def test_the_vjp_is_the_adjoint_of_the_jacobian(layer, data):
    example = data.draw(examples(layer))
    name = data.draw(st.sampled_from(names_of(layer)))
    for ops in OPS.values():

        def vjp(dy, p, u, ops=ops):
            return layer.vjp(ops, dy, p, u)

        assert adjoint_slip(example, vjp, name) <= 1


EACH_INPUT = [pytest.param(x, name, id=f"{x}-{name}") for x in DRAWN for name in names_of(x)]
MASKS = ("reads",)  # what the function is constant in: a factor changes nothing in a gradient of 0


def times(g, factor, name):
    """`factor` times a gradient; of one that is 0, the factor's distance from 1 beside it."""
    return g + (factor - 1) if name in MASKS else g * factor


@needs_long_double
@pytest.mark.parametrize(("layer", "name"), EACH_INPUT)
def test_every_gradient_is_right_and_a_thousandth_too_much_is_found(layer, name):
    def wrong(dy, p, u):
        of_p, of_u = layer.vjp(refssm, dy, p, u)
        if name == "u":
            return of_p, of_u * (1 + 1e-3)
        return replace(of_p, **{name: times(getattr(of_p, name), 1 + 1e-3, name)}), of_u

    assert adjoint_slip(fixed(layer), lambda *a: layer.vjp(refssm, *a), name) <= 1
    assert adjoint_slip(fixed(layer), wrong, name) > 1


@needs_long_double
@each_layer
def test_a_gradient_with_a_wrong_sign_or_none_is_found(layer):
    for name in names_of(layer):
        for factor in (-1, 0):

            def wrong(dy, p, u, name=name, factor=factor):
                of_p, of_u = layer.vjp(refssm, dy, p, u)
                if name == "u":
                    return of_p, of_u * factor
                return replace(of_p, **{name: times(getattr(of_p, name), factor, name)}), of_u

            assert adjoint_slip(fixed(layer), wrong, name) > 1
