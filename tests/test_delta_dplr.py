"""delta_dplr: closed forms, its relation to other recurrences, RWKV-7's update, its bounds."""

import numpy as np
import pytest

import refssm
from refssm.conformance.cases.case import Knob, fill
from refssm.conformance.cases.partners import changed_alone, following, within
from refssm.conformance.gauges.columns import OF, of_columns, of_columns_gradients
from refssm.conformance.gauges.columns.ellipsoids import balls, boxes
from refssm.conformance.gauges.gauge import TrackedCall
from refssm.conformance.judging.grading import Grader, judge
from refssm.conformance.number_types import number_type
from refssm.conformance.planted.linear_attention.low_rank.programs import adjoint, gradient_form
from refssm.domains import removals, removed_keys, unit_keys
from refssm.linear_attention.delta_dplr import DELTA_DPLR_RULE
from refssm.linear_attention.delta_dplr_chunked import DELTA_DPLR_BY_CHUNKS

PLAIN, STATEFUL, PACKED, *_, STEP = DELTA_DPLR_RULE.operators
ROLES = ("reference", "jit")
each_role = pytest.mark.parametrize("role", ROLES)


def usual(op=PLAIN, seed=0, batch=(), l=7, n=4, p=3, dtype="float64"):
    """Arguments as in RWKV-7: a key of norm 1 that is removed at rates of each entry."""
    rng, sizes = np.random.default_rng(seed), {"l": l, "n": n, "p": p}
    key = rng.standard_normal((*batch, l, n))
    key /= np.sqrt((key**2).sum(-1, keepdims=True))
    arrays = []
    for name, dims in zip(op.inputs, op.input_dims, strict=True):
        x = rng.standard_normal((*batch, *(sizes[d] for d in dims)))
        x = {"a": -key, "b": key * rng.random(key.shape), "log_g": -np.abs(x)}.get(name, x)
        arrays.append((x < -0.5) if name == "resets" else x.astype(dtype))
    return arrays


@each_role
def test_one_step_by_hand(role):
    # a = (−1, 0) reads the first row (1, 2) of S as (−1, −2); b = (½, 0) takes half of it away from
    # the decayed state ((½, 1), (3/2, 2)), which gives ((0, 0), …); k = (0, 1) writes (1, 0)
    step = STEP.implementation(role)
    S, half = np.array([[1.0, 2.0], [3.0, 4.0]]), np.full(2, np.log(0.5))
    q, k, v, a, b = np.array([[2.0, 1.0], [0.0, 1.0], [1.0, 0.0], [-1.0, 0.0], [0.5, 0.0]])
    y, after = step(q, k, v, half, a, b, S)
    assert np.allclose(after, [[0.0, 0.0], [2.5, 2.0]])
    assert np.allclose(y, [2.5, 2.0])


@each_role
@pytest.mark.parametrize("l", [0, 1, 2, 3, 5, 16, 17])
def test_any_length_is_right_and_none_gives_nothing(role, l):
    arrays = usual(PLAIN, l, (2, 1, 2), l=l)
    assert judge(PLAIN, PLAIN.implementation(role), *arrays).grade == "A"
    assert PLAIN.implementation(role)(*arrays).shape == (2, 1, 2, l, 3)


@each_role
def test_without_b_it_is_gated_linear_attention(role):
    q, k, v, log_g, a, b = usual(batch=(2, 2))
    y = PLAIN.implementation(role)(q, k, v, log_g, a, 0 * b)
    assert np.allclose(y, refssm.gated_linear_recurrence(q, k, v, log_g))


@each_role
def test_kimis_rule_is_a_case_of_it(role):
    rng = np.random.default_rng(1)
    q, k, v, log_g, *_ = usual(seed=1)
    k, beta = unit_keys(k), 2 * rng.random(7)
    written = beta[:, None] * k
    y = PLAIN.implementation(role)(q, written, v, log_g, -np.exp(log_g) * k, written)
    assert np.allclose(y, refssm.kimi_delta_rule(q, k, v, log_g, beta))


