"""Laws of training: gradients, mirrors, updates and accumulation, from any state."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import laws
from training.derivatives import along, direction, slopes
from training.small import setup

from refssm.catalog import OPERATORS
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.conformance.judging.verdict import worst_of
from refssm.conformance.standard import Standard
from refssm.layers import operators
from refssm.layers.catalog import LAYERS
from refssm.layers.model import Model
from refssm.layers.norms import NORMS
from refssm.training.losses import cross_entropy, cross_entropy_grad
from refssm.training.optimizer import AdamW

u32, u64 = 2.0**-24, 2.0**-53
ROOM = Standard.of(np.float32).room  # 16
NAMED_LAYERS = {layer.name: layer for layer in LAYERS}
NAMED = {op.name: op for op in OPERATORS}
seeds = st.integers(0, 2**32 - 1)
BY_LAYER = pytest.mark.parametrize("layer", LAYERS, ids=str)
BY_NORM = pytest.mark.parametrize("norm", NORMS)
BY_PLACE = pytest.mark.parametrize("prenorm", [True, False], ids=["pre-norm", "post-norm"])


@cache
def ops(role):
    return operators(role)


def model(layer, norm="layer", prenorm=True, depth=2):
    sizes = {"n": 2} if "n" in layer.sizes else {}
    return Model(layer, 1, 3, h=4, depth=depth, norm=norm, prenorm=prenorm, sizes=sizes)


def drawn(seed, made, l=7, batch=3, dtype=np.float64):
    """Parameters, signals, labels and dropout masks."""
    rng = np.random.default_rng(seed)
    p = made.init(rng, dtype)
    u = rng.standard_normal((batch, l, 1)).astype(dtype)
    made = replace(made, dropout=0.3)
    return rng, p, u, rng.integers(0, 3, batch), made.masks(rng, (batch, l, 4), u.dtype)


@BY_PLACE
@BY_NORM
@BY_LAYER
@given(seed=seeds)
@laws
def test_the_gradient_of_a_model_is_the_slope_of_its_loss(layer, norm, prenorm, seed):
    made = model(layer, norm, prenorm, depth=1)
    rng, p, u, labels, masks = drawn(seed, made)

    def loss(p):
        y, _, _ = made.gradients(ops("reference"), p, u, np.zeros_like, masks)
        return cross_entropy(y, labels)

    _, gradients, _ = made.gradients(
        ops("reference"), p, u, lambda y: cross_entropy_grad(y, labels), masks
    )
    t = direction(rng, p)
    first, second = slopes(loss, p, t)
    # the errors of the differences are h²c and h²c/4 + …, so the rest is below their difference;
    # the loss has an error of some u, which the division by h enlarges
    rounding = 2**10 * 2**11 * u64 * max(1.0, abs(first))
    extrapolated = (4 * second - first) / 3
    assert abs(along(gradients, t) - extrapolated) <= abs(first - second) + rounding


@BY_LAYER
def test_the_slope_sees_a_gradient_without_one_parameter(layer):
    made = model(layer, depth=1)
    rng, p, u, labels, _ = drawn(0, made)

    def loss(p):
        return cross_entropy(made.gradients(ops("reference"), p, u, np.zeros_like)[0], labels)

    _, gradients, _ = made.gradients(
        ops("reference"), p, u, lambda y: cross_entropy_grad(y, labels)
    )
    for name in p:
        t = {n: a * (n == name) for n, a in direction(rng, p).items()}
        first, second = slopes(loss, p, t)
        if abs(first) > 2 * abs(first - second) + 2**21 * u64:
            missing = {**gradients, name: np.zeros_like(gradients[name])}
            assert abs(along(missing, t) - first) > abs(first - second)


class Beside:
    """The reference's operators; each call is also made on the mirror, and judged."""

    def __init__(self):
        self.verdicts = []

    def __getattr__(self, name):
        mine, other = getattr(ops("reference"), name), getattr(ops("jit"), name)

        def both(*arrays, **statics):
            wanted = mine(*arrays, **statics)
            op = NAMED[name.removesuffix("_vjp")]
            if name == op.name:
                self.verdicts.append((name, judge(op, other, *arrays, **statics)))
            else:
                self.verdicts.append((name, judged_vjp(op, other, arrays, statics)))
            return wanted

        return both


