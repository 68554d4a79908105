"""mLSTM: closed forms, its relation to gated linear attention, and that m may be anything."""

import mpmath
import numpy as np
import pytest
from judging import judged

import refssm
from refssm._declaration.arguments import several
from refssm.conformance.cases.scaled import comparable, with_excess
from refssm.conformance.diagnosis.convention import conventions
from refssm.conformance.gauges.tracked import Tracked, tracing
from refssm.conformance.judging.grading import judge
from refssm.xlstm import (
    MLSTM,
    MLSTM_CHUNKED,
    MLSTM_CHUNKED_STATEFUL,
    MLSTM_STATEFUL,
    MLSTM_STEP,
    XLSTM,
)

ROLES = ("reference", "jit")
each_role = pytest.mark.parametrize("role", ROLES)
WITH_STATES = [op for op in XLSTM.operators if len(op.outputs) > 1]
each_form = pytest.mark.parametrize("op", WITH_STATES, ids=str)


def usual(seed=0, batch=(), l=7, n=4, p=3, state=False, dtype="float64"):
    """Arguments as in a model: keys of norm about 1, gates after their caps."""
    rng = np.random.default_rng(seed)
    q, k = (rng.standard_normal((*batch, l, n)) for _ in range(2))
    v, i = rng.standard_normal((*batch, l, p)), 3 * rng.standard_normal((*batch, l))
    log_f = -np.abs(rng.standard_normal((*batch, l)))
    arrays = [q, k / np.sqrt(n), v, i, log_f]
    if state:
        arrays += [rng.standard_normal((*batch, *s)) for s in ((n, p), (n,), ())]
    return [x.astype(dtype) for x in arrays]


def unscaled(q, k, v, i, log_f, S=0.0, s=0.0):
    """The definition, without m."""
    y = []
    for t in range(len(q)):
        S = np.exp(log_f[t]) * S + np.exp(i[t]) * np.outer(k[t], v[t])
        s = np.exp(log_f[t]) * s + np.exp(i[t]) * k[t]
        y.append(q[t] @ S / max(abs(s @ q[t]), 1))
    return np.array(y), S, s


@each_role
def test_one_step_by_hand(role):
    # m' = max(log ½ + log 2, 0) = 0: S = ½·2·4 + 3, s = ½·2·1 + 1; y = 2·7/max(2·2, 1)
    step = MLSTM_STEP.implementation(role)
    given = ([2.0], [1.0], [3.0], 0.0, np.log(0.5), [[4.0]], [1.0], np.log(2.0))
    y, S, s, m = step(*map(np.array, given))
    np.testing.assert_allclose(np.ravel([*y, *S[0], *s, m]), [3.5, 7, 2, 0], atol=1e-15)


@each_role
def test_the_first_output_is_the_value_if_the_key_answers_the_query(role):
    # q·k e^i = 5 e^2 > 1 cancels; 0.1 e^0 is below 1 and stays
    mlstm = MLSTM.implementation(role)
    q, k, v = np.array([[5.0]]), np.array([[1.0]]), np.array([[3.0]])
    one, zero = np.array([2.0]), np.array([0.0])
    np.testing.assert_allclose(mlstm(q, k, v, one, zero), [[3.0]], rtol=1e-15)
    np.testing.assert_allclose(mlstm(-q, k, v, one, zero), [[-3.0]], rtol=1e-15)
    np.testing.assert_allclose(mlstm(q / 50, k, v, zero, zero), [[0.3]], rtol=1e-15)


@each_role
def test_it_is_the_definition_without_units(role):
    arrays = usual(1)
    y, S, s = unscaled(*arrays)
    np.testing.assert_allclose(MLSTM.implementation(role)(*arrays), y, rtol=1e-13)
    zeros = np.zeros((4, 3)), np.zeros(4), np.zeros(())
    _, S_m, s_m, m = MLSTM_STATEFUL.implementation(role)(*arrays, *zeros)
    np.testing.assert_allclose(np.exp(m) * S_m, S, rtol=1e-13)
    np.testing.assert_allclose(np.exp(m) * s_m, s, rtol=1e-13)


