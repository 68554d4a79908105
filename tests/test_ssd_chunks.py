import numpy as np
import pytest
from mpmath import mp
from selective import alone, each_role, each_type, exact, sequences, usual

from refssm.conformance.gauges.gauge import gauges
from refssm.conformance.judging.expected import unit_roundoff
from refssm.conformance.judging.grading import judge
from refssm.conformance.judging.verdict import kind_of
from refssm.conformance.standard import C as ALLOWED
from refssm.ssd import (
    SSD_CHUNKED,
    SSD_CHUNKED_PACKED,
    SSD_CHUNKED_STATEFUL,
    SSD_QUADRATIC,
    SSD_RECURRENT,
    SSD_RECURRENT_PACKED,
)

BATCH = {"b": 2, "g": 2, "h": 2}
CHUNKS = (1, 2, 3, 5, 16, 64, 256, 4096)


@each_role
@each_type
def test_a_chunk_of_any_size_is_the_quadratic_form_exactly_on_integers(role, dtype):
    arrays = exact(SSD_CHUNKED, 1, dtype, BATCH, l=9)
    y = SSD_QUADRATIC.implementation("reference")(*arrays)
    for chunk in range(1, 11):
        assert np.array_equal(SSD_CHUNKED.implementation(role)(*arrays, chunk=chunk), y)


@each_role
@pytest.mark.parametrize("l", [372, 1134])
@pytest.mark.parametrize("chunk", [16, 64, 256])
def test_the_last_chunk_may_be_short(role, l, chunk):
    arrays = exact(SSD_CHUNKED_STATEFUL, 2, l=l)
    y, S = SSD_CHUNKED_STATEFUL.implementation(role)(*arrays, chunk=chunk)
    x, _, B, C, S0 = arrays
    states = S0 + np.cumsum(x[:, :, None] * B[:, None, :], axis=0)
    assert np.array_equal(y, (states * C[:, None, :]).sum(-1))
    assert np.array_equal(S, states[-1])
    arrays = usual(SSD_CHUNKED, 3, "float32", l=l)
    assert judge(SSD_CHUNKED, SSD_CHUNKED.implementation(role), *arrays, chunk=chunk).grade == "A"


@each_role
@each_type
@pytest.mark.parametrize("chunk", CHUNKS)
def test_chunks_do_not_matter_where_numbers_round(role, dtype, chunk):
    arrays = usual(SSD_CHUNKED_STATEFUL, 4, dtype, l=65)
    chunked = SSD_CHUNKED_STATEFUL.implementation(role)
    assert judge(SSD_CHUNKED_STATEFUL, chunked, *arrays, chunk=chunk).grade == "A"


@pytest.mark.parametrize("chunk", [0, -1, 2.0, True, None, "64"])
def test_a_chunk_that_is_no_count_is_refused(chunk):
    message = f"^ssd_chunked: `chunk` must be an integer >= 1, got {chunk!r}$"
    with pytest.raises(ValueError, match=message):
        SSD_CHUNKED.implementation("reference")(*usual(SSD_CHUNKED, 5), chunk=chunk)


def exponentiated_before_the_mask(x, log_a, B, C, *, chunk):
    """A planted mistake: e^T for all pairs, also later ones, multiplied by the mask."""
    del chunk
    T = np.cumsum(log_a)[:, None] - np.cumsum(log_a)
    with np.errstate(all="ignore"):
        weights = np.exp(T) * np.tril(np.ones_like(T))
        return (weights * (C @ B.T)) @ x


@pytest.mark.long
@each_role
@pytest.mark.parametrize(("rate", "l"), [(1, 256), (100, 64), (100, 256)])
def test_steep_decays_make_no_infinity_times_zero(role, rate, l):
    arrays = usual(SSD_CHUNKED, 6, "float32", l=l)
    arrays[1][:] = -rate
    for chunk in (64, 256):
        y = SSD_CHUNKED.implementation(role)(*arrays, chunk=chunk)
        assert judge(SSD_CHUNKED, lambda *_, y=y, **__: y, *arrays, chunk=chunk).grade == "A"
        gradients = SSD_CHUNKED.vjp(role)(y, *arrays, chunk=chunk)
        assert all(np.isfinite(g).all() for g in gradients)
    verdict = judge(SSD_CHUNKED, exponentiated_before_the_mask, *arrays, chunk=l)
    assert (verdict.ok, "NaN" in verdict.message) == (False, True)


def by_differences(x, log_a, B, C, *, chunk):
    """Segment sums as differences of a cumulative sum per chunk; masked before the exponential."""
    S, y = np.zeros((x.shape[-1], B.shape[-1]), x.dtype), []
    for start in range(0, len(x), chunk):
        w = slice(start, start + chunk)
        s = np.cumsum(log_a[w])
        T = np.where(np.tri(len(s), dtype=bool), s[:, None] - s, -np.inf)
        y.append((np.exp(T) * (C[w] @ B[w].T)) @ x[w] + np.exp(s)[:, None] * (C[w] @ S.T))
        S = np.exp(s[-1]) * S + (np.exp(s[-1] - s)[:, None] * x[w]).T @ B[w]
    return np.concatenate(y)