@each_role
def test_it_is_rwkv_7_with_its_state_turned(role):
    # state ← state diag(w) − (state κ̂ᵀ)(κ̂ ∘ η) + vᵀ k with rows of values; y = state r
    r, k, v, log_w, a, b = usual(seed=2)
    state, y = np.zeros((3, 4)), []
    for t in range(7):
        removed, rate = -a[t], b[t] / -a[t]
        state = (
            state * np.exp(log_w[t])
            - np.outer(state @ removed, removed * rate)
            + np.outer(v[t], k[t])
        )
        y.append(state @ r[t])
    assert np.allclose(PLAIN.implementation(role)(r, k, v, log_w, a, b), y)


@each_role
def test_orthonormal_keys_removed_whole_recall_their_last_values(role):
    keys, _ = np.linalg.qr(np.random.default_rng(3).standard_normal((5, 5)))
    keys, v = np.concatenate([keys, keys]), np.random.default_rng(4).standard_normal((10, 3))
    S0, none = np.zeros((5, 3)), np.zeros((10, 5))
    y, S = STATEFUL.implementation(role)(keys, keys, v, none, -keys, keys, S0)
    assert np.allclose(y, v)
    assert np.allclose(keys[5:] @ S, v[5:])


@each_role
def test_a_reads_the_state_before_it_decays(role):
    # with a gate of ½ and all of the old value removed, −½ of it is left
    one, half = np.ones((2, 1)), np.log([[1.0], [0.5]])
    v = np.array([[1.0], [0.0]])
    y = PLAIN.implementation(role)(one, one, v, half, -one, one)
    assert np.allclose(y.ravel(), [1.0, -0.5])


@each_role
def test_cut_at_any_step_with_the_state_carried_it_is_the_whole(role):
    *arrays, S0 = usual(STATEFUL, 6)
    run = STATEFUL.implementation(role)
    for k in range(8):
        first, S = run(*(x[:k] for x in arrays), S0)
        second, last = run(*(x[k:] for x in arrays), S)
        both = np.concatenate([first, second]), last
        assert judge(STATEFUL, lambda *_, b=both: b, *arrays, S0).grade == "A"


@each_role
def test_nothing_passes_a_reset_not_even_nan(role):
    *arrays, _ = usual(PACKED, 7)
    with_nan = [x.copy() for x in arrays]
    for x in with_nan:
        x[:4] = np.nan
    y = PACKED.implementation(role)(*with_nan, np.arange(7) == 4)
    assert np.allclose(y[4:], PLAIN.reference(*(x[4:] for x in arrays)))


@each_role
def test_a_gate_has_no_effect_where_a_sequence_begins(role):
    arrays = usual(PACKED, 8)
    arrays[-1] = np.arange(7) % 3 == 0
    arrays[3][0::3] = np.nan
    y = PACKED.implementation(role)(*arrays)
    assert np.isfinite(y).all()
    assert not PACKED.vjp(role)(np.ones_like(y), *arrays)[3][0::3].any()


@each_role
def test_gradients_are_those_of_differences(role):
    arrays, rng = usual(PLAIN, 9, (2,)), np.random.default_rng(10)
    dy = rng.standard_normal((2, 7, 3))
    for i, g in enumerate(PLAIN.vjp(role)(dy, *arrays)):
        along, step = rng.standard_normal(g.shape), 1e-5
        ends = [
            (dy * PLAIN.reference(*(x + s * step * along if j == i else x
                                    for j, x in enumerate(arrays)))).sum()
            for s in (1, -1)
        ]  # fmt: skip
        assert np.isclose((ends[0] - ends[1]) / (2 * step), (g * along).sum(), rtol=1e-6)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_by_chunks_of_any_size_it_is_the_same(chunk):
    *arrays, S0 = usual(STATEFUL, 18, (2, 1))
    found = refssm.delta_dplr_chunked_stateful(*arrays, S0, chunk=chunk)
    for y, wanted in zip(found, refssm.delta_dplr_stateful(*arrays, S0), strict=True):
        assert np.allclose(y, wanted)


def test_by_chunks_nothing_passes_a_reset_not_even_nan():
    *arrays, _ = usual(PACKED, 19)
    with_nan = [x.copy() for x in arrays]
    for x in with_nan:
        x[:4] = np.nan
    y = refssm.delta_dplr_chunked_packed(*with_nan, np.arange(7) == 4, chunk=3)
    assert np.allclose(y[4:], PLAIN.reference(*(x[4:] for x in arrays)))


