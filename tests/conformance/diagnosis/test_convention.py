"""A function that is right in another convention is told so, in words; no other one is named."""

import json

import numpy as np
import pytest
from judging import without_clock

from refssm import mamba2_step, mlstm, mlstm_stateful
from refssm._declaration.adapted import adapted
from refssm.adapters import (
    base_2,
    linear_gate,
    log_sigmoid,
    normalised,
    oldest_first,
    scaled,
    sigmoid,
    transposed,
)
from refssm.catalog import OPERATORS
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.diagnosis import convention
from refssm.conformance.diagnosis.convention import WORDS, conventions
from refssm.conformance.report.records import document
from refssm.conformance.running.session import results_of, session_of, text
from refssm.testing import Declaration, check


def scan(q, k, v, gates, beta, S):
    """The gated delta rule for gates themselves, one step after the other; the state is n × p."""
    y = []
    for t in range(q.shape[-2]):
        key, row = k[..., t, :, None], v[..., t, None, :]
        S = gates[..., t, None, None] * S
        S = S + beta[..., t, None, None] * key * (row - (key * S).sum(-2, keepdims=True))
        y.append((q[..., t, :, None] * S).sum(-2))
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2], S.shape[:-2])
    return np.stack(y, -2) if y else np.zeros((*batch, 0, v.shape[-1]), v.dtype), S


def from_rest(q, k, v, gates, beta):
    batch = np.broadcast_shapes(k.shape[:-2], v.shape[:-2], gates.shape[:-1], beta.shape[:-1])
    return scan(q, k, v, gates, beta, np.zeros((*batch, k.shape[-1], v.shape[-1]), v.dtype))[0]


def logistic(x):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def unit(x, eps=1e-6):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + x.dtype.type(eps))


def over_root(q):
    return q / np.sqrt(q.dtype.type(q.shape[-1]))


def in_base_2(q, k, v, log_g, beta):
    return from_rest(q, k, v, np.exp2(log_g), beta)


RIGHT = {
    (linear_gate(),): from_rest,
    (base_2(),): in_base_2,
    (log_sigmoid(),): lambda q, k, v, g, beta: from_rest(q, k, v, logistic(g), beta),
    (sigmoid(),): lambda q, k, v, g, beta: from_rest(q, k, v, np.exp(g), logistic(beta)),
    (scaled(),): lambda q, k, v, g, beta: from_rest(over_root(q), k, v, np.exp(g), beta),
    (normalised("k", 1e-5),): lambda q, k, *rest: in_base_e(q, unit(k, 1e-5), *rest),
    (base_2(), scaled()): lambda q, *rest: in_base_2(over_root(q), *rest),
    # Qwen3-Next: keys and queries are normalised and queries scaled in the kernel
    (sigmoid(), scaled(), normalised("q"), normalised("k")): lambda q, k, v, g, beta: in_base_e(
        over_root(unit(q)), unit(k), v, g, logistic(beta)
    ),
}


def in_base_e(q, k, v, log_g, beta):
    return from_rest(q, k, v, np.exp(log_g), beta)


def judged(name, function, **declared):
    """The failed results of the values in float32."""
    declaration = Declaration(name, **declared)
    how = {"checks": ("value",), "types": ("float32",), "profile": "quick"}
    return [r for r in results_of(session_of(name, function, None, declaration, **how)) if r.failed]


def refused(name, function):
    """The one result of the values, which are refused."""
    (failed,) = judged(name, function)
    return failed


@pytest.mark.parametrize("wanted", RIGHT, ids=lambda c: " ".join(map(str, c)))
def test_each_convention_is_named_in_words_with_its_adapter(wanted):
    failed = refused("gated_delta_rule", RIGHT[wanted])
    words = "; ".join(WORDS[a.name].format(name=a.argument, eps=a.eps) for a in wanted)
    assert failed.convention.startswith(f"{words}: so it is right in 29 of 29 cases; declare")
    assert failed.convention.endswith(
        f"adapters=({', '.join(map(repr, wanted))}{','[len(wanted) > 1 :]})"
    )
    assert failed.cause == f"another convention: {words}"
    assert f"  another convention: {words}" in text([failed])
    told = json.loads(document([failed], 0, "quick"))["results"][0]
    assert told["convention"] == failed.convention


