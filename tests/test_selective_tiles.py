"""Selective scans in tiles of channels and blocks of time: sizes around theirs."""

# pyright: reportCallIssue=false
# (an intrinsic is called without its first parameter)

import numpy as np
import pytest
from calls import several
from numba import njit
from selective import usual

import refssm.jit._compiling.threads as sharing
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare
from refssm.jit._vectors.scratch import after, number, release, scratch
from refssm.jit.selective_scan import channels, forward, tiles
from refssm.jit.selective_scan.channels import PIECE
from refssm.selective_scan import (
    MAMBA_SCAN_PACKED,
    MAMBA_SCAN_STATEFUL,
    SELECTIVE_SCAN_PACKED,
    SELECTIVE_SCAN_STATEFUL,
)

BLOCK = forward.BLOCK
each_op = pytest.mark.parametrize(
    "op",
    [SELECTIVE_SCAN_STATEFUL, SELECTIVE_SCAN_PACKED, MAMBA_SCAN_STATEFUL, MAMBA_SCAN_PACKED],
    ids=str,
)
each_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])


def agrees(op, arrays):
    """True if values and gradients of the mirror are those of the reference, by the gauges."""
    values = several(op.implementation("jit")(*arrays))
    right = all(map(_fits, values, expect(op, arrays), values))
    given = [*values, *arrays]
    gradients = op.vjp("jit")(*given)
    gauges = expect(op, given, vjp=op.bare_vjp)
    return right and all(map(_fits, gradients, gauges, arrays))


def _fits(result, gauge, argument):
    return result is None or bool(compare(result, gauge, argument.dtype).grade == "A")


@each_op
@each_dtype
@pytest.mark.parametrize("d", [1, 8, 9, 16, 17])
def test_any_number_of_channels_is_right(op, dtype, d):
    assert agrees(op, usual(op, d, dtype, {"b": 2, "d": d}, l=19))


@each_op
@each_dtype
@pytest.mark.parametrize("l", [16, 17, BLOCK, BLOCK + 1, 2 * BLOCK + 17])
def test_any_length_around_a_block_is_right(op, dtype, l):
    assert agrees(op, usual(op, l, dtype, {"b": 1, "d": 17}, l=l))


@each_dtype
@pytest.mark.parametrize("d", [PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 3])
def test_gradients_of_shared_projections_are_sums_over_all_pieces(dtype, d):
    op = SELECTIVE_SCAN_STATEFUL
    assert agrees(op, usual(op, d, dtype, {"b": 1, "d": d}, l=5, n=2))


@each_dtype
@pytest.mark.parametrize("d", [7, 8, 9, 16, 17])
@pytest.mark.parametrize("op", [SELECTIVE_SCAN_PACKED, MAMBA_SCAN_PACKED], ids=str)
def test_every_channel_may_begin_again_at_times_of_its_own(op, dtype, d):
    *arrays, _ = usual(op, d, dtype, {"b": 1, "d": d}, l=21)
    resets = np.random.default_rng(d).integers(3, size=(1, d, 21)) == 0
    assert agrees(op, [*arrays, resets])


@each_op
def test_extreme_decays_take_the_careful_steps_and_are_right(op):
    for rate in (1e2, 1e3):  # subnormal and zero decays beside ordinary ones
        arrays = usual(op, 3, "float32", {"b": 2, "d": 17}, l=70)
        arrays[2][3:5] *= rate
        assert agrees(op, arrays)


@pytest.mark.parametrize("planted", [0, 1])
def test_a_step_is_careful_where_a_channel_begins_or_a_decay_is_small(planted):
    steps, resets = np.full((16, 4), 0.5, np.float32), np.zeros((1, 4), bool)
    resets[0, 2] = planted
    assert marked(steps, 1.0, resets).tolist() == [0, 0, planted, 0]
    for odd in (2, np.nan, -np.inf):
        steps[15, 1] = odd
        assert marked(steps, 1.0, resets).tolist() == [1, 1, 1, 1]


def marked(steps, bound, resets):
    """Which steps are careful."""
    gathered, careful_steps = tiles.gathered, tiles.careful_steps  # parts of kernels

    @njit
    def call(steps, bound, resets, careful):
        work = scratch(8, steps)
        gathered(steps, 0, 0, 4, work)
        careful_steps(work, 4, bound, resets, 0, 0, after(work, 4))
        for k in range(4):
            careful[k] = number(after(work, 4), k)
        release(work)

    careful = np.empty(4)
    call(steps, bound, resets, careful)
    return careful


@pytest.mark.parametrize("shape", [(3, 1, 5), (1, 4, 5), (3, 4, 5)])
def test_any_axis_may_be_the_channels(shape):
    # B and C belong to the first axis, the second, or each channel
    op = SELECTIVE_SCAN_STATEFUL
    u, dt, A, B, C, x0 = usual(op, 5, "float32", {"b": 3, "d": 4}, l=5)
    rng = np.random.default_rng(5)
    B, C = rng.standard_normal((2, *shape, 3), np.float32)
    assert agrees(op, [u, dt, A, B, C, x0])


@each_op
def test_the_result_does_not_depend_on_the_number_of_threads(op, monkeypatch):
    arrays = usual(op, 6, "float32", {"b": 3, "d": 2 * PIECE + 9}, l=40)
    given = [*several(op.implementation("jit")(*arrays)), *arrays]
    results = []
    for count in (1, 2, 5):
        for place in (sharing, channels):
            monkeypatch.setattr(place, "threads", lambda count=count: count)
        results.append([*several(op.implementation("jit")(*arrays)), *op.vjp("jit")(*given)])
    for other in results[1:]:
        assert all(x is y or np.array_equal(x, y) for x, y in zip(results[0], other, strict=True))


@each_dtype
def test_strided_and_read_only_arrays_give_the_same_bits(dtype):
    op = SELECTIVE_SCAN_STATEFUL
    arrays = usual(op, 7, dtype, {"b": 2, "d": 33}, l=70)
    given = [*several(op.implementation("jit")(*arrays)), *arrays]
    wanted = [*several(op.implementation("jit")(*arrays)), *op.vjp("jit")(*given)]
    other = []
    for a in given:
        wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
        wide[..., ::2] = a
        view = np.swapaxes(np.swapaxes(wide[..., ::2], 0, -1).copy(), 0, -1)
        view.flags.writeable = False
        other.append(view)
    y = several(op.implementation("jit")(*other[2:]))
    assert all(map(np.array_equal, [*y, *op.vjp("jit")(*other)], wanted))


def test_lanes_without_a_channel_leave_no_trace_in_sums():
    # 3 channels of 16 lanes; infinite C meets zeros in the lanes that are not used
    op = SELECTIVE_SCAN_STATEFUL
    u, dt, A, B, C, x0 = usual(op, 8, "float32", {"b": 1, "d": 3}, l=4)
    u, C[..., 2, 1] = abs(u), np.inf  # of one sign: sums over channels are infinite, not NaN
    dy, dx = np.ones_like(u), np.zeros_like(x0)
    gradients = op.vjp("jit")(dy, dx, u, dt, A, B, C, x0)
    wanted = op.vjp("reference")(dy, dx, u, dt, A, B, C, x0)
    for g, w in zip(gradients, wanted, strict=True):
        assert np.array_equal(np.isnan(g), np.isnan(w))
        assert np.array_equal(np.isinf(g), np.isinf(w))
