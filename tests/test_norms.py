"""Facts of norms beside a recurrence: scale, groups, gates, small rows, gradients, messages."""

import numpy as np
import pytest
from judging import judged, rounded_to

import refssm
from refssm.conformance.judging.grading import judge
from refssm.norms import GATED_RMS_NORM, L2_NORM, RMS_NORM_GATED

ROLES = ("reference", "jit")
each_role = pytest.mark.parametrize("role", ROLES)
each_gated = pytest.mark.parametrize("op", [RMS_NORM_GATED, GATED_RMS_NORM], ids=str)
each_norm = pytest.mark.parametrize("op", [RMS_NORM_GATED, GATED_RMS_NORM, L2_NORM], ids=str)


def drawn(op, seed, n=6, lead=(2, 3), dtype="float64"):
    draw = np.random.default_rng(seed).standard_normal
    shapes = [(*lead, n), (*lead, n), (n,)][: len(op.inputs)]
    return [draw(shape).astype(dtype) for shape in shapes]


@each_role
def test_the_examples_of_the_docstrings(role):
    y = RMS_NORM_GATED.implementation(role)([3.0, -1.0], [0.0, 50.0], [1.0, 2.0], eps=4.0)
    assert np.allclose(y, [0, -100 / 3])
    x, z, w = [3.0, 4.0, 5.0, 12.0], [50.0] * 4, [1.0, 1.0, 1.0, 13.0]
    y = GATED_RMS_NORM.implementation(role)(x, z, w, eps=0.0, group=2)
    assert np.allclose(y, np.sqrt(2) * np.array([0.6, 0.8, 5 / 13, 12]))
    assert np.allclose(L2_NORM.implementation(role)([3.0, 4.0], eps=11.0), [0.5, 2 / 3])


@each_role
def test_rows_have_unit_mean_square_or_unit_length(role):
    x, z, w = drawn(RMS_NORM_GATED, 1, n=50)
    gate = 50 * np.ones_like(z)
    y = RMS_NORM_GATED.implementation(role)(x, gate, np.ones_like(w), eps=0.0)
    assert np.allclose((y / 50) ** 2 @ np.ones(50), 50)
    s = GATED_RMS_NORM.implementation(role)(x, z, np.ones_like(w), eps=0.0, group=5)
    assert np.allclose((s.reshape(2, 3, 10, 5) ** 2).mean(-1), 1)
    assert np.allclose((L2_NORM.implementation(role)(x, eps=0.0) ** 2).sum(-1), 1)


@each_role
def test_the_scale_of_a_row_does_not_matter_but_for_eps(role):
    x, z, w = drawn(RMS_NORM_GATED, 2)
    norm = RMS_NORM_GATED.implementation(role)
    assert np.array_equal(norm(x, z, w, eps=0.0), norm(1024 * x, z, w, eps=0.0))
    assert np.array_equal(norm(x, z, w, eps=2.0**-20), norm(1024 * x, z, w, eps=1.0))
    length = L2_NORM.implementation(role)
    assert np.array_equal(length(x, eps=2.0**-20), length(1024 * x, eps=1.0))


@each_role
@each_norm
def test_a_row_of_zeros_is_zero_and_its_gradient_is_that_of_a_division_by_the_root(op, role):
    zeros = [np.zeros(4), np.full(4, 2.0), np.ones(4)][: len(op.inputs)]
    y = op.implementation(role)(*zeros, eps=0.25)
    assert not y.any()
    dy = np.arange(4.0)
    dx = op.vjp(role)(dy, *zeros, eps=0.25)[0]
    gate = 1.0 if op is L2_NORM else float(refssm.silu(np.float64(2.0)))
    assert np.allclose(dx, 2 * gate * dy)
    alone = op.implementation(role)(*zeros, eps=0.0)
    assert np.isnan(alone).all()