def test_an_only_that_refuses_the_shapes_of_a_convention_ends_no_run():
    def decayed_twice(x, dt, A, B, C, D, z, dt_bias, S, *, dt_min, dt_max):
        given = (x, dt, 2 * A, B, C, D, z, dt_bias, S)
        return mamba2_step(*given, dt_min=dt_min, dt_max=dt_max)

    declaration = Declaration("mamba2_step", only=lambda case: {**case, "dt_min": np.zeros(())})
    how = {"checks": ("value",), "types": ("float32",), "profile": "quick"}
    session = session_of("mamba2_step", decayed_twice, None, declaration, **how)
    assert [r.verdict for r in results_of(session)] == ["wrong"]


@pytest.mark.long
@pytest.mark.parametrize("wanted", RIGHT, ids=lambda c: " ".join(map(str, c)))
def test_a_function_is_right_with_the_adapter_that_is_told(wanted):
    assert judged("gated_delta_rule", RIGHT[wanted], adapters=wanted) == []


@pytest.mark.long
def test_a_transposed_state_is_told_where_shapes_do_not_fit():
    def by_values(q, k, v, log_g, beta, S0):
        y, S = scan(q, k, v, np.exp(log_g), beta, S0.swapaxes(-1, -2))
        return y, S.swapaxes(-1, -2)

    failed = refused("gated_delta_rule_stateful", by_values)
    assert failed.convention.startswith("the state `S0` is the transpose: so it is right in 28 of")
    check("gated_delta_rule_stateful", by_values, adapters=(transposed(),), profile="quick")


@pytest.mark.long
def test_taps_in_the_other_order_are_told():
    right = operator_named("causal_conv1d").reference
    failed = refused("causal_conv1d", lambda u, k, bias: right(u, k[..., ::-1], bias))
    assert failed.convention.startswith("the taps `k` come in the other order, the oldest first:")
    assert repr(oldest_first()) in failed.convention


def by_numbers(q, k, v, log_g, beta, numbers):
    """A step begins a sequence if its number is another one than that of the step before."""
    resets = np.zeros(numbers.shape, bool)
    resets[..., 1:] = numbers[..., 1:] != numbers[..., :-1]
    return operator_named("gated_delta_rule_packed").reference(q, k, v, log_g, beta, resets)


@pytest.mark.long
def test_numbers_of_sequences_in_place_of_resets_are_told():
    failed = refused("gated_delta_rule_packed", by_numbers)
    assert failed.convention == (
        "`resets` is taken as the number of each step's sequence (seq_idx): so it is right in 28 "
        "of 28 cases; pass np.cumsum(resets, -1) in its place"
    )

    def without_gates(q, k, v, log_g, beta, numbers):
        return by_numbers(q, k, v, 0 * log_g, beta, numbers)

    assert refused("gated_delta_rule_packed", without_gates).convention == ""


def of_fewer_inputs(u, k, bias, s0):
    """The state has t − 1 inputs."""
    batch = np.broadcast_shapes(u.shape[:-1], s0.shape[:-1], k.shape[:-1])
    past = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in (s0, u)]
    past, t = np.concatenate(past, axis=-1), k.shape[-1]
    full = np.concatenate([np.zeros_like(past[..., :1]), past], axis=-1)[..., :t]
    y, _ = operator_named("causal_conv1d_stateful").reference(u, k, bias, full)
    return y, past[..., past.shape[-1] - (t - 1) :]


@pytest.mark.long
def test_a_state_without_the_oldest_input_is_told():
    failed = refused("causal_conv1d_stateful", of_fewer_inputs)
    assert failed.convention.startswith(
        "the state `s0` has t − 1 inputs, without the oldest: so it is right in 26 of 26 cases"
    )

    def late(u, k, bias, s0):
        y, s = of_fewer_inputs(u, k, bias, s0)
        return y, np.roll(s, 1, -1)

    assert refused("causal_conv1d_stateful", late).convention == ""


