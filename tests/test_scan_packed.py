from itertools import pairwise, product

import numpy as np
import pytest
from recurrences import TYPES, drawn, each_role, each_type, integers, random

from refssm.associative import affine as compose
from refssm.associative import associative_scan, blelloch, segmented
from refssm.conformance.judging.grading import judge
from refssm.conformance.judging.verdict import kind_of
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_PACKED

HUGE = np.finfo(float).max


def packed(role):
    return LINEAR_SCAN_PACKED.implementation(role)


def at(l, *places):
    """True at the given places."""
    return np.isin(np.arange(l), places)


def pieces(resets):
    """Slices of the packed sequences; the first begins at 0."""
    cuts = [0, *(k for k in np.flatnonzero(resets) if k), resets.size]
    return [slice(start, end) for start, end in pairwise(cuts)]


@each_role
@each_type
def test_without_resets_it_is_the_linear_scan(role, dtype):
    a, b = random(1, (12, 3), (12, 3), dtype=dtype)
    x, whole = packed(role)(a, b, np.zeros(12, bool)), LINEAR_SCAN.implementation(role)(a, b)
    assert np.array_equal(x, whole)
    assert x.dtype == whole.dtype
    assert np.array_equal(packed(role)(a, b, at(12, 0)), whole)  # the first reset has no effect


@each_role
@each_type
def test_with_resets_everywhere_it_is_the_input(role, dtype):
    a, b = random(2, (7, 3), (7, 3), dtype=dtype)
    a[3] = np.nan
    assert np.array_equal(packed(role)(a, b, np.ones(7, bool)), b)


@each_role
@each_type
def test_each_packed_sequence_is_what_it_is_alone(role, dtype):
    a, b = random(3, (13, 2), (13, 2), dtype=dtype)
    alone = LINEAR_SCAN.implementation(role)
    for places in (*((k,) for k in range(13)), (2, 3), (5, 7, 11), (1, 12), range(13)):
        resets = at(13, *places)
        x = packed(role)(a, b, resets)
        for piece in pieces(resets):
            assert np.array_equal(x[piece], alone(a[piece], b[piece])), (places, piece)


@each_role
@each_type
def test_gradients_of_packed_sequences_are_those_of_each_alone(role, dtype):
    a, b, dx = random(4, (13, 2), (13, 2), (13, 2), dtype=dtype)
    vjp, alone = LINEAR_SCAN_PACKED.vjp(role), LINEAR_SCAN.vjp(role)
    for places in (*((k,) for k in range(13)), (2, 3), (5, 7, 11), range(13)):
        resets = at(13, *places)
        da, db, nothing = vjp(dx, a, b, resets)
        assert nothing is None
        for piece in pieces(resets):
            da_alone, db_alone = alone(dx[piece], a[piece], b[piece])
            assert np.array_equal(da[piece], da_alone)
            assert np.array_equal(db[piece], db_alone)


@each_role
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, HUGE], ids=str)
def test_nothing_passes_a_boundary_forwards(role, special):
    l = 9
    for k, j in product(range(1, l), range(l)):
        a, b = np.full((l, 2), 2.0), np.ones((l, 2))
        b[j, 0] = special
        x = packed(role)(a, b, at(l, k))
        reached = range(j, k) if j < k else range(j, l)
        bad = np.flatnonzero(~(np.abs(x[:, 0]) < 2**l)).tolist()
        assert bad == list(reached), (k, j)
        assert np.isfinite(x[:, 1]).all()


@each_role
@pytest.mark.parametrize("special", [np.nan, np.inf], ids=str)
def test_nothing_passes_a_boundary_backwards(role, special):
    l, vjp = 7, LINEAR_SCAN_PACKED.vjp(role)
    for k, j in product(range(1, l), range(l)):
        a, b, dx = np.full((l, 1), 0.5), np.ones((l, 1)), np.ones((l, 1))
        dx[j] = special
        da, db, _ = vjp(dx, a, b, at(l, k))
        first = k if j >= k else 0
        assert np.flatnonzero(~np.isfinite(db)).tolist() == list(range(first, j + 1)), (k, j)
        assert da[k] == 0
        b[:k], dx[j] = special, 1  # earlier states: no decay from the boundary on uses them
        assert np.isfinite(vjp(dx, a, b, at(l, k))[0][k:]).all()


