"""Laws of gradients: each is the slope of the loss, and the mirror's are the reference's."""

import numpy as np
import pytest
from hypothesis import given, settings
from small_models import (
    BY_LAYER,
    BY_NORM,
    BY_PLACE,
    NAMED_LAYERS,
    ROOM,
    conditioned,
    drawn,
    model,
    ops,
    seeds,
    within,
)
from strategies import laws
from training.derivatives import along, direction, slopes

from refssm.catalog import OPERATORS
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.conformance.judging.verdict import worst_of
from refssm.training.losses import cross_entropy, cross_entropy_grad

u32, u64 = 2.0**-24, 2.0**-53
NAMED = {op.name: op for op in OPERATORS}


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

    def __init__(self, mirror=None):
        self.verdicts, self.mirror = [], mirror or ops("jit")

    def __getattr__(self, name):
        mine, other = getattr(ops("reference"), name), getattr(self.mirror, name)
        if name.removesuffix("_vjp") not in NAMED:  # activations and norms have tests of their own
            return mine

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
    kinds = [a.dtype for name, a in inputs if name not in op.discrete]
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


class Coarse:
    """The mirrors, with results of one operator rounded to half precision."""

    def __init__(self, name):
        self.name = name

    def __getattr__(self, name):
        right = getattr(ops("jit"), name)
        return rounded(right) if name == self.name else right


def rounded(function):
    def coarse(*arrays, **statics):
        y = function(*arrays, **statics)
        return tuple(map(to_half, y)) if isinstance(y, tuple) else to_half(y)

    return coarse


def to_half(x):
    """Eleven bits of real and imaginary parts."""
    real = x.real.astype(np.float16)
    return (real + 1j * x.imag.astype(np.float16) if x.dtype.kind == "c" else real).astype(x.dtype)


def test_the_law_sees_one_operator_in_half_precision():
    made = model(NAMED_LAYERS["s5"], depth=1)
    _, p, u, labels, _ = drawn(0, made, dtype=np.float32)

    def judged(beside):
        made.gradients(beside, p, u, lambda y: cross_entropy_grad(y, labels))
        return beside.verdicts

    called = {name for name, _ in judged(Beside())}
    assert len(called) > 2
    for name in called:
        verdicts = judged(Beside(Coarse(name)))
        assert {found for found, verdict in verdicts if not verdict.ok} == {name}


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


@pytest.mark.long
@BY_LAYER
def test_gradients_with_the_kernels_of_the_card_are_right_to_the_same_tolerance(layer, monkeypatch):
    build = pytest.importorskip("refssm_gpu._host.build", reason="pip install array-api-compat")
    try:
        build.compiler()
    except build.NoCompiler as lack:
        pytest.skip(str(lack))
    monkeypatch.setenv("REFSSM_GPU", "host")
    made = model(layer, depth=1)
    _, p, u, labels, _ = drawn(1, made, l=5, batch=2, dtype=np.float32)
    single = {**p, "u": u}
    double = {n: a.astype(np.result_type(a, np.float64)) for n, a in single.items()}
    G, sizes = conditioned(graded(made, "reference", labels), double)
    ratios = within(graded(made, "gpu", labels)(single), G, sizes, u32)
    assert max(ratios.values()) <= ROOM, ratios


def test_the_tolerance_of_gradients_sees_half_precision_in_one_operator():
    made = model(NAMED_LAYERS["s5"], depth=1)
    _, p, u, labels, _ = drawn(0, made, l=5, batch=2, dtype=np.float32)
    single = {**p, "u": u}
    double = {n: a.astype(np.result_type(a, np.float64)) for n, a in single.items()}
    G, sizes = conditioned(graded(made, "reference", labels), double)
    coarse = {**single, "decoder.W": single["decoder.W"].astype(np.float16).astype(np.float32)}
    ratios = within(graded(made, "reference", labels)(coarse), G, sizes, u32)
    assert max(ratios.values()) > ROOM