@each_role
@pytest.mark.parametrize(("l", "chunk"), [(64, 64), (300, 64), (300, 300), (2048, 2048)])
def test_differences_of_a_cumulative_sum_lose_what_the_sum_has_grown_to(role, l, chunk):
    # slow decays after steep ones, at sizes that the judge draws and at one that it does not
    arrays = usual(SSD_CHUNKED, 7, "float32", l=l)
    log_a = arrays[1]
    log_a[: l // 2], log_a[l // 2 :] = -100, -1e-3
    # a chunk of 2048 loses more than the second digit of the largest value
    lost = "N" if chunk < 2048 else "F"
    assert judge(SSD_RECURRENT, lambda *a: by_differences(*a, chunk=chunk), *arrays).grade == lost
    chunked = SSD_CHUNKED.implementation(role)
    assert judge(SSD_RECURRENT, lambda *a: chunked(*a, chunk=chunk), *arrays).grade == "A"
    log_a[:] = -1  # integers, whose sums are exact: the mistake is invisible
    assert judge(SSD_RECURRENT, lambda *a: by_differences(*a, chunk=chunk), *arrays).ok


def exact_row(i, x, log_a, B, C):
    """y_i of one head with 40 digits."""
    T, row = mp.mpf(0), [mp.mpf(0)] * x.shape[-1]
    for j in range(i, -1, -1):
        pairs = zip(C[i], B[j], strict=True)
        weight = mp.exp(T) * mp.fsum(float(c) * mp.mpf(float(b)) for c, b in pairs)
        row = [r + weight * float(x_p) for r, x_p in zip(row, x[j], strict=True)]
        T += float(log_a[j])
    return row


@pytest.mark.long
@each_role
@pytest.mark.parametrize("l", [2048, 4096])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_slow_decay_keeps_its_digits_over_thousands_of_steps(role, l, dtype):
    arrays = usual(SSD_CHUNKED, 8, dtype, l=l, n=2)
    arrays[1] *= np.asarray(0.01, dtype)
    wide = [a.astype(float) for a in arrays]
    u = unit_roundoff(dtype)
    (gauge,) = gauges(SSD_RECURRENT.reference, *arrays, unit=u)
    for chunk in (64, 256, l):
        y = SSD_CHUNKED.implementation(role)(*arrays, chunk=chunk)
        for i in (l - 1, l // 2 + 1, 255):
            with mp.workdps(40):
                wanted = exact_row(i, *wide)
                error = [float(abs(got - w)) for got, w in zip(y[i].tolist(), wanted, strict=True)]
            assert (error <= ALLOWED * u * gauge.k0[i]).all()


@each_role
@pytest.mark.parametrize("l", [1, 6])
def test_a_reset_may_stand_anywhere_on_the_grid_of_chunks(role, l):
    *arrays, _ = exact(SSD_CHUNKED_PACKED, 9, l=l)
    packed = SSD_CHUNKED_PACKED.implementation(role)
    for first in range(l):
        for second in range(first, l):
            resets = np.isin(np.arange(l), [first, second])
            pieces = [alone(SSD_RECURRENT, role, arrays, w) for w in sequences(resets)]
            for chunk in range(1, l + 1):
                y = packed(*arrays, resets, chunk=chunk)
                assert np.array_equal(y, np.concatenate(pieces))


@each_role
@each_type
@pytest.mark.parametrize("op", [SSD_RECURRENT_PACKED, SSD_CHUNKED_PACKED], ids=str)
def test_packed_sequences_are_what_they_are_alone(op, role, dtype):
    *arrays, resets = usual(op, 10, dtype, BATCH, l=20)
    assert (resets[0] != resets[1]).any()
    statics = {"chunk": 4} if op.static else {}
    y = op.implementation(role)(*arrays, resets, **statics)
    for b, own in enumerate(resets.reshape(2, 20)):
        member = [a[b : b + 1] for a in arrays]
        for w in sequences(own):
            cut = y[b : b + 1, :, :, w]
            piece = [a[:, :, :, w] for a in member]
            assert judge(SSD_RECURRENT, lambda *_, c=cut: c, *piece).grade == "A"


@each_role
@pytest.mark.parametrize("op", [SSD_RECURRENT_PACKED, SSD_CHUNKED_PACKED], ids=str)
@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_nothing_leaks_past_a_reset(op, role, special):
    *arrays, _ = exact(op, 11)
    arrays = [np.maximum(a, name != "log_a") for a, name in zip(arrays, op.inputs, strict=False)]
    for chunk in (1, 3, 7):
        statics = {"chunk": chunk} if op.static else {}
        for k in range(1, 7):
            resets = np.arange(7) == k
            clean = op.implementation(role)(*arrays, resets, **statics)
            for argument in arrays:
                kept = argument[k - 1].copy()
                argument[k - 1] = special
                y = op.implementation(role)(*arrays, resets, **statics)
                gradients = op.vjp(role)(clean, *arrays, resets, **statics)[:-1]
                argument[k - 1] = kept
                assert np.array_equal(y[k:], clean[k:])
                assert kind_of(y[: k - 1]).max(initial=0) == 0
                assert all(np.isfinite(g[k:]).all() for g in gradients)


@each_role
@pytest.mark.parametrize("op", [SSD_RECURRENT_PACKED, SSD_CHUNKED_PACKED], ids=str)
def test_with_resets_everywhere_no_step_sees_another(op, role):
    x, log_a, B, C, _ = exact(op, 12)
    statics = {"chunk": 3} if op.static else {}
    log_a[:] = np.nan  # only the first decay is used, which multiplies the state of rest
    log_a[0] = 0
    y = op.implementation(role)(x, log_a, B, C, np.ones(7, bool), **statics)
    assert np.array_equal(y, (B * C).sum(-1)[:, None] * x)