def judged_vjp(op, candidate, arrays, statics):
    """The verdict on a VJP, as the judge's check of gradients gives it."""
    gauged = expect(op, list(arrays), statics, op.bare_vjp)
    got = [g for g in candidate(*arrays, **statics) if g is not None]
    inputs = zip(op.inputs, arrays[len(op.outputs) :], strict=True)
    kinds = [a.dtype for name, a in inputs if name not in op.flags]
    return worst_of(compare(g, y, kind) for g, y, kind in zip(got, gauged, kinds, strict=True))


@BY_LAYER
@given(seed=seeds)
@laws
def test_every_operator_of_a_gradient_is_on_the_mirror_as_the_judge_demands(layer, seed):
    made, beside = model(layer, depth=1), Beside()
    _, p, u, labels, _ = drawn(seed, made, dtype=np.float32)
    made.gradients(beside, p, u, lambda y: cross_entropy_grad(y, labels))
    for name, verdict in beside.verdicts:
        assert verdict.ok, (name, verdict)


def entries(p):
    """Every real number in named arrays: the name, the index, and 1 or i."""
    for name, a in p.items():
        for index in np.ndindex(a.shape):
            yield from ((name, index, unit) for unit in ((1, 1j) if a.dtype.kind == "c" else (1,)))


def conditioned(gradients, p):
    """G, and for each array of it ‖ |G| + Σ_x |∂G/∂x| |x| ‖ over all numbers x of p: what errors of
    one unit in each result and in each input come to. The derivatives are differences of G."""
    h, G = 2.0**-26, gradients(p)
    sizes = {name: np.abs(g) for name, g in G.items()}
    for name, index, unit in entries(p):
        x = p[name][index]
        x = x.imag if unit == 1j else x.real
        moved = p[name].copy()
        moved[index] += h * x * unit
        there = gradients({**p, name: moved})
        for n, g in there.items():
            sizes[n] = sizes[n] + np.abs(g - G[n]) / h
    return G, {name: np.linalg.norm(size) for name, size in sizes.items()}


def within(got, G, sizes, u):
    """Whether gradients are right in the judge's tolerance, 16·u·K in the norm of each array."""
    return {n: np.linalg.norm(g - G[n]) / (u * sizes[n]) for n, g in got.items() if sizes[n]}


def graded(made, role, labels):
    """Gradients as a function of parameters and signals, `u` among them."""

    def gradients(p):
        rest = {name: a for name, a in p.items() if name != "u"}
        found = made.gradients(ops(role), rest, p["u"], lambda y: cross_entropy_grad(y, labels))
        return found[1]

    return gradients


@pytest.mark.long
@BY_LAYER
@given(seed=seeds)
@settings(laws, max_examples=4)
def test_gradients_on_reference_and_mirror_are_right_to_the_judges_tolerance(layer, seed):
    made = model(layer, depth=1)
    _, p, u, labels, _ = drawn(seed, made, l=5, batch=2, dtype=np.float32)
    single = {**p, "u": u}
    double = {n: a.astype(np.result_type(a, np.float64)) for n, a in single.items()}
    G, sizes = conditioned(graded(made, "reference", labels), double)
    for role in ("reference", "jit"):
        ratios = within(graded(made, role, labels)(single), G, sizes, u32)
        assert max(ratios.values()) <= ROOM, (role, ratios)


def test_the_tolerance_of_gradients_sees_half_precision_in_one_operator():
    made = model(NAMED_LAYERS["s5"], depth=1)
    _, p, u, labels, _ = drawn(0, made, l=5, batch=2, dtype=np.float32)
    single = {**p, "u": u}
    double = {n: a.astype(np.result_type(a, np.float64)) for n, a in single.items()}
    G, sizes = conditioned(graded(made, "reference", labels), double)
    coarse = {**single, "decoder.W": single["decoder.W"].astype(np.float16).astype(np.float32)}
    ratios = within(graded(made, "reference", labels)(coarse), G, sizes, u32)
    assert max(ratios.values()) > ROOM


