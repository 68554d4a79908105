from operator import attrgetter

import numpy as np
import pytest

import refssm
from refssm.conformance.gauges.columns import OF, of_columns, of_columns_gradients
from refssm.conformance.gauges.gauge import TrackedCall
from refssm.conformance.judging.grading import judge
from refssm.domains import unit_keys
from refssm.linear_attention.delta import DELTA
from refssm.linear_attention.gated_delta import GATED_DELTA
from refssm.linear_attention.gated_linear import GATED_LINEAR
from refssm.linear_attention.kimi import KIMI

RECURRENCES = (GATED_LINEAR, DELTA, GATED_DELTA, KIMI)
DECAYING = (GATED_LINEAR, GATED_DELTA, KIMI)
ROLES = ("reference", "jit")
PLAIN = [(r.operators[0], role) for r in RECURRENCES for role in ROLES]
each_plain = pytest.mark.parametrize(("op", "role"), PLAIN, ids=[f"{op}-{r}" for op, r in PLAIN])
each_role = pytest.mark.parametrize("role", ROLES)


def usual(op, seed=0, batch=(), l=7, n=4, p=3, dtype="float64"):
    """Arguments as in a model: unit keys, rates between 0 and 1, gates below 1."""
    rng = np.random.default_rng(seed)
    sizes = {"l": l, "n": n, "p": p}
    arrays = []
    for name, dims in zip(op.inputs, op.input_dims, strict=True):
        x = rng.standard_normal((*batch, *(sizes[d] for d in dims)))
        if name == "k":
            x = unit_keys(x)
        if name == "log_g":
            x = -np.abs(x)
        if name == "beta":
            x = 1 / (1 + np.exp(-x))
        arrays.append((x < -0.5) if name == "resets" else x.astype(dtype))
    return arrays


@each_role
def test_one_step_by_hand(role):
    # S = ((1, 2), (3, 4)) decays by ½ to ((½, 1), (3/2, 2)), recalls k = (1, 0) as (½, 1); the
    # value (1, 0) is written at half rate: the first row becomes (½, 1) + ½ (½, −1) = (¾, ½)
    step = GATED_DELTA.operators[-1].implementation(role)
    S = np.array([[1.0, 2.0], [3.0, 4.0]])
    y, after = step(np.array([2.0, 1.0]), np.array([1.0, 0.0]), np.array([1.0, 0.0]),
                    np.log(0.5), 0.5, S)  # fmt: skip
    assert np.allclose(after, [[0.75, 0.5], [1.5, 2.0]])
    assert np.allclose(y, [3.0, 3.0])


@each_plain
@pytest.mark.parametrize("l", [0, 1, 2, 3, 5, 16, 17])
def test_any_length_is_right_and_none_gives_nothing(op, role, l):
    arrays = usual(op, l, (2, 1, 2), l=l)
    assert judge(op, op.implementation(role), *arrays).grade == "A"
    assert op.implementation(role)(*arrays).shape == (2, 1, 2, l, 3)


@each_role
def test_without_rates_nothing_is_written(role):
    q, k, v, beta = usual(DELTA.operators[0])
    assert not DELTA.operators[0].implementation(role)(q, k, v, 0 * beta).any()


@each_role
def test_orthonormal_keys_of_rate_one_recall_their_values(role):
    rng = np.random.default_rng(1)
    keys, _ = np.linalg.qr(rng.standard_normal((5, 5)))
    v, beta = rng.standard_normal((5, 3)), np.ones(5)
    S0 = np.zeros((5, 3))
    y, S = DELTA.operators[1].implementation(role)(keys, keys, v, beta, S0)
    assert np.allclose(y, v)
    assert np.allclose(keys @ S, v)


@each_role
def test_a_rate_of_two_reflects_a_unit_key(role):
    key = np.full((1, 4), 0.5)
    S0 = np.arange(8.0).reshape(4, 2)
    args = key, key, np.zeros((1, 2)), np.full(1, 2.0), S0
    _, S = DELTA.operators[1].implementation(role)(*args)
    assert np.array_equal(key @ S, -key @ S0)


@each_role
def test_with_open_gates_the_gated_rule_is_the_delta_rule(role):
    q, k, v, beta = usual(DELTA.operators[0], 2, (2, 2))
    gated = GATED_DELTA.operators[0].implementation(role)
    assert np.array_equal(gated(q, k, v, 0 * beta, beta), refssm.delta_rule(q, k, v, beta)) or (
        judge(DELTA.operators[0], lambda *_: gated(q, k, v, 0 * beta, beta), q, k, v, beta).ok
    )


