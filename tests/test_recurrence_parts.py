"""A recurrence whose state has two parts: a weighted mean, with its sum and its weight as state."""

import numpy as np
import pytest

from refssm._declaration.recurrence import Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.catalog import states_in
from refssm.domains import betas, real_signals, real_states
from refssm.enclosure import recurrence as enclosure
from refssm.oracle.building import recurrence as oracle
from refssm.scan.linear import MARKS


def mean_step(u, a, X, c):
    """X ← a X + u,  c ← a c + 1,  y = X / c."""
    X, c = a[..., None] * X + u, a * c + 1
    return X / c[..., None], X, c


def mean_step_vjp(dy, dX, dc, u, a, X, c):
    """G = dX + dy / c';  g = dc − Σ dy X' / c'²;  du = G, da = Σ G X + g c, dX = a G, dc = a g."""
    _, X_next, c_next = mean_step(u, a, X, c)
    G = dX + dy / c_next[..., None]
    g = dc - (dy * X_next).sum(-1) / c_next**2
    gradients = G, (G * X).sum(-1) + g * c, a[..., None] * G, a * g
    return unbroadcast_each(gradients, (u, a, X, c))


TEXTS = ("plain", "stateful", "packed", "packed_stateful", "states", "reversed", "step")
MEAN = Recurrence(
    name="mean",
    step=Pair(mean_step, mean_step_vjp),
    signature="(l,n),(l)->(l,n)",
    inputs={"u": real_signals, "a": betas},
    batch="b, b",
    state=(State("X", "n", "b", real_states), State("c", "", "b", real_states)),
    marks=MARKS,
    linear=("u,X->y", "u,X->X"),
    doc="y = X / c from rest.\n\nText.",
    vjp_doc="Gradients.",
    citation="",
    citation_of_packed="",
    tags=dict.fromkeys(TEXTS, ()),
    examples=dict.fromkeys(TEXTS, ""),
)
PLAIN, STATEFUL, PACKED, SEQUENCES, PLACES, REVERSED, STEP = MEAN.operators
rng = np.random.default_rng(0)
L, N = 7, 2
U, A = rng.standard_normal((3, L, N)), rng.uniform(0.1, 0.9, (3, L))
X0, C0 = rng.standard_normal((3, N)), rng.uniform(1, 2, 3)


def _by_hand(u, a, X, c):
    """The states after each step, before the first one, too."""
    states = [(X, c)]
    for k in range(u.shape[-2]):
        X, c = a[..., k, None] * X + u[..., k, :], a[..., k] * c + 1
        states.append((X, c))
    return states


def test_each_part_is_an_argument_and_a_result_of_its_own():
    assert [op.signature for op in MEAN.operators] == [
        "(l,n),(l)->(l,n)",
        "(l,n),(l),(n),()->(l,n),(n),()",
        "(l,n),(l),(l)->(l,n)",
        "(l,n),(l),(m,n),(m),(m)->(l,n),(m,n),(m)",
        "(l,n),(l),(n),(),(m)->(l,n),(m,n),(m)",
        "(l,n),(l)->(l,n)",
        "(n),(),(n),()->(n),(n),()",
    ]
    assert [*SEQUENCES.inputs] == ["u", "a", "X0", "c0", "ends"]
    assert (STATEFUL.outputs, STEP.outputs) == (("y", "X", "c"), ("y", "X_next", "c_next"))
    assert states_in(STATEFUL) == 2
    assert STATEFUL.state_outputs == (1, 2)


def test_linearity_names_the_parts_that_take_part():
    assert PLAIN.traits == {"causal", "state", "linear:u->y"}
    assert STATEFUL.traits == {"causal", "state", "linear:u,X0->y", "linear:u,X0->X"}
    assert STEP.traits == {"linear:u,X->y", "linear:u,X->X_next"}


def test_the_forms_follow_from_the_step():
    states = _by_hand(U, A, X0, C0)
    y, X, c = STATEFUL.reference(U, A, X0, C0)
    for one, other in zip((X, c), states[-1], strict=True):
        np.testing.assert_array_equal(one, other)
    for k, (X_k, c_k) in enumerate(states[1:]):
        np.testing.assert_array_equal(y[:, k], X_k / c_k[:, None])
    rest = PLAIN.reference(U, A)
    for k, (X_k, c_k) in enumerate(_by_hand(U, A, 0 * X0, 0 * C0)[1:]):
        np.testing.assert_array_equal(rest[:, k], X_k / c_k[:, None])
    held = PLACES.reference(U, A, X0, C0, np.array([0, 3, 3, L]))
    np.testing.assert_array_equal(held[0], y)
    for i, place in enumerate([0, 3, 3, L]):
        np.testing.assert_array_equal(held[1][:, i], states[place][0])
        np.testing.assert_array_equal(held[2][:, i], states[place][1])
    turned = REVERSED.reference(U[:, ::-1], A[:, ::-1])
    np.testing.assert_array_equal(turned, rest[:, ::-1])


