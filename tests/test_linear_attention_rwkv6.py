"""RWKV-6: what is read when, closed forms, relations, and mistakes of public kernels."""

import numpy as np
import pytest

import refssm
from refssm.adapters import linear_gate, neg_exp, scaled
from refssm.conformance.judging.grading import judge
from refssm.conformance.running.session import results_of, session_of
from refssm.domains import unit_keys
from refssm.linear_attention import (
    RWKV6,
    RWKV6_CHUNKED_STATEFUL,
    RWKV6_PACKED,
    RWKV6_STATEFUL,
    RWKV6_STEP,
)
from refssm.linear_attention.rwkv6 import RWKV6_RECURRENCE
from refssm.testing import Declaration

each_role = pytest.mark.parametrize("role", ["reference", "jit"])


def usual(op, seed=0, batch=(), l=7, n=4, p=3):
    """Arguments as in a model: short keys, decays below 1; the bonus lacks the outermost axis."""
    rng, sizes, arrays = np.random.default_rng(seed), {"l": l, "n": n, "p": p}, []
    for name, dims in zip(op.inputs, op.input_dims, strict=True):
        own = batch[1:] if name == "u" else batch
        x = rng.standard_normal((*own, *(sizes[d] for d in dims)))
        x = {"k": unit_keys, "log_w": lambda x: -np.abs(x)}.get(name, lambda x: x)(x)
        arrays.append(x < -0.5 if name == "resets" else x)
    return arrays


@each_role
def test_one_step_by_hand(role):
    # r = (2, 1) reads S + diag(½, 3) k vᵀ = ((1, 2), (3, 4)) + ((½, 0), (0, 0)); the rows of S then
    # decay by ½ and by 1, and k vᵀ = ((1, 0), (0, 0)) is added without u
    S = np.array([[1.0, 2.0], [3.0, 4.0]])
    y, after = RWKV6_STEP.implementation(role)(
        np.array([2.0, 1.0]), np.array([1.0, 0.0]), np.array([1.0, 0.0]),
        np.array([np.log(0.5), 0.0]), np.array([0.5, 3.0]), S)  # fmt: skip
    assert np.allclose(y, [6.0, 8.0])
    assert np.allclose(after, [[1.5, 1.0], [3.0, 4.0]])


@each_role
@pytest.mark.parametrize("l", [0, 1, 2, 3, 5, 16, 17])
def test_any_length_is_right_and_none_gives_nothing(role, l):
    arrays = usual(RWKV6, l, (2, 1, 2), l=l)
    assert judge(RWKV6, RWKV6.implementation(role), *arrays).grade == "A"
    assert RWKV6.implementation(role)(*arrays).shape == (2, 1, 2, l, 3)


@each_role
def test_ones_with_one_decay_give_a_geometric_series_and_the_bonus(role):
    one, t, a = np.ones((9, 1)), np.arange(9), 0.75
    y = RWKV6.implementation(role)(one, one, one, np.log(a) * one, np.array([0.3]))
    assert np.allclose(y.ravel(), 0.3 + (1 - a**t) / (1 - a))


@each_role
def test_without_decay_and_with_bonus_one_it_is_gated_linear_attention(role):
    r, k, v, log_w, u = usual(RWKV6, 1)
    y = RWKV6.implementation(role)(r, k, v, 0 * log_w, np.ones_like(u))
    assert np.allclose(y, refssm.gated_linear_recurrence(r, k, v, 0 * log_w))


@each_role
def test_without_bonus_it_answers_the_next_receptance_of_gated_linear_attention(role):
    r, k, v, log_w, u = usual(RWKV6, 2)
    y = RWKV6.implementation(role)(r, k, v, log_w, 0 * u)
    assert np.allclose(y[1:], refssm.gated_linear_recurrence(r[1:], k[:-1], v[:-1], log_w[:-1]))
    assert not y[0].any()