@each_role
def test_with_equal_gates_kimis_rule_is_the_gated_one(role):
    op = GATED_DELTA.operators[0]
    q, k, v, log_g, beta = arrays = usual(op, 3, (2, 2))
    keyed = np.repeat(log_g[..., None], 4, axis=-1)
    y = KIMI.operators[0].implementation(role)(q, k, v, keyed, beta)
    assert judge(op, lambda *_: y, *arrays).ok


@each_role
def test_with_one_gate_a_head_gated_linear_attention_is_state_space_duality(role):
    rng = np.random.default_rng(4)
    q, k, v = (rng.standard_normal((9, m)) for m in (4, 4, 3))
    log_g = -rng.random(9)
    y = GATED_LINEAR.operators[0].implementation(role)(q, k, v, np.repeat(log_g[:, None], 4, 1))
    assert np.allclose(y, refssm.ssd_recurrent(v, log_g, k, q))


@each_plain
def test_a_head_with_zero_queries_gives_zeros(op, role):
    q, *others = usual(op, 5)
    assert not op.implementation(role)(0 * q, *others).any()


@pytest.mark.parametrize("recurrence", RECURRENCES, ids=attrgetter("name"))
@each_role
def test_cut_at_any_step_with_the_state_carried_it_is_the_whole(recurrence, role):
    op = recurrence.operators[1]
    *arrays, S0 = usual(op, 6)
    run = op.implementation(role)
    for k in range(8):
        first, S = run(*(x[:k] for x in arrays), S0)
        second, last = run(*(x[k:] for x in arrays), S)
        both = np.concatenate([first, second]), last
        assert judge(op, lambda *_, b=both: b, *arrays, S0).grade == "A"


@pytest.mark.parametrize("recurrence", RECURRENCES, ids=attrgetter("name"))
@each_role
def test_nothing_passes_a_reset_not_even_nan(recurrence, role):
    op = recurrence.operators[2]
    *arrays, _ = usual(op, 7)
    resets = np.arange(7) == 4
    with_nan = [x.copy() for x in arrays]
    for x in with_nan:
        x[:4] = np.nan
    y = op.implementation(role)(*with_nan, resets)
    alone = recurrence.operators[0].reference(*(x[4:] for x in arrays))
    assert np.allclose(y[4:], alone)


@pytest.mark.parametrize("recurrence", DECAYING, ids=attrgetter("name"))
@each_role
def test_a_gate_has_no_effect_where_a_sequence_begins(recurrence, role):
    op = recurrence.operators[2]
    arrays = usual(op, 8)
    arrays[-1] = np.arange(7) % 3 == 0
    place = list(op.inputs).index("log_g")
    arrays[place][0::3] = np.nan
    y = op.implementation(role)(*arrays)
    assert np.isfinite(y).all()
    gradients = op.vjp(role)(np.ones_like(y), *arrays)
    assert not gradients[place][0::3].any()


@each_plain
def test_gradients_are_those_of_differences(op, role):
    arrays, rng = usual(op, 9, (2,)), np.random.default_rng(10)
    y = op.reference(*arrays)
    dy = rng.standard_normal(y.shape)
    gradients = op.vjp(role)(dy, *arrays)
    for i, g in enumerate(gradients):
        along, step = rng.standard_normal(g.shape), 1e-5
        ends = [
            (dy * op.reference(*(x + s * step * along if j == i else x
                                 for j, x in enumerate(arrays)))).sum()
            for s in (1, -1)
        ]  # fmt: skip
        assert np.isclose((ends[0] - ends[1]) / (2 * step), (g * along).sum(), rtol=1e-6)


def test_keys_keep_norms_of_at_most_one_in_bfloat16():
    rng = np.random.default_rng(11)
    keys = unit_keys(rng.standard_normal((1000, 16)) * np.exp2(rng.integers(-9, 9, (1000, 1))))
    significand, exponent = np.frexp(keys)
    rounded = np.ldexp(np.round(significand * 256) / 256, exponent)
    assert ((rounded**2).sum(-1) <= 1).all()


@pytest.mark.parametrize("count", [1, 4, 16])
def test_keys_of_few_digits_keep_their_norm_of_one(count):
    key = np.zeros(20)
    key[:count] = 1
    assert np.array_equal((unit_keys(key) ** 2).sum(), 1)