def test_a_reset_drops_all_parts_and_a_sequence_has_its_own():
    resets = np.arange(L) == 4
    y = PACKED.reference(U, A, resets)
    np.testing.assert_array_equal(y[:, 4:], PLAIN.reference(U[:, 4:], A[:, 4:]))
    starts = np.stack([X0, 2 * X0], 1), np.stack([C0, 3 * C0], 1)
    y, X, c = SEQUENCES.reference(U, A, *starts, np.array([4, L]))
    for i, w in enumerate((slice(4), slice(4, L))):
        alone = STATEFUL.reference(U[:, w], A[:, w], starts[0][:, i], starts[1][:, i])
        for one, other in zip((y[:, w], X[:, i], c[:, i]), alone, strict=True):
            np.testing.assert_array_equal(one, other)
    none = SEQUENCES.reference(U[:, :0], A[:, :0], starts[0][:, :0], starts[1][:, :0], np.array([]))
    assert [part.shape for part in none] == [(3, 0, N), (3, 0, N), (3, 0)]


GIVEN = {
    PLAIN: (U, A),
    STATEFUL: (U, A, X0, C0),
    PACKED: (U, A, np.arange(L) % 3 == 0),
    SEQUENCES: (U, A, np.stack([X0, 2 * X0], 1), np.stack([C0, 3 * C0], 1), np.array([4, L])),
    PLACES: (U, A, X0, C0, np.array([0, 3, L])),
    REVERSED: (U, A),
    STEP: (U[:, 0], A[:, 0], X0, C0),
}


@pytest.mark.parametrize("op", MEAN.operators, ids=str)
def test_the_vjp_is_the_adjoint_of_the_jacobian_for_all_parts(op):
    args = GIVEN[op]
    tangents = [rng.standard_normal(x.shape) * (x.dtype.kind == "f") for x in args]

    def moved(h):
        y = op.reference(
            *(x + h * t if t.any() else x for x, t in zip(args, tangents, strict=True))
        )
        return y if isinstance(y, tuple) else (y,)

    h = 2.0**-17
    slopes = [(b - a) / (2 * h) for a, b in zip(moved(-h), moved(h), strict=True)]
    cotangents = [rng.standard_normal(s.shape) for s in slopes]
    vjp = {
        op.name: pair.vjp for op, pair in zip(MEAN.operators, MEAN._functions.values(), strict=True)
    }
    gradients = vjp[op.name](*cotangents, *args)
    left = sum((c * s).sum() for c, s in zip(cotangents, slopes, strict=True))
    pairs = zip(gradients, tangents, strict=True)
    right = sum((g * t).sum() for g, t in pairs if g is not None)
    assert [g.shape for g in gradients if g is not None] == [
        x.shape for x in args if x.dtype.kind == "f"
    ]
    np.testing.assert_allclose(left, right, rtol=1e-8)


def _of_oracle(u, a, X, c):
    X, c = [a * x + u_n for x, u_n in zip(X, u, strict=True)], a * c + 1
    return [x / c for x in X], X, c


def _of_enclosure(arguments, state, resets):
    (u, a), (X, c), y = arguments, state, []
    for u_k, a_k, begins in zip(u, a, resets, strict=True):
        X, c = ([0 * x for x in X], 0) if begins else (X, c)
        y_k, X, c = _of_oracle(u_k, a_k, X, c)
        y.append(y_k)
    return y, (X, c)


def _rest(u, a):
    return [0] * N, 0


def test_oracle_and_enclosure_have_the_same_forms():
    by_oracle = oracle.forms(_of_oracle, "11", _rest, parts=2)
    by_enclosure = enclosure.forms(_of_enclosure, "11", _rest, parts=2)
    for op, *functions in zip(MEAN.operators[:6], by_oracle, by_enclosure[:6], strict=True):
        wanted = op.reference(*GIVEN[op])
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for function in functions:
            for b in range(3):
                one = [x[b] if x.ndim > 1 or (x.shape == (3,) and x.dtype.kind == "f") else x
                       for x in GIVEN[op]]  # fmt: skip
                made = function(*(x.tolist() for x in one))
                made = made if isinstance(made, tuple) else (made,)
                assert len(made) == len(wanted)
                for y, of_op in zip(made, wanted, strict=True):
                    np.testing.assert_allclose(np.array(y, float), of_op[b], rtol=1e-12)
    y, X, c = by_enclosure[6](U[0, 0].tolist(), A[0, 0], X0[0].tolist(), C0[0])
    for one, other in zip((y, X, c), STEP.reference(*GIVEN[STEP]), strict=True):
        np.testing.assert_allclose(one, other[0], rtol=1e-12)


def test_by_a_scan_a_mirror_has_the_step_of_all_parts():
    pairs = [*MEAN.mirrors(MEAN.run, MEAN.back, lambda op: lambda function: function)]
    made = pairs[-1].forward(*GIVEN[STEP])
    for one, other in zip(made, STEP.reference(*GIVEN[STEP]), strict=True):
        np.testing.assert_array_equal(one, other)
    cotangents = [np.ones_like(y) for y in made]
    gradients = pairs[-1].vjp(*cotangents, *GIVEN[STEP])
    for one, other in zip(gradients, mean_step_vjp(*cotangents, *GIVEN[STEP]), strict=True):
        np.testing.assert_array_equal(one, other)