@each_role
@each_norm
def test_a_row_far_below_the_root_of_eps_is_divided_by_it(op, role):
    arrays = [np.full(4, 2.0**-66), np.full(4, 64.0), np.ones(4)][: len(op.inputs)]
    y = op.implementation(role)(*(a.astype("f4") for a in arrays), eps=2.0**-20)
    assert (y == 2.0 ** (-66 + 10 + (0 if op is L2_NORM else 6))).all()


@each_role
def test_large_rows_do_not_overflow_up_to_the_root_of_the_largest_number(role):
    x = np.full(4, 2.0**62, np.float32)
    assert np.array_equal(L2_NORM.implementation(role)(x, eps=1.0), np.full(4, 0.5, np.float32))
    with np.errstate(over="ignore"):  # beyond it the squares are infinite, by definition of x²
        assert not L2_NORM.implementation(role)(x * 8, eps=1.0).any()


@each_role
def test_one_group_is_all_channels(role):
    x, z, w = drawn(GATED_RMS_NORM, 3, n=12)
    norm, vjp = GATED_RMS_NORM.implementation(role), GATED_RMS_NORM.vjp(role)
    assert np.array_equal(norm(x, z, w), norm(x, z, w, group=12))
    assert all(map(np.array_equal, vjp(x, x, z, w), vjp(x, x, z, w, group=12)))


@each_role
@pytest.mark.parametrize("group", [1, 2, 3, 4, 6, 12])
def test_groups_are_norms_of_their_own(role, group):
    x, z, w = drawn(GATED_RMS_NORM, 4, n=12)
    dy = drawn(L2_NORM, 5, n=12)[0]
    norm, vjp = GATED_RMS_NORM.implementation(role), GATED_RMS_NORM.vjp(role)
    y, gradients = norm(x, z, w, group=group), vjp(dy, x, z, w, group=group)
    for i in range(0, 12, group):
        part = slice(i, i + group)
        own = (x[..., part], z[..., part], w[part])
        assert np.allclose(y[..., part], norm(*own))
        for whole, mine in zip(gradients, vjp(dy[..., part], *own), strict=True):
            assert np.allclose(whole[..., part], mine)


@each_role
def test_before_and_after_are_two_operators(role):
    x, z, w = drawn(GATED_RMS_NORM, 6)
    after, before = (op.implementation(role) for op in (RMS_NORM_GATED, GATED_RMS_NORM))
    assert not np.allclose(after(x, z, w), before(x, z, w))
    flat = np.full_like(z, 3.0)  # gates that are all alike: before, they cancel
    gate = refssm.silu(flat)
    assert np.allclose(after(x, flat, w, eps=0.0), gate * before(x, flat, w, eps=0.0))


@each_role
def test_the_gradient_along_a_row_is_only_what_eps_leaves(role):
    x = np.array([3.0, 4.0])
    (dx,) = L2_NORM.vjp(role)(x, x, eps=0.0)
    assert np.allclose(dx, 0)
    (dx,) = L2_NORM.vjp(role)(x, x, eps=11.0)  # d/dt t/√(25 t² + 11) at t = 1, times 25
    assert np.allclose(dx, x * 11 / 6**3)


@each_role
@each_gated
def test_the_gradient_of_the_weights_is_summed_over_all_rows(op, role):
    x, z, w = drawn(op, 7)
    dy = drawn(L2_NORM, 8)[0]
    _, _, dw = op.vjp(role)(dy, x, z, w)
    parts = [op.vjp(role)(dy[i], x[i], z[i], w)[2] for i in np.ndindex(2, 3)]
    assert np.allclose(dw, sum(parts))


@each_role
@each_norm
def test_types_and_empty_rows(op, role):
    for dtype in ("float32", "float64"):
        arrays = drawn(op, 12, dtype=dtype)
        y = op.implementation(role)(*arrays)
        assert y.dtype == dtype
        assert [g.dtype for g in op.vjp(role)(y, *arrays)] == [dtype] * len(arrays)
    none = drawn(op, 13, n=0)
    assert op.implementation(role)(*none).shape == (2, 3, 0)
    assert [g.shape for g in op.vjp(role)(none[0], *none)] == [a.shape for a in none]
    no_rows = drawn(op, 14, lead=(0,))
    assert op.implementation(role)(*no_rows).shape == (0, 6)