@pytest.mark.parametrize("name", ["delta_rule", "gated_delta_rule", "kimi_delta_rule"])
def test_bounds_of_columns_do_not_grow_with_unit_keys(name):
    # moduli of the matrices would give 1e24 here
    op = OF[name][0].operators[0]
    q, k, v, *gates = usual(op, 12, l=256, n=64)
    gates = [0 * g if g.ndim == 2 or g.min() < 0 else 0 * g + 1 for g in gates]
    single = [x.astype(np.float32) for x in (q, k, v, *gates)]
    (gauge,) = of_columns(TrackedCall(op, single, {}, 2.0**-24, 0.0))
    y = op.reference(*(x.astype(float) for x in single))
    error = np.abs(op.reference(*single) - y) / 2.0**-24
    assert (error <= gauge.k0).all()
    assert gauge.k0.max() < 1e4 * np.abs(y).max()


@pytest.mark.parametrize("name", [*OF])
def test_bounds_of_columns_hold_for_single_precision(name):
    op = OF[name][0].operators[OF[name][1]]
    arrays, statics = _small(op), dict.fromkeys(op.parameters, 4)
    wide = [x.astype(float) if x.dtype.kind == "f" else x for x in arrays]
    exact = op.reference(*wide, **statics)
    exact = exact if isinstance(exact, tuple) else (exact,)
    found = op.reference(*arrays, **statics)
    found = found if isinstance(found, tuple) else (found,)
    gauged = of_columns(TrackedCall(op, arrays, statics, 2.0**-24, 0.0))
    for y, wanted, gauge in zip(found, exact, gauged, strict=True):
        assert (np.abs(y - wanted) <= 2.0**-24 * gauge.k0).all()
    cotangents = [np.ones_like(y) for y in found]
    wanted = op.bare_vjp(*(c.astype(float) for c in cotangents), *wide, **statics)
    gradients = op.bare_vjp(*cotangents, *arrays, **statics)
    gauged = of_columns_gradients(
        TrackedCall(op, [*cotangents, *arrays], statics, 2.0**-24, 0.0), op.bare_vjp
    )
    pairs = [(g, w) for g, w in zip(gradients, wanted, strict=True) if w is not None]
    for (g, w), gauge in zip(pairs, gauged, strict=True):
        assert (np.abs(g - w) <= 2.0**-24 * gauge.k0).all()


def _small(op):
    """Arguments in single precision, with two sequences or places."""
    rng = np.random.default_rng(13)
    sizes = {"l": 9, "n": 4, "p": 3, "m": 2}
    arrays = []
    for name, dims in zip(op.inputs, op.input_dims, strict=True):
        shape = [sizes[d] for d in dims]
        if name in ("ends", "places"):
            arrays.append(np.array([4, 9]))
        elif name == "resets":
            arrays.append(np.arange(9) == 5)
        else:
            x = rng.standard_normal(shape)
            x = {"k": unit_keys, "log_g": lambda x: -np.abs(x), "beta": lambda x: x % 2}.get(
                name, lambda x: x
            )(x)
            arrays.append(np.asarray(x, np.float32))
    return arrays


@pytest.mark.parametrize("p", [16, 19, 64])
@pytest.mark.parametrize("turned", [False, True])
def test_a_step_in_whole_vectors_is_the_step_one_by_one(p, turned):
    """The mirror reads vectors of adjacent values, or one value after another."""
    rng = np.random.default_rng(29)
    q, k = rng.standard_normal((2, 5)).astype(np.float32)
    v, S = rng.standard_normal(p).astype(np.float32), rng.standard_normal((5, p))
    S = S.astype(np.float32, order="F" if turned else "C")
    given = q, unit_keys(k), v, np.full(5, -0.5, np.float32), np.full((), 0.75, np.float32), S
    step = KIMI.operators[-1]
    assert step.name == "kimi_delta_step"
    assert judge(step, step.implementation("jit"), *given).grade == "A"


def test_complex_arguments_are_refused():
    q, k, v, beta = usual(DELTA.operators[0])
    with pytest.raises(TypeError, match="delta_rule: `k`"):
        refssm.delta_rule(q, k + 0j, v, beta)


def test_a_gate_of_another_shape_is_refused_with_both_sizes():
    q, k, v, log_g, beta = usual(KIMI.operators[0])
    with pytest.raises(ValueError, match=r"kimi_delta_rule: `log_g` has n=3, but earlier"):
        refssm.kimi_delta_rule(q, k, v, log_g[:, :3], beta)