@each_role
def test_the_last_key_and_decay_are_in_the_last_state_but_not_in_the_outputs(role):
    r, k, v, log_w, u, S0 = usual(RWKV6_STATEFUL, 3)
    log_w[-1] = np.nan
    y, S = RWKV6_STATEFUL.implementation(role)(r, k, v, log_w, u, S0)
    assert np.isfinite(y).all()
    assert np.isnan(S).all()


@pytest.mark.parametrize("op", [RWKV6_STATEFUL, RWKV6_CHUNKED_STATEFUL], ids=str)
@each_role
def test_cut_at_any_step_with_the_state_carried_it_is_the_whole(op, role):
    r, k, v, log_w, u, S0 = arrays = usual(op, 4)
    run, statics = op.implementation(role), dict.fromkeys(op.parameters, 3)
    for cut in range(8):
        first, S = run(r[:cut], k[:cut], v[:cut], log_w[:cut], u, S0, **statics)
        second, last = run(r[cut:], k[cut:], v[cut:], log_w[cut:], u, S, **statics)
        both = np.concatenate([first, second]), last
        assert judge(op, lambda *_, b=both, **__: b, *arrays, **statics).grade == "A"


@each_role
def test_neither_nan_nor_a_decay_passes_where_a_sequence_begins(role):
    r, k, v, log_w, u, _ = usual(RWKV6_PACKED, 5)
    alone = refssm.rwkv6(r[4:], k[4:], v[4:], log_w[4:], u)
    for x in (r, k, v, log_w):
        x[:4] = np.nan
    log_w[4] = np.nan
    given = r, k, v, log_w, u, np.arange(7) == 4
    y = RWKV6_PACKED.implementation(role)(*given)
    assert np.allclose(y[4:], alone)
    gradients = RWKV6_PACKED.vjp(role)(np.ones_like(y), *given)
    assert all(np.isfinite(x[4:]).all() for x in gradients[:4])
    assert not gradients[3][4].any()


@each_role
def test_gradients_are_those_of_differences(role):
    arrays, rng = usual(RWKV6_STATEFUL, 6, (2, 1, 2)), np.random.default_rng(7)
    run = RWKV6_STATEFUL.reference
    cotangents = [rng.standard_normal(y.shape) for y in run(*arrays)]

    def loss(*arrays):
        return sum((c * y).sum() for c, y in zip(cotangents, run(*arrays), strict=True))

    for i, g in enumerate(RWKV6_STATEFUL.vjp(role)(*cotangents, *arrays)):
        along, step = rng.standard_normal(g.shape), 1e-5
        ends = [loss(*(x + s * step * along if j == i else x for j, x in enumerate(arrays)))
                for s in (1, -1)]  # fmt: skip
        assert np.isclose((ends[0] - ends[1]) / (2 * step), (g * along).sum(), rtol=1e-6)


@each_role
def test_the_gradient_of_the_bonus_is_summed_over_time_and_batch(role):
    r, k, v, log_w, u = usual(RWKV6, 8, (2, 1, 2))
    dy = np.random.default_rng(9).standard_normal(v.shape)
    du = RWKV6.vjp(role)(dy, r, k, v, log_w, u)[-1]
    assert np.allclose(du, (r * k * (v * dy).sum(-1, keepdims=True)).sum((0, -2)))


@each_role
@pytest.mark.parametrize("op", [RWKV6, RWKV6_STATEFUL], ids=str)
def test_a_bonus_with_axes_that_nothing_else_has_gives_the_sum_of_gradients(op, role):
    arrays, rng = usual(op, 10), np.random.default_rng(11)
    own = [[*arrays[:4], u, *arrays[5:]] for u in rng.standard_normal((2, 4))]
    both = [*arrays[:4], np.stack([x[4] for x in own]), *arrays[5:]]
    cotangents = [rng.standard_normal((2, *dims)) for dims in ((7, 3), (4, 3))][: len(op.outputs)]
    found = op.vjp(role)(*cotangents, *both)
    each = [op.vjp(role)(*(c[i] for c in cotangents), *own[i]) for i in range(2)]
    for i, name in enumerate(op.inputs):
        wanted = [gradients[i] for gradients in each]
        assert np.allclose(found[i], np.stack(wanted) if name == "u" else sum(wanted))