@each_role
def test_numerator_and_denominator_are_gated_linear_attention(role):
    q, k, v, i, log_f = usual(2)
    keys, gates = np.exp(i)[:, None] * k, np.broadcast_to(log_f[:, None], k.shape)
    num = refssm.gated_linear_recurrence(q, keys, v, gates)
    a = refssm.gated_linear_recurrence(q, keys, np.ones((7, 1)), gates)
    y = MLSTM.implementation(role)(q, k, v, i, log_f)
    np.testing.assert_allclose(y, num / np.maximum(np.abs(a), 1), rtol=1e-12)


@each_role
@pytest.mark.parametrize("shift", [-30.0, 5.0, 40.0])
def test_a_state_in_other_units_gives_the_same_outputs_and_the_same_state(role, shift):
    *arrays, S, s, m = usual(3, state=True)
    stateful = MLSTM_STATEFUL.implementation(role)
    other = S * np.exp(-shift), s * np.exp(-shift), m + shift
    first, second = stateful(*arrays, S, s, m), stateful(*arrays, *other)
    np.testing.assert_allclose(first[0], second[0], rtol=1e-12)
    for one, two in zip(first[1:3], second[1:3], strict=True):
        np.testing.assert_allclose(np.exp(first[3]) * one, np.exp(second[3]) * two, rtol=1e-12)


@each_role
def test_epsilon_is_in_units_of_the_state_so_that_the_start_of_m_changes_the_result(role):
    arrays, eps, zeros = usual(14), 0.25, (np.zeros((4, 3)), np.zeros(4))
    arrays[3] = arrays[3] - 3  # below the second start
    y, _, _ = unscaled(*arrays)
    outputs = []
    for start in (0.0, 3.0):
        stateful, m, wanted = MLSTM_STATEFUL.implementation(role), start, []
        made = stateful(*arrays, *zeros, np.array(start), eps=eps)[0]
        for t, row in enumerate(y):
            m = max(arrays[4][t] + m, arrays[3][t])
            _, _, s = unscaled(*(x[: t + 1] for x in arrays))
            d = max(abs(s @ arrays[0][t]), 1)
            wanted.append(row * d / (d + eps * np.exp(m)))
        np.testing.assert_allclose(made, wanted, rtol=1e-12)
        outputs.append(made)
    assert np.abs(outputs[0] - outputs[1]).max() > 0.01


@each_role
def test_i_may_be_any_number_without_overflow(role):
    q, k, v, _, log_f = usual(4)
    for i in (-300.0, 300.0, 1e4):
        y = MLSTM.implementation(role)(q, k, v, np.full(7, i), log_f)
        assert np.isfinite(y).all()
    limit = MLSTM.implementation(role)(q, k, v, np.full(7, 700.0), log_f)
    np.testing.assert_allclose(y, limit, rtol=1e-9)  # only the ratio is left


@each_role
def test_a_query_of_zeros_reads_zero_also_where_the_one_is_lost(role):
    q, k, v, i, log_f = usual(5)
    y = MLSTM.implementation(role)(0 * q, k, v, i + 1e4, log_f)
    np.testing.assert_array_equal(y, 0 * v)


@each_role
@pytest.mark.parametrize("l", [0, 1, 2, 3, 5, 16, 17])
def test_any_length_is_right_and_none_gives_the_first_state(role, l):
    arrays = usual(l, (2, 1, 2), l=l, state=True)
    assert judge(MLSTM, MLSTM.implementation(role), *arrays[:5]).grade == "A"
    y, *state = MLSTM_STATEFUL.implementation(role)(*arrays)
    assert y.shape == (2, 1, 2, l, 3)
    if not l:
        for one, other in zip(state, arrays[5:], strict=True):
            np.testing.assert_array_equal(one, other)