def test_what_a_reads_in_a_chunk_solves_a_triangular_system():
    # (I − A) Z = B V from rest, with the decays up to the step before
    _, k, v, log_g, a, b = usual(seed=20)
    G = np.cumsum(log_g, axis=0)
    D = np.exp((G - log_g)[:, None] - G[None])
    A, B = (np.tril(np.einsum("in,ijn,jn->ij", a, D, x), -1) for x in (b, k))
    given, rest = (k, k, v, log_g, a, b), np.zeros((4, 3))
    states = [refssm.delta_dplr_stateful(*(x[:i] for x in given), rest)[1] for i in range(7)]
    Z = np.stack([S.T @ a_i for S, a_i in zip(states, a, strict=True)])
    assert np.allclose(Z - A @ Z, B @ v)


def test_the_norm_of_a_transition_is_at_most_two_over_the_root_of_three():
    # κ̂ᵀ b = c and b has a part d ≤ √(c − c²) across κ̂: the norm is largest for c = 1/3
    assert max(_norm(1 / np.sqrt(3), s) for s in np.linspace(0.1, 0.9, 33)) <= 2 / np.sqrt(3)
    assert np.isclose(_norm(1 / np.sqrt(3), 1.0), 2 / np.sqrt(3))
    rng = np.random.default_rng(11)
    key = rng.standard_normal((1000, 3))
    key /= np.sqrt((key**2).sum(-1, keepdims=True))
    write = key * np.round(rng.random((1000, 3)))
    M = np.eye(3) - write[:, :, None] * key[:, None, :]
    assert np.linalg.norm(M, 2, axis=(1, 2)).max() < 2 / np.sqrt(3)


def _norm(c, rate):
    """‖I − b κ̂ᵀ‖₂ of two keys, of which the first is removed at a rate."""
    key = np.array([c, np.sqrt(1 - c * c)])
    return np.linalg.norm(np.eye(2) - np.outer([rate * c, 0], key), 2)


def test_products_of_norms_explode_where_products_and_bounds_do_not():
    single = usual(seed=12, l=1024, n=16, p=2, dtype="float32")
    single[3] *= 0
    norms, product, largest = 0.0, np.eye(16), 1.0
    for a, b in zip(single[4].astype(float), single[5].astype(float), strict=True):
        M = np.eye(16) + np.outer(b, a)
        norms += np.log10(np.linalg.norm(M, 2))
        product = M @ product
        largest = max(largest, np.linalg.norm(product, 2))
    assert norms > 15
    assert largest < 2
    (gauge,) = of_columns(TrackedCall(PLAIN, single, {}, 2.0**-24, 0.0))
    y = PLAIN.reference(*(x.astype(float) for x in single))
    error = np.abs(PLAIN.reference(*single) - y) / 2.0**-24
    assert (error <= gauge.k0).all()
    assert gauge.k1.max() < 1e4 * np.abs(y).max()


@pytest.mark.long
@pytest.mark.parametrize("n", [16, 64])
def test_a_carry_taken_as_a_constant_is_wrong_by_the_derived_bound_too(n):
    arrays = usual(seed=16, l=1024, n=n, p=2, dtype="float32")
    arrays[3] = np.full_like(arrays[3], -1e-3)
    dy = np.random.default_rng(17).standard_normal((1024, 2)).astype(np.float32)
    detached = gradient_form(PLAIN, lambda dy, dS, g: adjoint(dy, dS, g, carry=lambda G, t: 0 * G))(
        dy, *arrays
    )
    wide = [x.astype(float) for x in (dy, *arrays)]
    right = PLAIN.bare_vjp(*wide)
    call = TrackedCall(PLAIN, [dy, *arrays], {}, 2.0**-24, 0.0)
    bounds = of_columns_gradients(call, PLAIN.bare_vjp)
    for name, found, wanted, gauge in zip(PLAIN.inputs, detached, right, bounds, strict=True):
        error, allowed = np.abs(found - wanted), 16 * 2.0**-24 * gauge.k1
        assert (error <= allowed).all() if name == "q" else (error > 10 * allowed).any(), name