@each_norm
def test_long_double_keeps_its_digits_in_the_references(op):
    arrays = [a.astype(np.longdouble) for a in drawn(op, 15)]
    y = op.reference(*arrays)
    assert y.dtype == np.longdouble
    assert np.abs(y - op.reference(*(a.astype(float) for a in arrays))).max() > 0


@each_role
def test_nan_in_a_feature_stays_in_its_row_and_in_a_gate_in_its_entry(role):
    x, z, w = drawn(RMS_NORM_GATED, 16)
    bad, shut = x.copy(), z.copy()
    bad[0, 1, 2], shut[1, 2, 4] = np.nan, np.nan
    norm = RMS_NORM_GATED.implementation(role)
    assert np.argwhere(np.isnan(norm(bad, z, w))).tolist() == [[0, 1, i] for i in range(6)]
    assert np.argwhere(np.isnan(norm(x, shut, w))).tolist() == [[1, 2, 4]]
    before = GATED_RMS_NORM.implementation(role)
    poisoned = np.isnan(before(x, shut, w, group=3))
    assert np.argwhere(poisoned).tolist() == [[1, 2, i] for i in (3, 4, 5)]


@each_role
def test_arguments_that_do_not_fit_are_told(role):
    x, z, w = drawn(GATED_RMS_NORM, 17)
    norm = GATED_RMS_NORM.implementation(role)
    with pytest.raises(ValueError, match=r"^gated_rms_norm: `group` must divide n=6, got 4$"):
        norm(x, z, w, group=4)
    with pytest.raises(ValueError, match=r"^gated_rms_norm: `group` must be an integer >= 1 that"):
        norm(x, z, w, group=0)
    with pytest.raises(ValueError, match=r"^gated_rms_norm: `eps` must be a number >= 0, got -1.0"):
        norm(x, z, w, eps=-1.0)
    with pytest.raises(ValueError, match=r"^gated_rms_norm: `w` has n=5, but earlier arguments"):
        norm(x, z, w[:5])
    with pytest.raises(TypeError, match=r"^l2_norm: `x` has dtype complex128, wanted a real dtype"):
        L2_NORM.implementation(role)(x + 0j)


@each_gated
def test_one_large_entry_is_judged_beside_small_ones(op):
    x, z, w = drawn(op, 18, lead=())
    x[0] = 1e6
    statics = {"eps": 2.0**-17} | ({"group": 6} if op is GATED_RMS_NORM else {})
    arrays = [a.astype("f4") for a in (x, z, w)]
    assert judge(op, op.implementation("jit"), *arrays, **statics).grade == "A"

    def flushed(*arrays, **statics):
        y = op.reference(*arrays, **statics)
        return np.where(np.abs(y) < 1e-5, 0, y).astype(y.dtype)

    assert not judge(op, flushed, *arrays, **statics).ok


def test_the_judge_draws_groups_that_divide_the_channels():
    groups = set()

    def norm(x, z, w, *, eps, group):
        assert x.shape[-1] % group == 0
        groups.add(x.shape[-1] // group)
        return GATED_RMS_NORM.reference(x, z, w, eps=eps, group=group)

    (result,) = judged(GATED_RMS_NORM.name, norm, "value")
    assert result.verdict == "pass"
    assert len(groups) > 3


@each_norm
def test_a_number_under_the_root_that_is_rounded_to_16_bits_is_refused(op):
    def rounded(*arrays, eps, **statics):
        return op.reference(*arrays, eps=float(rounded_to(8, np.float64(eps))), **statics)

    (line,) = judged(op.name, rounded, "value")
    assert line.failed