@pytest.mark.long
@pytest.mark.parametrize(
    "wrong",
    [
        lambda q, k, v, g, beta: in_base_2(q, k, v, g, beta) * np.float32(1.001),
        lambda q, k, v, g, beta: in_base_2(q, k, v, np.minimum(g, np.float32(-1e-3)), beta),
        lambda q, k, v, g, beta: in_base_2(q, k, v, g, np.minimum(beta, np.float32(1.5))),
        lambda q, k, v, g, beta: from_rest(q, k, v, np.exp(g * np.float32(0.7)), beta),
        lambda q, k, v, g, beta: from_rest(q, unit(k, 1e-3), v, np.exp(g), beta),
    ],
    ids=["one in a thousand", "a gate kept below 1", "a rate kept below 1.5", "base 2.01", "ε"],
)
def test_what_is_wrong_in_each_convention_is_named_in_none(wrong):
    assert refused("gated_delta_rule", wrong).convention == ""


@pytest.mark.long
def test_a_convention_is_right_at_every_case_or_is_not_told(monkeypatch):
    """A function in base 2 that is wrong at one length: the cases beside the first one see it."""

    def mostly(q, k, v, log_g, beta):
        y = in_base_2(q, k, v, log_g, beta)
        return y * 2 if y.shape[-2] > 8 else y

    assert refused("gated_delta_rule", mostly).convention == ""
    monkeypatch.setattr(convention, "_right_cases", _at_the_first_case)
    assert refused("gated_delta_rule", mostly).convention != ""


def _at_the_first_case(check, candidate, adapters, seed):
    del check, candidate, seed
    return int(adapters == (base_2(),))


@pytest.mark.long
def test_two_right_conventions_are_one_too_many(monkeypatch):
    monkeypatch.setattr(convention, "_right_cases", lambda *_: 5)
    assert refused("gated_delta_rule", in_base_2).convention == ""


def raw(log_f):
    """What mLSTM's public code does with its forget gates."""
    return -np.logaddexp(0, -log_f)


def _only_scaled(monkeypatch):
    """Try gates before their function with scaled queries, or keys, and no other convention."""
    without_clock(monkeypatch)
    pairs = [(log_sigmoid("log_f"), scaled(name)) for name in "qk"]
    monkeypatch.setattr(convention, "conventions", lambda op: pairs)


@pytest.mark.long
def test_scaled_queries_and_scaled_keys_are_one_convention_where_no_output_shows_which(monkeypatch):
    _only_scaled(monkeypatch)

    def as_published(q, k, v, i, log_f, *, eps):
        return mlstm(over_root(q), k, v, i, raw(log_f), eps=eps)

    failed = refused("mlstm", as_published)
    assert failed.convention.endswith(
        "declare adapters=(log_sigmoid('log_f'), scaled('q')); scaled('k') in place of scaled('q') "
        "is right as well, outputs do not show which"
    )


@pytest.mark.long
def test_states_show_that_keys_are_scaled_and_not_queries(monkeypatch):
    _only_scaled(monkeypatch)

    def as_published(q, k, v, i, log_f, S, s, m, *, eps):
        return mlstm_stateful(q, over_root(k), v, i, raw(log_f), S, s, m, eps=eps)

    failed = refused("mlstm_stateful", as_published)
    assert failed.convention.endswith("adapters=(log_sigmoid('log_f'), scaled('k'))")


def test_each_convention_fits_its_operator_and_has_words():
    for op in OPERATORS:
        for found in conventions(op):
            assert {a.name for a in found} <= {*WORDS}
            assert set(adapted(op, found).inputs) == set(op.inputs)
    assert len(conventions(operator_named("gated_delta_rule_stateful"))) > 500
    assert conventions(operator_named("linear_scan")) == []


@pytest.mark.long
def test_an_only_that_knows_no_transposed_state_leaves_the_verdict_alone():
    step = operator_named("gated_delta_step")

    def off(*arrays):
        y, S = step.reference(*arrays)
        return y, S + 1

    with pytest.raises(AssertionError, match="worst S_next"):
        check(
            "gated_delta_step",
            off,
            checks=("value",),
            dtypes=("float32",),
            only=dict,
            profile="quick",
        )
