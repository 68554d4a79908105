"""The gradients store √l states, not l: all their memory, compared with the states alone."""

import tracemalloc

import numpy as np
import pytest

from refssm.scan import DIAGONAL_SSM, DIAGONAL_SSM_VARYING
from refssm.selective_scan import MAMBA_SCAN, SELECTIVE_SCAN
from refssm.ssd import SSD_RECURRENT

DOUBLE = 8  # bytes


def peak(function, *args):
    """Peak memory of a call in bytes."""
    tracemalloc.start()
    try:
        function(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def diagonal(l, n, decays):
    B = np.ones((n, 1))
    u = np.ones((l, 1))
    return u, np.full(decays, 0.9), B, B.T, np.ones((1, 1)), u


def channels(d, l, n):
    """Arguments for d channels with shared B and C."""
    u, B = np.ones((d, l)), np.ones((1, l, n))
    return u, u / 100, -np.ones((d, n)), B, B


def heads(l, p, n):
    return np.ones((l, p)), np.full(l, -0.1), np.ones((l, n)), np.ones((l, n))


def of_selective():
    args = channels(64, 1024, 16)
    return SELECTIVE_SCAN, (args[0], *args), 64 * 1024 * 16


def of_mamba():
    args = channels(64, 1024, 16)
    more = np.ones(64), args[0], np.zeros(64)
    return MAMBA_SCAN, (args[0], *args, *more), 64 * 1024 * 16


def of_diagonal():
    return DIAGONAL_SSM, diagonal(4096, 64, 64), 4096 * 64


def of_ssd():
    args = heads(1024, 32, 32)
    return SSD_RECURRENT, (args[0], *args), 1024 * 32 * 32


@pytest.mark.parametrize("case", [of_diagonal, of_selective, of_mamba, of_ssd])
def test_a_gradient_takes_less_than_its_states_would(case):
    op, arguments, states = case()
    assert peak(op.bare_vjp, *arguments) < states * DOUBLE


def grouped():
    """Four groups of 16 channels, and the bytes of B."""
    u, A = np.ones((4, 16, 512)), -np.ones((4, 16, 64))
    B = np.ones((4, 1, 512, 64))  # as large as u four times
    return (u, u, A, B, B), B.nbytes


def copying(u, dt, A, B, C):
    """A mirror with B for each channel."""
    whole = np.repeat(B, u.shape[-2], axis=-3)
    return SELECTIVE_SCAN.implementation("jit")(u, dt, A, whole, C)


def test_the_mirror_takes_groups_without_a_copy_of_b_for_each_channel():
    arguments, of_B = grouped()
    scan, vjp = SELECTIVE_SCAN.implementation("jit"), SELECTIVE_SCAN.vjp("jit")
    scan(*arguments)  # compiled
    assert peak(scan, *arguments) < of_B
    assert peak(copying, *arguments) > 16 * of_B
    vjp(arguments[0], *arguments)
    assert peak(vjp, arguments[0], *arguments) < 8 * of_B  # dB, dC, states between blocks


def test_the_measure_sees_what_a_gradient_of_every_decay_has_to_hold():
    arguments = diagonal(4096, 64, (4096, 64))
    assert peak(DIAGONAL_SSM_VARYING.bare_vjp, *arguments) > 4096 * 64 * DOUBLE


def test_four_times_the_length_takes_nearer_twice_than_four_times_the_memory():
    lengths = (1024, 4096)
    inputs = [4 * l * DOUBLE for l in lengths]  # y, u and their cotangents grow with the length
    taken = [peak(DIAGONAL_SSM.bare_vjp, *diagonal(l, 64, 64)) for l in lengths]
    # √l grows by a factor 2, l by 4: a limit between them separates the cases
    assert taken[1] - inputs[1] < 3 * (taken[0] - inputs[0])