@pytest.mark.parametrize("op", DELTA_DPLR_RULE.operators, ids=str)
def test_bounds_of_columns_hold_for_single_precision(op):
    assert op.name in OF
    arrays = _single(op)
    wide = [x.astype(float) if x.dtype.kind == "f" else x for x in arrays]
    exact, found = (_several(op.reference(*given)) for given in (wide, arrays))
    gauged = of_columns(TrackedCall(op, arrays, {}, 2.0**-24, 0.0))
    for y, wanted, gauge in zip(found, exact, gauged, strict=True):
        assert (np.abs(y - wanted) <= 2.0**-24 * gauge.k0).all()
    cotangents = [np.ones_like(y) for y in found]
    wanted = op.bare_vjp(*(c.astype(float) for c in cotangents), *wide)
    gradients = op.bare_vjp(*cotangents, *arrays)
    call = TrackedCall(op, [*cotangents, *arrays], {}, 2.0**-24, 0.0)
    pairs = [(g, w) for g, w in zip(gradients, wanted, strict=True) if w is not None]
    for (g, w), gauge in zip(pairs, of_columns_gradients(call, op.bare_vjp), strict=True):
        assert (np.abs(g - w) <= 2.0**-24 * gauge.k0).all()


def _several(y):
    return y if isinstance(y, tuple) else (y,)


def _single(op):
    """Arguments in single precision, with two sequences or places."""
    rng, arrays = np.random.default_rng(13), []
    key = unit_keys(4 * rng.standard_normal((9, 4) if op is not STEP else (4,)))
    sizes = {"l": 9, "n": 4, "p": 3, "m": 2}
    for name, dims in zip(op.inputs, op.input_dims, strict=True):
        if name in ("ends", "places"):
            arrays.append(np.array([4, 9]))
        elif name == "resets":
            arrays.append(np.arange(9) == 5)
        else:
            x = rng.standard_normal([sizes[d] for d in dims])
            x = {"a": -key, "b": key * rng.random(key.shape), "log_g": -np.abs(x)}.get(name, x)
            arrays.append(np.asarray(x, np.float32))
    return arrays


def test_ellipsoids_hold_what_is_in_them_after_each_step():
    rng = np.random.default_rng(14)
    x, ellipsoid = np.zeros((3, 200)), balls(np.zeros((1, 1)), 3)
    for _ in range(20):
        gate, read, write = rng.random(3), rng.standard_normal(3), rng.standard_normal(3) / 2
        r = rng.random((3, 1))
        x = gate[:, None] * x + np.outer(write, read @ x) + r * rng.choice([-1, 1], (3, 200))
        ellipsoid = ellipsoid.moved(gate[None], read[None], write[None]).plus(*boxes(r[None]))
        shape = ellipsoid.e[0, 0] ** 2 * ellipsoid.shape[0, 0]
        assert (np.einsum("np,nm,mp->p", x, np.linalg.inv(shape), x) <= 1).all()
        assert np.isclose(np.trace(ellipsoid.shape[0, 0]), 1)
        assert np.sqrt((x**2).sum(0)).max() <= ellipsoid.e[0, 0]


def test_an_ellipsoid_that_columns_share_holds_what_is_in_each_of_them(monkeypatch):
    rng = np.random.default_rng(16)
    monkeypatch.setattr("refssm.conformance.gauges.columns.ellipsoids.MOST", 0)
    x, ellipsoid = np.zeros((4, 3, 200)), balls(np.zeros((1, 4)), 3)
    own, size = balls(np.zeros((4, 1)), 3), 10.0 ** np.array([0, -3, 2, 0])
    size[-1] = 0
    for _ in range(20):
        gate, read, write = rng.random(3), rng.standard_normal(3), rng.standard_normal(3) / 2
        r = rng.random((4, 3, 1)) * size[:, None, None]
        x = gate[:, None] * x + write[:, None] * (read @ x)[:, None]
        x = x + r * rng.choice([-1, 1], (4, 3, 200))
        ellipsoid = ellipsoid.moved(gate[None], read[None], write[None])
        ellipsoid = ellipsoid.plus(*boxes(r[:, :, 0].T[None]))
        own = own.moved(gate[None], read[None], write[None]).plus(*boxes(r))
        assert ellipsoid.shape.shape == (1, 1, 3, 3)
        assert np.isclose(np.trace(ellipsoid.shape[0, 0]), 1)
        inverse = np.linalg.inv(ellipsoid.shape[0, 0])
        held = np.einsum("pnx,nm,pmx->px", x, inverse, x)
        assert (held <= ellipsoid.e[0, :, None] ** 2 * (1 + 1e-12)).all()
        # not much more than where each column has its own
        assert (ellipsoid.e[0] <= 4 * own.e[:, 0]).all()


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_what_is_removed_is_at_most_what_is_recalled_in_every_type(kind):
    rng, kind = np.random.default_rng(15), number_type(kind)
    a = fill(removed_keys, Knob("normal", "each", real=True), (50, 16), 2, rng, kind)
    rates = fill(removals, Knob("any", "each", real=True), (50, 16), 2, rng, kind)
    b = following(a, rates, kind, entry_by_entry=True)
    assert ((a * b <= 0) & (np.abs(b) <= np.abs(a))).all()
    q, k, v, log_g = (x.astype(np.float32) for x in usual(l=50, n=16)[:4])
    ((name, other),) = changed_alone(PLAIN, [q, k, v, log_g, a, b], kind)
    assert (kind.rounded(other.astype(float), real=True) == other).all()
    assert name == "b"
    assert within(PLAIN, [q, k, v, log_g, a, other], kind)
    assert within(PLAIN, [q, k, v, log_g, a, b], kind)
    assert not within(PLAIN, [q, k, v, log_g, a, -b], kind)  # it adds
    assert not within(PLAIN, [q, k, v, log_g, a / 2, b], kind)
    assert not within(PLAIN, [q, k, v, log_g, 2 * a, b], kind)  # a norm of 2