@each_role
def test_the_decay_at_a_reset_and_the_first_have_no_influence_and_no_gradient(role):
    a, b, dx = random(5, (8, 2), (8, 2), (8, 2))
    resets = at(8, 3, 4, 7)
    wanted, gradients = packed(role)(a, b, resets), LINEAR_SCAN_PACKED.vjp(role)(dx, a, b, resets)
    for special in (np.nan, np.inf, 0.0, -HUGE):
        a[[0, 3, 4, 7]] = special
        assert np.array_equal(packed(role)(a, b, resets), wanted)
        da, db, _ = LINEAR_SCAN_PACKED.vjp(role)(dx, a, b, resets)
        assert np.array_equal(da, gradients[0])
        assert np.array_equal(db, gradients[1])
    assert not da[[0, 3, 4, 7]].any()


@each_role
def test_a_zero_decay_does_the_same_for_finite_numbers_only(role):
    a, b = random(6, (9, 2), (9, 2))
    a[4] = 0
    whole = LINEAR_SCAN.implementation(role)(a, b)
    assert np.array_equal(packed(role)(a, b, at(9, 4)), whole)
    b[2, 0] = np.nan
    assert kind_of(LINEAR_SCAN.implementation(role)(a, b))[4:, 0].all()
    assert not kind_of(packed(role)(a, b, at(9, 4)))[4:].any()


@each_role
def test_integers_are_taken_as_resets(role):
    a, b = random(7, (6, 2), (6, 2))
    wanted = packed(role)(a, b, at(6, 2, 5))
    for resets in ([0, 0, 1, 0, 0, 2], [0, 0, -1, 0, 0, 7], [False, 0, True, 0, 0, 1]):
        assert np.array_equal(packed(role)(a, b, resets), wanted)
    for kind in (np.int8, np.uint8, np.int64, np.uint64):
        assert np.array_equal(packed(role)(a, b, at(6, 2, 5).astype(kind)), wanted)
    for kind in (bool, np.int64):
        resets = at(6, 2, 5).astype(kind)
        x = packed(role)(a.astype(np.float32), b.astype(np.float32), resets)
        assert x.dtype == np.float32


@each_role
def test_anything_else_is_no_reset(role):
    ones = np.ones((3, 1))
    for resets, kind in (
        ([0.0, 1.0, 0.0], "float64"),
        (np.zeros(3, np.float32), "float32"),
        ([0j, 0j, 0j], "complex128"),
        (["a", "b", "c"], "<U1"),
    ):
        for call in (packed(role), lambda *x: LINEAR_SCAN_PACKED.vjp(role)(ones, *x)):
            with pytest.raises(
                TypeError, match=rf"^linear_scan_packed: `resets` has dtype {kind}, "
            ):
                call(ones, ones, resets)
    with pytest.raises(TypeError, match=r"wanted true or false, or integers, where 0 means false$"):
        packed(role)(ones, ones, [0.0, 1.0, 0.0])


@each_role
def test_sizes_that_disagree_are_told(role):
    ones = np.ones((3, 1))
    with pytest.raises(ValueError, match=r"^linear_scan_packed: `resets` has l=2, but earlier"):
        packed(role)(ones, ones, [True, False])
    with pytest.raises(ValueError, match=r"`resets` needs core shape \(l\), got shape \(\)"):
        packed(role)(ones, ones, True)
    with pytest.raises(ValueError, match="`b` has n=2, but earlier arguments have n=1"):
        packed(role)(ones, np.ones((3, 2)), [False] * 3)
    with pytest.raises(ValueError, match="leading axes do not broadcast"):
        packed(role)(np.ones((2, 3, 1)), ones, np.zeros((3, 3), bool))
    with pytest.raises(TypeError, match="missing a required argument: 'resets'"):
        packed(role)(ones, ones)


