"""Laws of every layer, in double precision, with small random parameters and signals.

What is compared is φ = Re⟨dy, y⟩ for a random dy. A program of N roundings one after another is off
by at most N u S, S = Σ|dy y| + Σ|x ∂φ/∂x| over all inputs x: the exact result for inputs that are
off by N u, rounded N times [higham2002accuracy, §1.5]. Each of l steps multiplies matrices no
longer than the longest axis and adds ten roundings of elementary functions; four such products lie
outside of the steps.
"""

from contextlib import contextmanager
from dataclasses import dataclass, replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import laws

import refssm
from refssm.layers import activations, operators
from refssm.layers.catalog import LAYERS

OPS = {"reference": refssm, "jit": operators("jit")}
U = 2.0**-53
few = settings(laws, max_examples=4)
each_layer = pytest.mark.parametrize("layer", LAYERS, ids=str)
each_role = pytest.mark.parametrize("role", OPS)
needs_long_double = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > U / 1000, reason="long double is no wider than double here"
)


@dataclass(frozen=True, eq=False)
class Example:
    """A layer's parameters, a signal, and directions, from one seed."""

    layer: object
    sizes: dict
    h: int
    batch: tuple
    l: int
    seed: int

    def __repr__(self):
        return f"{self.layer} {self.sizes} h={self.h} l={self.l} {self.batch} seed={self.seed}"

    def rng(self, stream):
        return np.random.default_rng([self.seed, stream])

    @property
    def parameters(self):
        """Near what the layer starts from, but no number is 0 or 1 any more."""
        rng = self.rng(0)
        p = self.layer.init(rng, h=self.h, **self.sizes)
        return p.map(lambda x: x + 0.1 * like(rng, x))

    @property
    def signal(self):
        return self.rng(1).standard_normal((*self.batch, self.l, self.h))

    def roundings(self, p):
        """N, of the longest chain."""
        longest = max(max(a.shape, default=1) for a in [*p.arrays().values(), self.signal])
        return (self.l + 4) * (longest + 10)


@st.composite
def examples(draw, layer):
    sizes = {name: draw(st.integers(1, min(4, most))) for name, most in layer.sizes.items()}
    batch = draw(st.sampled_from([(), (2,), (2, 1)]))
    h, l = draw(st.integers(1, 3)), draw(st.integers(1, 7))
    return Example(layer, sizes, h, batch, l, draw(st.integers(0, 2**32 - 1)))


def like(rng, x):
    """Normal numbers of the shape and the kind of x."""
    drawn = rng.standard_normal((2, *x.shape))
    return drawn[0] + 1j * drawn[1] if np.iscomplexobj(x) else drawn[0]


def inner(a, b):
    """Re⟨a, b⟩, in long double."""
    return (np.conj(a).astype(np.result_type(a, np.longdouble)) * b).real.sum()


def size(dy, y, gradients, inputs):
    """S."""
    terms = zip(gradients, inputs, strict=True)
    return float(np.abs(dy * y).sum() + sum(np.abs(g * x).sum() for g, x in terms))


def inputs(p, u):
    return [*p.arrays().values(), u]


def gradients(layer, ops, dy, p, u):
    of_p, of_u = layer.vjp(ops, dy, p, u)
    return inputs(of_p, of_u)


# ---- forward, pieces, steps, mirrors


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
@each_role
@each_layer
@given(data=st.data())
@few
def test_the_whole_pieces_and_steps_give_one_output(layer, role, data):
    example, ops = data.draw(examples(layer)), OPS[role]
    cuts = sorted(data.draw(st.lists(st.integers(0, example.l), max_size=2)))
    assert slip(example, lambda layer, p, u: layer.forward(ops, p, u)) <= 1
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


FIXED = {layer.name: {name: min(3, most) for name, most in layer.sizes.items()} for layer in LAYERS}


def fixed(layer):
    return Example(layer, FIXED[layer.name], 2, (2,), 6, 0)


def states_of(layer):
    return len(layer.rest(fixed(layer).parameters))


EACH_STATE = [pytest.param(x, i, id=f"{x}-{i}") for x in LAYERS for i in range(states_of(x))]


@pytest.mark.parametrize(("layer", "i"), EACH_STATE)
def test_a_layer_that_forgets_one_of_its_states_is_found(layer, i):
    def forgetful(ops, p, u, state):
        rest = layer.rest(p, u.shape[:-2])
        state = tuple(rest[j] if j == i else s for j, s in enumerate(state))
        return layer.stateful(ops, p, u, state)

    wrong = replace(layer, stateful=forgetful)
    assert slip(fixed(layer), lambda _, p, u: in_steps(layer, refssm, p, u)) <= 1
    assert slip(fixed(layer), lambda _, p, u: in_steps(wrong, refssm, p, u)) > 1


@each_layer
def test_a_layer_that_rounds_to_single_precision_inside_is_found(layer):
    def rounded(_, p, u):
        return double(layer.forward(refssm, p.map(single), single(u)))

    assert slip(fixed(layer), rounded) > 1


# ---- gradients


LEVELS = 6  # steps 2^-3 … 2^-8 of the difference quotients


@contextmanager
def error_function_of_long_double():
    """SciPy's erf has no long double; mpmath's has."""
    erf = np.frompyfunc(
        lambda x: np.longdouble(mpmath.nstr(mpmath.erf(mpmath.mp.convert(x)), 25)), 1, 1
    )
    with pytest.MonkeyPatch.context() as patch, mpmath.workdps(30):
        patch.setattr(activations, "erf", lambda x: erf(x).astype(np.longdouble))
        yield


def extended(x):
    return x.astype(np.result_type(x, np.longdouble))


def derivative(f):
    """f'(0) by Romberg's extrapolation of central differences, and how far the last two differ."""
    row: list = []
    for level in range(LEVELS):
        e = np.longdouble(2.0) ** -(3 + level)
        new = [(f(e) - f(-e)) / (2 * e)]
        for j, old in enumerate(row):
            new.append(new[j] + (new[j] - old) / (4 ** (j + 1) - 1))
        previous, row = row, new
    return row[-1], abs(row[-1] - previous[-1])


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

    The quotient's values in long double are off by N u S/2^11, which it divides by 2^-8 or more;
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


EACH_INPUT = [pytest.param(x, name, id=f"{x}-{name}") for x in LAYERS for name in names_of(x)]


@needs_long_double
@pytest.mark.parametrize(("layer", "name"), EACH_INPUT)
def test_every_gradient_is_right_and_a_millionth_too_much_is_found(layer, name):
    def wrong(dy, p, u):
        of_p, of_u = layer.vjp(refssm, dy, p, u)
        if name == "u":
            return of_p, of_u * (1 + 1e-6)
        return replace(of_p, **{name: getattr(of_p, name) * (1 + 1e-6)}), of_u

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
                return replace(of_p, **{name: getattr(of_p, name) * factor}), of_u

            assert adjoint_slip(fixed(layer), wrong, name) > 1