def stepped(r, k, v, decay, u, S):
    """One step after the other; the state is n × p."""
    y = []
    for t in range(r.shape[-2]):
        new = k[..., t, :, None] * v[..., t, None, :]
        y.append(((S + u[..., None] * new) * r[..., t, :, None]).sum(-2))
        S = decay[..., t, :, None] * S + new
    return np.stack(y, -2) if y else np.zeros((*S.shape[:-2], 0, S.shape[-1]), S.dtype), S


def from_own_state(r, k, v, log_w, u, S0):
    """Each member starts from its own state."""
    batch = RWKV6_STATEFUL.batch_shape(r, k, v, log_w, u, S0)
    start = np.broadcast_to(S0, (*batch, *S0.shape[-2:]))
    return stepped(r, k, v, np.exp(log_w), u, start.copy())


def from_state_of_first(r, k, v, log_w, u, S0):
    """As in a kernel whose pointer to the first state lacks the offset of the batch."""
    S0 = np.broadcast_to(S0[:1], S0.shape) if S0.ndim > 2 else S0
    return from_own_state(r, k, v, log_w, u, S0)


def refused(name, function, *checks, **declared):
    """The failed results of some checks in single precision."""
    how = {"checks": checks, "types": ("float32",), "profile": "quick"}
    session = session_of(name, function, None, Declaration(name, **declared), **how)
    return [result for result in results_of(session) if result.failed]


@pytest.mark.long
def test_a_first_state_without_the_offset_of_the_batch_is_refused_and_named():
    checks = "value", "state"
    assert refused("rwkv6_stateful", from_own_state, *checks) == []
    failures = refused("rwkv6_stateful", from_state_of_first, *checks)
    assert {result.check for result in failures} == {*checks}
    assert {result.cause for result in failures} == {"the first member's state for all"}


def at_rest(r, k, v, u):
    batch = np.broadcast_shapes(r.shape[:-2], k.shape[:-2], v.shape[:-2], u.shape[:-1])
    return np.zeros((*batch, k.shape[-1], v.shape[-1]), v.dtype)


OTHERS = {
    "minus the exponential": (
        neg_exp("log_w"),
        lambda r, k, v, w, u: stepped(r, k, v, np.exp(-np.exp(w)), u, at_rest(r, k, v, u))[0],
    ),
    "the decay itself": (
        linear_gate("log_w"),
        lambda r, k, v, w, u: stepped(r, k, v, w, u, at_rest(r, k, v, u))[0],
    ),
    "a scale": (
        scaled("r"),
        lambda r, k, v, w, u: stepped(
            r / np.sqrt(r.dtype.type(r.shape[-1])), k, v, np.exp(w), u, at_rest(r, k, v, u)
        )[0],
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", OTHERS)
def test_a_kernel_of_another_convention_is_told_its_adapter(name):
    adapter, function = OTHERS[name]
    (failed,) = refused("rwkv6", function, "value")
    assert failed.convention.endswith(f"declare adapters=({adapter!r},)")
    assert refused("rwkv6", function, "value", adapters=(adapter,)) == []


def test_complex_arguments_are_refused():
    r, k, v, log_w, u = usual(RWKV6)
    with pytest.raises(TypeError, match="rwkv6: `k`"):
        refssm.rwkv6(r, k + 0j, v, log_w, u)


def test_a_bonus_of_another_size_is_refused_with_both_sizes():
    r, k, v, log_w, u = usual(RWKV6)
    with pytest.raises(ValueError, match=r"rwkv6: `u` has n=3, but earlier"):
        refssm.rwkv6(r, k, v, log_w, u[:3])


def test_every_form_is_in_the_catalog():
    names = [op.name.removeprefix("rwkv6") for op in RWKV6_RECURRENCE.operators]
    assert names == ["", "_stateful", "_packed", "_packed_stateful", "_states", "_step"]