def states(seed):
    """Named parameters, moments and gradients of any size, real and complex, and a step."""
    rng = np.random.default_rng(seed)
    kinds = {"a": np.float32, "b": np.complex64, "c": np.float64, "d": np.complex128}

    def any_size(kind):
        x = rng.standard_normal((2, 5)) * 10.0 ** rng.uniform(-8, 3)
        y = rng.standard_normal((2, 5)) * 10.0 ** rng.uniform(-8, 3)
        return (
            (x + 1j * y * (np.dtype(kind).kind == "c")).astype(kind)
            if np.dtype(kind).kind == "c"
            else x.astype(kind)
        )

    p, g = ({n: any_size(k) for n, k in kinds.items()} for _ in range(2))
    moments = {f"m.{n}": any_size(k) for n, k in kinds.items()}
    squares = {f"v.{n}": squared(any_size(k)) for n, k in kinds.items()}
    return p, g, {**moments, **squares}, int(rng.integers(1, 5000)), 10.0 ** rng.uniform(-5, -1)


def squared(x):
    """Second moments: of both parts of a complex number."""
    if x.dtype.kind == "c":
        return (x.real**2 + 1j * x.imag**2).astype(x.dtype)
    return x**2


def extended(arrays):
    kinds = {"f": np.longdouble, "c": np.clongdouble}
    return {n: a.astype(kinds[a.dtype.kind]) for n, a in arrays.items()}


@given(seed=seeds)
@laws
def test_an_update_from_any_state_is_exact_to_its_roundings(seed):
    p, g, moments, step, rate = states(seed)
    optimizer = AdamW(decay=0.1)
    new, later = optimizer.update(p, g, moments, step, rate)
    exact, _ = optimizer.update(extended(p), extended(g), extended(moments), step, rate)
    for name, a in p.items():
        u = float(np.finfo(a.dtype).eps) / 2
        for part in ("real", "imag"):
            got, want, was = (getattr(x[name], part) for x in (new, exact, p))
            m_size = 0.9 * abs(getattr(moments[f"m.{name}"], part)) + 0.1 * abs(
                getattr(g[name], part)
            )
            root = np.sqrt(abs(getattr(later[f"v.{name}"], part)).astype(float) / (1 - 0.999**step))
            # m̂: constants, products, sum, quotient: 6 roundings of |β₁m| + |(1−β₁)g|; v̂: 6, half
            # of them in the root; then root, + ε, quotient, decay (2), sum, rate (2), difference
            size = rate * (16 * m_size / (1 - 0.9**step) / (root + 1e-8) + 6 * 0.1 * abs(was))
            tiny = float(np.finfo(a.dtype).tiny)
            assert (abs(got - want) <= u * (size + abs(want) + abs(was)) + tiny).all()


@given(seed=seeds)
@laws
def test_equal_gradients_give_equal_updates_whatever_the_operators(seed):
    made = setup(layer="s5", norm="layer", ops="reference").trainer()
    other = setup(layer="s5", norm="layer", ops="jit").trainer()
    state = replace(made.start(), step=seed % 1000)
    rng = np.random.default_rng(seed)
    g = {n: rng.standard_normal(a.shape).astype(a.dtype) for n, a in state.parameters.items()}
    one, two = (
        t.optimizer.update(state.parameters, g, state.moments, state.step + 1, 0.01)
        for t in (made, other)
    )
    for a, b in zip(one, two, strict=True):
        assert all(a[n].tobytes() == b[n].tobytes() for n in a)


@pytest.mark.long
@BY_LAYER
@given(seed=seeds)
@settings(laws, max_examples=4)
def test_gradients_added_over_pieces_are_those_of_the_whole_batch(layer, seed):
    sizes = {"n": 2} if "n" in layer.sizes else {}
    one, two = (
        setup(layer=str(layer), norm="layer", sizes=sizes, depth=1, pieces=pieces).trainer()
        for pieces in (1, 3)
    )
    _, p, u, labels, _ = drawn(seed, one.model, l=5, batch=4)

    def gradients(trainer):
        def found(p):
            rest = {name: a for name, a in p.items() if name != "u"}
            state = replace(trainer.start(), parameters=rest)
            return trainer.gradients(state, p["u"], labels, None)[2]

        return found

    G, conditions = conditioned(gradients(one), {**p, "u": u})
    ratios = within(gradients(two)({**p, "u": u}), G, conditions, u64)
    assert max(ratios.values()) <= ROOM, ratios