@each_role
@each_type
def test_an_associative_scan_with_flags_is_the_same(role, dtype):
    for l in (1, 2, 16, 37):
        a, b = integers(l, (l, 2), (l, 2), dtype=dtype)
        resets = np.random.default_rng(l).random(l) < 0.2
        x = associative_scan(segmented(compose), (resets, a / 4, b), blelloch)[2]
        assert judge(LINEAR_SCAN_PACKED, lambda *_, x=x: x, a / 4, b, resets).ok
        assert judge(LINEAR_SCAN_PACKED, packed(role), a / 4, b, resets).grade == "A"


@pytest.mark.parametrize("types", list(product(TYPES, TYPES)), ids="-".join)
@each_role
def test_result_and_gradients_have_the_types_and_kinds_of_the_arguments(role, types):
    a, b = (np.ones((3, 2), t) for t in types)
    x = packed(role)(a, b, at(3, 1))
    assert x.dtype == np.result_type(a, b)
    *gradients, _ = LINEAR_SCAN_PACKED.vjp(role)(x, a, b, at(3, 1))
    assert [g.dtype.kind for g in gradients] == [a.dtype.kind, b.dtype.kind]
    assert {np.finfo(g.dtype).dtype for g in gradients} == {np.finfo(x.dtype).dtype}


@each_role
def test_resets_broadcast_and_each_member_has_its_own(role):
    a, b = random(8, (5, 2), (3, 5, 2))
    resets = np.random.default_rng(8).random((4, 1, 5)) < 0.4
    x = packed(role)(a, b, resets)
    assert x.shape == (4, 3, 5, 2)
    for i, j in np.ndindex(4, 3):
        assert np.array_equal(x[i, j], packed(role)(a, b[j], resets[i, 0]))
    da, db, nothing = LINEAR_SCAN_PACKED.vjp(role)(x, a, b, resets)
    assert (da.shape, db.shape, nothing) == (a.shape, b.shape, None)


@each_role
def test_the_gradient_by_hand(role):
    a, b, dx = np.full((3, 1), 2j), np.array([[1.0], [3.0], [5.0]]), np.array([[7j], [1.0], [2.0]])
    da, db, _ = LINEAR_SCAN_PACKED.vjp(role)(dx, a, b, [False, True, False])
    assert db.ravel().tolist() == [0, 1, 2]  # the real parts of 7i, 1 − 4i, 2
    assert da.ravel().tolist() == [0, 0, 3 * 2]


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (0, 0), (1, 1), (31, 1)], ids=str)
@each_role
def test_no_time_no_state_and_one_of_each(role, sizes):
    l, n = sizes
    a, b, resets = drawn(LINEAR_SCAN_PACKED, 9, l=l, n=n)
    x = packed(role)(a, b, resets)
    assert x.shape == (l, n)
    da, db, _ = LINEAR_SCAN_PACKED.vjp(role)(x, a, b, resets)
    assert da.shape == db.shape == (l, n)
    assert judge(LINEAR_SCAN_PACKED, packed(role), a, b, resets).ok


@each_role
def test_arguments_are_left_alone_and_results_are_new(role):
    arrays = drawn(LINEAR_SCAN_PACKED, 10)
    arrays[2][:] = True  # the result is then equal to `b`
    before = [x.copy() for x in arrays]
    x, cotangent = packed(role)(*arrays), np.ones((6, 3))
    gradients = LINEAR_SCAN_PACKED.vjp(role)(cotangent, *arrays)[:2]
    assert all(map(np.array_equal, arrays, before))
    for new, old in product((x, *gradients), (*arrays, cotangent)):
        assert not np.shares_memory(new, old)
