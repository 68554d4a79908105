"""Kernels of conjugate pairs beside the references: both halves, and gradients folded onto one."""

import numpy as np
import pytest
from kernel_bounds import TURN, assert_gradients_right, assert_right
from on_target import given, taken
from test_cauchy_kernels import case
from test_dplr_kernels import agree, in_single, system

from refssm.cauchy import CAUCHY_KERNEL_PAIRS
from refssm.dplr import DPLR_KERNEL_ALIASED_REAL, DPLR_KERNEL_REAL
from refssm_gpu.cauchy import cauchy_kernel_pairs, cauchy_kernel_pairs_vjp

BOTH = pytest.mark.parametrize("op", [DPLR_KERNEL_REAL, DPLR_KERNEL_ALIASED_REAL], ids=str)


@BOTH
@pytest.mark.parametrize("r", [0, 1, 2, 3])
def test_any_rank_at_any_length(op, r):
    for l in (1, 2, 3, 16, 17):
        agree(op, system(r=r), l)


@BOTH
def test_batches_broadcast_in_every_type(op):
    w, P, Q, B, C, dt = system(batch=(2, 3))
    arrays = w[:, :1], P[0, 0], Q[0, 0], B, C, dt[0]
    agree(op, in_single(arrays), 9)
    agree(op, [x.real.copy() for x in arrays], 9)
    agree(op, (w[:, :1].real.copy(), *arrays[1:]), 9)


@BOTH
def test_nothing_is_made_of_nothing(op):
    K = taken(op.implementation("gpu")(*given(*system()), l=0))
    assert (K.shape, K.dtype) == ((0,), np.float64)
    agree(op, system(n=0), 4)
    for g in taken(op.vjp("gpu")(*given(np.zeros(0), *system()), l=0)):
        assert not g.any()


@pytest.mark.parametrize("shapes", [((3,), (3,), (5,)), ((2, 33), (33,), (129,))])
@pytest.mark.usefixtures("one_multiprocessor")
def test_cauchy_sums_of_pairs(shapes):
    arrays = case(TURN, *shapes)
    assert_right(CAUCHY_KERNEL_PAIRS, cauchy_kernel_pairs, *arrays)
    assert_gradients_right(CAUCHY_KERNEL_PAIRS, cauchy_kernel_pairs_vjp, *arrays)
