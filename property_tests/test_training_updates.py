"""Laws of updates and of accumulation, from any state."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from small_models import BY_LAYER, ROOM, conditioned, drawn, seeds, within
from strategies import laws
from training.small import setup

from refssm.training import shares
from refssm.training.optimizer import AdamW
from refssm.training.tasks import Examples

u64, DECAY = 2.0**-53, 0.1


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


def excess(optimizer, other, seed):
    """The largest error of an update, in units of what its roundings may come to; `other` updates
    in extended precision."""
    p, g, moments, step, rate = states(seed)
    new, later = optimizer.update(p, g, moments, step, rate)
    exact, _ = other.update(extended(p), extended(g), extended(moments), step, rate)
    worst = 0.0
    for name, a in p.items():
        kind = np.finfo(a.dtype)
        for part in ("real", "imag"):
            got, want, was, m, v, its = (
                getattr(x, part).astype(float)
                for x in (
                    new[name],
                    exact[name],
                    a,
                    moments[f"m.{name}"],
                    later[f"v.{name}"],
                    g[name],
                )
            )
            root = np.sqrt(np.abs(v) / (1 - 0.999**step))
            direction = (0.9 * abs(m) + 0.1 * abs(its)) / (1 - 0.9**step) / (root + 1e-8)
            # m̂: constants, products, sum, quotient: 6 roundings of |β₁m| + |(1−β₁)g|; v̂: 6, half
            # of them in the root; then root, + ε, quotient, decay (2), sum, rate (2), difference
            size = rate * (16 * direction + 6 * DECAY * abs(was)) + abs(want) + abs(was)
            bound = float(kind.eps) / 2 * size + float(kind.tiny)
            worst = max(worst, float((abs(got - want) / bound).max()))
    return worst


@given(seed=seeds)
@laws
def test_an_update_from_any_state_is_exact_to_its_roundings(seed):
    assert excess(AdamW(decay=DECAY), AdamW(decay=DECAY), seed) <= 1


WRONG = {
    "beta1": AdamW(decay=DECAY, beta1=0.9 + 2.0**-16),
    "beta2": AdamW(decay=DECAY, beta2=0.999 + 2.0**-16),
    "epsilon": AdamW(decay=DECAY, epsilon=2e-8),
    "decay": AdamW(decay=DECAY * 1.01),
}


@pytest.mark.parametrize("what", WRONG)
def test_the_law_of_updates_sees_a_wrong_constant(what):
    assert max(excess(AdamW(decay=DECAY), WRONG[what], seed) for seed in range(5)) > 1


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
@pytest.mark.parametrize(
    ("pieces", "steps", "ops"),
    [(3, shares.STEPS, "reference"), (1, 10, "jit")],
    ids=["pieces", "shares"],
)
def test_gradients_added_over_parts_are_those_of_the_whole_batch(layer, pieces, steps, ops, seed):
    usual = {"layer": str(layer), "norm": "layer", "depth": 1}
    # several heads: what one head of Mamba-2 adds by D, its norm takes away, and dD is roundings
    usual["sizes"] = {size: 2 for size in ("n", "p") if size in layer.sizes}
    # by the same operators: with others, what a norm takes away leaves other roundings
    one, two = (setup(**usual, ops=ops, **how).trainer() for how in ({}, {"pieces": pieces}))
    _, p, u, labels, _ = drawn(seed, one.model, l=5, batch=4)

    def gradients(trainer):
        def found(p):
            rest = {name: a for name, a in p.items() if name != "u"}
            state = replace(trainer.start(), parameters=rest)
            return trainer.gradients(state, Examples(p["u"], labels), None)[2]

        return found

    G, conditions = conditioned(gradients(one), {**p, "u": u})
    with patch.object(shares, "STEPS", steps):
        found = gradients(two)({**p, "u": u})
    ratios = within(found, G, conditions, u64)
    assert max(ratios.values()) <= ROOM, ratios


def test_the_law_of_parts_sees_one_that_is_left_out():
    trainer = setup(layer="s5", norm="layer", depth=1, pieces=3).trainer()
    _, p, u, labels, _ = drawn(0, trainer.model, l=5, batch=4)

    def gradients(p, kept=slice(None)):
        rest = {name: a for name, a in p.items() if name != "u"}
        state = replace(trainer.start(), parameters=rest)
        return trainer.gradients(state, Examples(p["u"], labels).rows(kept), None)[2]

    G, conditions = conditioned(gradients, {**p, "u": u})
    assert max(within(gradients({**p, "u": u}, slice(3)), G, conditions, u64).values()) > ROOM
