import numpy as np
import pytest
from selective import alone, each_role, each_type, exact, sequences, usual

from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.conformance.judging.verdict import kind_of
from refssm.selective_scan import (
    MAMBA_SCAN,
    MAMBA_SCAN_PACKED,
    SELECTIVE_SCAN,
    SELECTIVE_SCAN_PACKED,
)

BATCH = {"b": 2, "d": 3}
PLAIN = {SELECTIVE_SCAN_PACKED: SELECTIVE_SCAN, MAMBA_SCAN_PACKED: MAMBA_SCAN}
each_packed = pytest.mark.parametrize("op", PLAIN, ids=str)


@each_packed
@each_role
@each_type
def test_every_sequence_is_what_it_is_alone(op, role, dtype):
    *arrays, resets = usual(op, 1, dtype, BATCH, l=20)
    resets[...] = resets[:1]  # the same resets in the whole batch, so that all can be cut there
    assert resets.any()
    y = op.implementation(role)(*arrays, resets)
    for w in sequences(resets.ravel()[:20]):
        assert np.array_equal(y[..., w], alone(PLAIN[op], role, arrays, w))
    assert judge(op, op.implementation(role), *arrays, resets).grade == "A"


@each_packed
@each_role
def test_the_members_of_a_batch_have_resets_of_their_own(op, role):
    *arrays, resets = usual(op, 2, batch=BATCH, l=20)
    assert (resets[0] != resets[1]).any()
    y = op.implementation(role)(*arrays, resets)
    for b in range(2):
        *member, own = (a[b : b + 1] if a.shape[0] == 2 else a for a in (*arrays, resets))
        for w in sequences(own.ravel()):
            assert np.array_equal(y[b : b + 1, :, w], alone(PLAIN[op], role, member, w))


@each_packed
@each_role
def test_without_resets_it_is_the_scan_and_the_first_step_needs_none(op, role):
    *arrays, resets = exact(op, 3)
    y = PLAIN[op].implementation(role)(*arrays)
    packed = op.implementation(role)
    assert np.array_equal(packed(*arrays, np.zeros(7, bool)), y)
    assert np.array_equal(packed(*arrays, np.arange(7) == 0), y)
    assert np.array_equal(packed(*arrays, resets.astype(int)), packed(*arrays, resets))


@each_packed
@each_role
def test_with_resets_everywhere_no_step_sees_another(op, role):
    *arrays, _ = usual(op, 4)
    y = op.implementation(role)(*arrays, np.ones(7, bool))
    for k in range(7):
        assert np.array_equal(y[k : k + 1], alone(PLAIN[op], role, arrays, slice(k, k + 1)))


@each_packed
@each_role
@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_nothing_leaks_past_a_reset_wherever_it_stands(op, role, special):
    *arrays, _ = exact(op, 5)
    u, _, A = arrays[:3]
    for a in arrays:
        a[...] = np.maximum(a, a is not A)  # infinity does not multiply zero
    for k in range(1, 7):
        clean = op.implementation(role)(*arrays, np.arange(7) == k)
        u[k - 1] = special
        y = op.implementation(role)(*arrays, np.arange(7) == k)
        u[k - 1] = 1
        assert kind_of(y).tolist() == [0] * (k - 1) + [kind_of(special).item()] + [0] * (7 - k)
        assert np.array_equal(y[k:], clean[k:])
    A[0] = np.nan  # at a reset even the decay is not used
    assert np.isfinite(op.implementation(role)(*arrays, np.ones(7, bool))).all()


@each_packed
@each_role
@each_type
def test_gradients_are_those_of_the_sequences_alone(op, role, dtype):
    *arrays, resets = usual(op, 6, dtype, l=20)
    (dy,) = usual(op, 7, dtype, l=20)[:1]
    *gradients, nothing = op.vjp(role)(dy, *arrays, resets)
    assert nothing is None
    gauges = expect(op, [dy, *arrays, resets], vjp=op.bare_vjp)
    pieces = [_back_alone(PLAIN[op], role, dy, arrays, w) for w in sequences(resets)]
    assert len(pieces) > 3
    for j, (g, gauge, argument) in enumerate(zip(gradients, gauges, arrays, strict=True)):
        timed = "l" in op.input_dims[j]
        own = [piece[j] for piece in pieces]
        joined = np.concatenate(own) if timed else np.sum(own, axis=0)
        assert compare(np.asarray(joined, g.dtype), gauge, argument.dtype).ok
        assert compare(g, gauge, argument.dtype).grade == "A"


def _back_alone(op, role, dy, arrays, w):
    """The gradients of one sequence alone."""
    parts = [a[w] if "l" in dims else a for a, dims in zip(arrays, op.input_dims, strict=True)]
    return op.vjp(role)(dy[w], *parts)


@each_packed
@each_role
def test_no_gradient_passes_a_reset(op, role):
    *arrays, _ = exact(op, 8)
    dy = (np.arange(7) == 6) * 1.0
    for k in range(1, 7):
        clean = op.vjp(role)(dy, *arrays, np.arange(7) == k)[:-1]
        assert not clean[0][:k].any()
        arrays[0][k - 1], kept = np.nan, arrays[0][k - 1]
        gradients = op.vjp(role)(dy, *arrays, np.arange(7) == k)[:-1]
        arrays[0][k - 1] = kept
        for g, wanted, dims in zip(gradients, clean, op.input_dims, strict=False):
            assert "l" not in dims or np.array_equal(g[k:], wanted[k:])


def test_resets_that_are_no_flags_are_refused():
    *arrays, _ = usual(SELECTIVE_SCAN_PACKED, 9)
    wanted = "wanted true or false, or integers, where 0 means false"
    message = f"^selective_scan_packed: `resets` has dtype float64, {wanted}$"
    with pytest.raises(TypeError, match=message):
        SELECTIVE_SCAN_PACKED.implementation("reference")(*arrays, np.zeros(7))