@each_role
def test_a_reset_is_a_new_start(role):
    arrays = usual(6)
    packed = refssm.mlstm_packed if role == "reference" else XLSTM.operators[2].implementation(role)
    y = packed(*arrays, np.arange(7) == 3)
    np.testing.assert_allclose(y[3:], refssm.mlstm(*(x[3:] for x in arrays)), rtol=1e-13)


@each_role
@pytest.mark.parametrize("chunk", [1, 3, 7, 16])
def test_a_chunk_of_any_size_gives_the_same(role, chunk):
    arrays = usual(12, (2,), l=20, state=True)
    for op, given in ((MLSTM_CHUNKED, arrays[:5]), (MLSTM_CHUNKED_STATEFUL, arrays)):
        made = several(op.implementation(role)(*given, chunk=chunk))
        assert op.definition is not None
        wanted = several(op.definition(*given, chunk=chunk))
        for one, other in zip(made, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_sizes_that_disagree_and_a_negative_epsilon_are_refused():
    q, k, v, i, log_f = usual()
    with pytest.raises(ValueError, match=r"mlstm: `i` has l=6, but earlier arguments have l=7"):
        refssm.mlstm(q, k, v, i[1:], log_f)
    with pytest.raises(ValueError, match="`eps` must be a number >= 0"):
        refssm.mlstm(q, k, v, i, log_f, eps=-1e-6)


def in_digits(arrays, eps):
    """Outputs and last state in mpmath, for arguments of one head."""
    q, k, v, i, log_f, S, s, m = (mpmath.matrix(np.atleast_2d(x).tolist()) for x in arrays)
    s, m, y = s.T, m[0], []
    for t in range(q.rows):
        b = log_f[t] + m
        m = max(b, i[t])
        f, g = mpmath.exp(b - m), mpmath.exp(i[t] - m)
        S = f * S + g * k[t, :].T * v[t, :]
        s = f * s + g * k[t, :].T
        d = max(abs((q[t, :] * s)[0]), mpmath.exp(-m)) + eps
        y.append(q[t, :] * S / d)
    return [*(x for row in y for x in row), *S, *s, m]


@each_role
@pytest.mark.parametrize("eps", [0.0, 0.25])
def test_the_gradient_is_that_of_max_and_all_in_mpmath_also_through_m(role, eps):
    arrays, rng = usual(7, l=4, n=2, p=2, state=True), np.random.default_rng(8)
    vjp = MLSTM_STATEFUL.vjp(role)
    outputs = MLSTM_STATEFUL.reference(*arrays, eps=eps)
    cotangents = [rng.standard_normal(y.shape) for y in outputs]
    weights = np.concatenate([np.ravel(c) for c in cotangents])
    gradients = vjp(*cotangents, *arrays, eps=eps)
    with mpmath.workdps(40):
        h = mpmath.mpf(10) ** -15
        for j, (x, g) in enumerate(zip(arrays, gradients, strict=True)):
            t = rng.standard_normal(x.shape)
            ends = []
            for sign in (-1, 1):
                moved = [np.array(a, object) * mpmath.mpf(1) for a in arrays]
                moved[j] = moved[j] + sign * h * np.array(t, object)
                ends.append(in_digits(moved, eps))
            pairs = zip(weights, *ends, strict=True)
            slope = sum(w * (b - a) / (2 * h) for w, a, b in pairs)
            np.testing.assert_allclose(float(slope), (g * t).sum(), rtol=1e-11)


@each_role
@pytest.mark.parametrize("eps", [0.0, 0.25])
@pytest.mark.parametrize("whole", range(5))
def test_a_gradient_of_an_argument_without_leading_axes_is_the_sum_over_them(role, eps, whole):
    arrays, rng = usual(12, l=4, n=2, p=2, state=True), np.random.default_rng(13)
    many = [np.broadcast_to(x, (3, *x.shape)) for x in arrays]
    arrays[whole] = many[whole] = many[whole] * (1 + rng.random((3, *[1] * arrays[whole].ndim)))
    cotangents = [rng.standard_normal(y.shape) for y in MLSTM_STATEFUL.reference(*many, eps=eps)]
    vjp = MLSTM_STATEFUL.vjp(role)
    each, summed = vjp(*cotangents, *many, eps=eps), vjp(*cotangents, *arrays, eps=eps)
    for place, (g, total) in enumerate(zip(each, summed, strict=True)):
        wanted = g if place == whole else g.sum(0)
        np.testing.assert_allclose(total, wanted, rtol=1e-10, atol=1e-10)


@each_form
@each_role
def test_without_epsilon_a_loss_of_the_state_itself_does_not_depend_on_dm(op, role):
    from refssm.conformance.cases.case import ordinary_case

    case, rng = ordinary_case(op, "float64"), np.random.default_rng(9)
    outputs = several(op.reference(*case.arrays))
    cotangents = with_excess(op, [rng.standard_normal(y.shape) for y in outputs], outputs)
    whole = op.vjp(role)(*cotangents, *case.arrays)
    *others, dm = cotangents
    # m as a constant: its cotangent is what leaves nothing for m
    for g, wanted in zip(whole, op.vjp()(*others, dm, *case.arrays), strict=True):
        if g is not None:
            np.testing.assert_allclose(g, wanted, rtol=1e-9, atol=1e-9)


def test_two_states_are_compared_in_one_scale():
    arrays = usual(10, state=True)
    y, S, s, m = refssm.mlstm_stateful(*arrays)
    moved = y, S * np.exp(-3.0), s * np.exp(-3.0), np.asarray(m + 3.0)
    back = comparable(MLSTM_STATEFUL, moved, (y, S, s, m))
    for one, other in zip(back, (y, S, s, m), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    assert judge(MLSTM_STATEFUL, lambda *_: moved, *arrays).grade == "A"
    wrong = y, S, s, np.asarray(m + 3.0)
    assert judge(MLSTM_STATEFUL, lambda *_: wrong, *arrays).grade == "F"
    lost = y, S, s, np.asarray(m * np.nan)
    assert judge(MLSTM_STATEFUL, lambda *_: lost, *arrays).grade == "F"


def test_a_state_that_is_returned_without_units_is_right_with_m_zero():
    arrays = usual(11)
    y, S, s = unscaled(*arrays)
    zeros = np.zeros((4, 3)), np.zeros(4), np.zeros(())

    def plainly(*_):
        return y, S, s, np.zeros(())

    assert judge(MLSTM_STATEFUL, plainly, *arrays, *zeros).grade == "A"


def test_beside_the_one_a_gradient_is_undecided_and_nowhere_else():
    # s q = 1 exactly: the gradient through |s q| is right, and so is none
    from refssm._numerics.scales import larger_vjp

    with tracing(unit=2.0**-24, floor=0.0):
        errors = np.zeros((3, 2)) + 1
        a = Tracked(np.array([1.0, 0.5, 2.0]), errors)
        dz = larger_vjp(Tracked(np.ones(3), errors), a, np.ones(3))
    assert dz.value.tolist() == [1.0, 0.0, 1.0]
    assert (dz.errors[0] > 2.0**23).all()
    assert dz.errors[1:].max() <= 1


def test_gates_before_their_functions_and_unscaled_queries_or_keys_are_conventions():
    made = [", ".join(map(repr, one)) for one in conventions(MLSTM)]
    assert "log_sigmoid('log_f'), scaled('q')" in made
    assert "log_sigmoid('log_f'), scaled('k')" in made


def test_split_takes_a_state_in_the_units_of_its_bounds():
    scale = np.exp(np.float32(40.3))

    def in_other_units(*arguments, **statics):
        y, S, s, m = MLSTM_STATEFUL.reference(*arguments, **statics)
        # what is lost and found again is a rounding of the state
        return y, S * np.float32(0.7) / np.float32(0.7) * scale, s * scale, m - np.float32(40.3)

    lines = judged("mlstm_stateful", in_other_units, "split", types=("float32",))
    assert [line.verdict for line in lines] == ["pass"], lines