def test_a_gate_of_another_shape_is_refused_with_both_sizes():
    q, k, v, log_g, a, b = usual()
    with pytest.raises(ValueError, match=r"delta_dplr: `a` has n=3, but earlier"):
        refssm.delta_dplr(q, k, v, log_g, a[:, :3], b)


def test_complex_arguments_are_refused():
    q, k, v, log_g, a, b = usual()
    with pytest.raises(TypeError, match="delta_dplr: `a`"):
        refssm.delta_dplr(q, k, v, log_g, a + 0j, b)


@pytest.mark.parametrize("p", [16, 19, 64])
@pytest.mark.parametrize("turned", [False, True])
def test_steps_in_whole_vectors_are_steps_one_by_one(p, turned):
    """The mirror reads vectors of adjacent values, or one value after another."""
    *arrays, S = usual(STATEFUL, 29, l=9, n=5, p=p, dtype="float32")
    S = np.array(S, order="F" if turned else "C")
    assert judge(STATEFUL, STATEFUL.implementation("jit"), *arrays, S).grade == "A"
    assert judge(STEP, STEP.implementation("jit"), *(x[3] for x in arrays), S).grade == "A"
    cotangents = [np.ones((9, p), np.float32), np.ones_like(S)]
    gradients = STATEFUL.vjp("jit")(*cotangents, *arrays, S)
    assert Grader(STATEFUL).gradients(list(gradients), cotangents, [*arrays, S], {}).ok


@each_role
def test_an_infinite_key_has_infinite_gradients_and_no_nan_beside_them(role):
    arrays = usual(l=3, n=4, p=3)
    arrays[1][2, 1] = np.inf
    dq, *_ = PLAIN.vjp(role)(np.ones((3, 3)), *arrays)
    assert np.isfinite(dq[:2]).all()
    assert np.isfinite(dq[2, [0, 2, 3]]).all()
    assert not np.isfinite(dq[2, 1])


@pytest.mark.parametrize("op", DELTA_DPLR_BY_CHUNKS.operators[:2], ids=lambda op: op.name)
def test_a_chunk_keeps_the_roundings_of_what_it_takes_away(op):
    # step 1 writes what it reads of the state before a gate that closes; later steps remove it all
    arrays = dict(zip(op.inputs, usual(op, l=256, n=3, dtype="float64"), strict=True))
    arrays["v"][1:], arrays["log_g"][:] = 0, 0
    arrays["log_g"][1] = -33
    assert judge(op, op.reference, *arrays.values(), chunk=4096).grade == "A"


def test_a_sum_of_256_steps_loses_what_a_sum_of_16_does_not():
    op = DELTA_DPLR_BY_CHUNKS.operators[1]
    arrays = dict(zip(op.inputs, usual(op, l=256, n=3, dtype="float64"), strict=True))
    arrays["v"][1:], arrays["log_g"][:] = 0, 0
    arrays["log_g"][1] = -33
    S, other = (op.reference(*arrays.values(), chunk=chunk)[1] for chunk in (16, 4096))
    assert np.abs(S).max() < 1e-8
    assert np.abs(other - S).max() > 2.0**-60
