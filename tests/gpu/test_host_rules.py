"""The host build is stricter than a card: what breaks a rule is an error that names the place."""

import numpy as np
import pytest
from gpu.hosted import PLANTED, kernel

from refssm_gpu._host.launch import HostError
from refssm_gpu._host.settings import settings

LINES = (PLANTED / "features.cuh").read_text(encoding="utf-8").splitlines()


def message(planted, order=0):
    out = np.zeros(64, np.float32)
    with settings(order=order), pytest.raises(HostError) as caught:
        kernel("rules", planted)(1, out)
    return str(caught.value)


def line(text):
    """The number of the one line with this text."""
    (found,) = [i for i, line in enumerate(LINES, 1) if text in line]
    return f"features.cuh:{found}"


@pytest.mark.parametrize("order", [0, 1, 5])
def test_a_right_kernel_runs_in_every_order(order):
    out = np.zeros(64, np.float32)
    with settings(order=order):
        kernel("rules", 0)(1, out)
    np.testing.assert_array_equal(out, np.arange(64))


def test_threads_that_wait_at_two_barriers_are_an_error_with_both_lines():
    said = message(1)
    assert said.startswith("rules<1>: block (0, 0, 0), thread 32: waits at this __syncthreads")
    assert "thread 0 waits at another" in said
    assert line("if (i < 32) __syncthreads") in said
    assert line("else __syncthreads") in said


def test_a_thread_that_leaves_while_others_wait_is_named():
    assert "thread 5: leaves the kernel, while thread 0 waits at __syncthreads" in message(2)
    assert "but 1 threads have left the kernel" in message(2, order=3) or "thread 5" in message(2)


def test_a_lane_that_stays_away_is_a_deadlock_with_all_places():
    said = message(3)
    assert "deadlock; thread 0 waits in __shfl_xor_sync for the lanes 0xffffffff" in said
    assert "thread 7 waits in __syncthreads" in said
    assert line("if (lane == 7) __syncthreads") in said


@pytest.mark.parametrize("order", [0, 1, 7])
def test_unequal_masks_are_an_error(order):
    said = message(4, order)
    assert "0xfffffff0" in said
    assert "0xffffffff" in said


def test_a_mask_without_the_own_lane_is_an_error():
    assert "thread 0: __shfl_xor_sync with the mask 0xfffffffe, which lacks its own" in message(5)


def test_lanes_that_meet_in_different_functions_are_an_error():
    said = message(6)
    assert "__syncwarp" in said
    assert "__shfl_up_sync" in said
    said = message(10)
    assert "__shfl_down_sync, while thread 0 of the same warp calls __shfl_up_sync" in said


def test_a_width_that_is_no_power_of_two_is_an_error():
    assert "the width of a shuffle must be 1, 2, 4, 8, 16 or 32" in message(7)


def test_a_trap_names_the_thread():
    assert "thread 33: __trap()" in message(8)


def test_a_barrier_for_some_threads_only_is_an_error():
    assert "waits at another" in message(9)


def test_after_an_error_the_next_launch_is_right():
    message(3)
    test_a_right_kernel_runs_in_every_order(0)


def test_memory_that_belongs_to_nobody_is_an_error_with_its_line():
    with pytest.raises(HostError, match=r"thread 0: touches memory that belongs to nobody") as e:
        kernel("twice", "float32")(1, np.zeros(64, np.float32), None, np.int64(64))
    assert line("narrow<E>(widen(x[i])") in str(e.value)


def test_an_integer_division_by_zero_is_an_error():
    out = np.zeros(1, np.int32)
    with pytest.raises(HostError, match=r"divide<int>.*integer division by zero"):
        kernel("divide", "int", block=1)(1, np.array([1, 0], np.int32), out)


@pytest.mark.parametrize(("first", "byte"), [(1, 64), (-1, -4)])
def test_a_write_beside_a_shared_array_is_an_error(first, byte):
    out = np.zeros(16, np.float32)
    kernel("beside_shared", "float32", 0, block=16)(1, out)
    with pytest.raises(HostError, match=rf"writes byte {byte} of a shared array of 64 bytes"):
        kernel("beside_shared", "float32", first, block=16)(1, out)


def test_sixteen_bytes_at_another_place_than_a_multiple_of_sixteen_are_an_error():
    x = np.arange(260, dtype=np.float32)
    out = np.zeros(256, np.float32)
    x = x[(-x.ctypes.data // 4) % 4 :]
    kernel("sixteen_bytes", "float32")(1, x[:256], out)
    np.testing.assert_array_equal(out, x[:256])
    with pytest.raises(HostError, match="not a multiple of 16") as caught:
        kernel("sixteen_bytes", "float32")(1, x[1:257], out)
    assert line("store16(out + PER_16<E>") in str(caught.value)


def test_a_shuffle_from_a_lane_that_takes_no_part_gives_nan():
    out = np.zeros(32, np.float32)
    kernel("half_warp", "float32", block=32)(1, out)
    np.testing.assert_array_equal(out[:8], np.arange(4, 12))
    assert np.isnan(out[8:16]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_shared_memory_starts_as_nan_in_every_block(dtype):
    out = np.zeros((3, 64, 2), dtype)
    kernel("first_sight", dtype)(3, out, shared=64 * out.itemsize)
    assert np.isnan(out).all()


def test_a_variable_without_a_value_starts_with_one_that_shows():
    out = np.zeros(64, np.float32)
    kernel("without_a_value", "float32")(1, out, np.int32(0))
    assert (np.abs(out) > 1e38).all()
