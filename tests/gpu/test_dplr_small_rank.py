"""DPLR kernels of rank 1 and 2 at the nodes: slices of modes, tiles of nodes, modes at nodes."""

from functools import partial

import numpy as np
import pytest
from kernel_bounds import a_third, assert_gradients_right, assert_right
from on_target import given, taken
from planting_kernels import plant
from test_dplr_kernels import agree, in_single, system

from refssm.dplr import DPLR_KERNEL_ALIASED
from refssm_gpu._host.launch import HostError
from refssm_gpu._host.settings import settings
from refssm_gpu.dplr import dplr_kernel_aliased, dplr_kernel_aliased_vjp, small_rank

RANKS = pytest.mark.parametrize("r", [1, 2])
aliased = partial(agree, DPLR_KERNEL_ALIASED)


@pytest.fixture(params=[0, 10**9], ids=["large_blocks", "small_blocks"])
def spans(request, monkeypatch):
    """Blocks that sum over 2048 nodes, or over 64."""
    monkeypatch.setattr(small_rank, "RESIDENT", request.param)


@RANKS
@pytest.mark.parametrize("n", [1, 2, 17, 31, 33, 63, 65, 129])
def test_slices_of_modes_meet_without_a_gap(r, n):
    aliased(in_single(system(n=n, r=r, batch=(2,))), 70)


@RANKS
@pytest.mark.parametrize("l", [63, 65, 127, 128, 129, 300])
def test_tiles_of_nodes_meet_without_a_gap(spans, r, l):
    aliased(in_single(system(n=3, r=r)), l)


@pytest.mark.long
@RANKS
@pytest.mark.parametrize("l", [2047, 2048, 2049, 4200])
def test_pieces_of_many_nodes_meet_without_a_gap(spans, r, l):
    aliased(in_single(system(n=3, r=r)), l)


@RANKS
@pytest.mark.parametrize("order", [0, 1, 7])
def test_the_order_of_threads_does_not_show(r, order):
    with settings(order=order):
        aliased(in_single(system(n=70, r=r)), 140)


@RANKS
def test_every_argument_may_have_the_batch_axes_that_it_likes(r):
    arguments = system(n=3, r=r)
    for leads in (
        ((2, 3), (), (3,), (2, 1), (), ()), ((), (2, 1), (), (), (2, 3), (3,)),
        ((1, 3), (4, 1), (1, 1), (), (), (4, 3)), ((), (), (0,), (), (), ()),
        ((2, 1, 3), (5, 1), (2, 1, 1), (), (3,), ()), ((), (), (), (), (), (2,)),
    ):  # fmt: skip
        wide = [
            np.broadcast_to(x, lead + x.shape) for x, lead in zip(arguments, leads, strict=True)
        ]
        steps = [1 + np.arange(np.prod(lead)).reshape(lead) / 8 for lead in leads]
        moved = [
            x * step.reshape(step.shape + (1,) * (x.ndim - step.ndim))
            for x, step in zip(wide, steps, strict=True)
        ]
        aliased(in_single(moved), 6)


@RANKS
@pytest.mark.parametrize("types", ["ffffff", "dddddd", "FfffFf", "fFfFff", "DdDDdf"])
def test_arguments_may_be_real_each_for_itself(r, types):
    arguments = system(n=6, r=r)
    made = [
        x.astype(t) if t in "FD" else x.real.astype(t)
        for x, t in zip(arguments, types, strict=True)
    ]
    aliased(made, 9)


@RANKS
@pytest.mark.parametrize("met", [0, 66, 69])
def test_a_mode_at_a_node_is_an_unknown_of_its_own(spans, r, met):
    arguments = in_single(system(n=70, r=r))
    arguments[0][met] = 0
    aliased(arguments, 12)


@RANKS
@pytest.mark.parametrize("turn", [-1, 1])
def test_a_mode_at_a_quarter_of_the_circle_is_at_a_node(r, turn):
    w, P, Q, B, C, _ = system(r=r)
    w[3] = turn * 16j  # 2/dt tan π/4
    # in single: in long double, the judge's for double, the reference does not meet this node
    aliased(in_single((w, P, Q, B, C, np.array(0.125))), 8)


def spectrum(arguments, l):
    """The kernel's values at the nodes."""
    w, P, Q, B, C, dt = given(*arguments)
    return taken(small_rank.spectrum(w, P, Q, B, C, dt, l))


def test_a_system_of_one_mode_at_a_node_is_known_exactly():
    w, one, two = np.zeros(1), np.ones(1), np.array([[2.0]])
    K = spectrum((w, two, two, 3 * one, 5 * one, np.array(0.5)), 4)
    wanted = 15 / 4  # A = −4: at z = 1 the transfer function is −C B/A
    assert K[0] == wanted
    assert K[2] == 15 * 0.25  # and at z = −1 it is C B dt/2


def test_a_pivot_of_zero_is_exchanged():
    Q = np.array([[-1.0, 1.0], [1.0, 0.0]])
    arguments = -np.ones(2), np.eye(2), Q, np.array([1.0, 0.0]), np.array([1.0, 2.0]), np.ones(())
    aliased(arguments, 1)


@RANKS
def test_two_modes_at_one_node_give_nan_there_only(r):
    arguments = list(system(r=r))
    arguments[0][[1, 3]] = 0
    K = spectrum(arguments, 6)
    assert np.isnan(K[0])
    assert np.isfinite(K[1:]).all()


@RANKS
def test_ranks_padded_with_zeros_through_array_code_are_right_too(r):
    """A rank of 3 has no kernel: what the kernels are compared with is compared by itself."""
    arguments = in_single(system(n=20, r=r))

    def padded(mirror, w, P, Q, *others, l):
        (more,) = given(np.zeros((20, 3 - r), np.complex64))
        return mirror(w, np.concatenate([P, more], 1), np.concatenate([Q, more], 1), *others, l=l)

    def padded_vjp(dk, *arguments, l):
        dw, dP, dQ, *others = padded(partial(dplr_kernel_aliased_vjp, dk), *arguments, l=l)
        return dw, dP[:, :r], dQ[:, :r], *others

    for mirror, vjp in (
        (dplr_kernel_aliased, dplr_kernel_aliased_vjp),
        (partial(padded, dplr_kernel_aliased), padded_vjp),
    ):
        assert_right(DPLR_KERNEL_ALIASED, mirror, *arguments, l=50)
        assert_gradients_right(DPLR_KERNEL_ALIASED, vjp, *arguments, l=50)


@RANKS
@pytest.mark.parametrize("exponent", [-700, 600])
def test_modes_whose_square_leaves_the_range_keep_their_digits(r, exponent):
    """Time in other units: every number changes by a power of two, the kernel not at all."""
    size = 2.0**exponent

    def moved(w, P, Q, B, C, dt):
        return w * size, P * size, Q, B * size, C, dt / size

    def vjp(dk, *arguments, l):
        dw, dP, dQ, dB, dC, ddt = dplr_kernel_aliased_vjp(dk, *moved(*arguments), l=l)
        return dw * size, dP * size, dQ, dB * size, dC, ddt / size

    arguments = system(n=9, r=r, batch=(1,))
    assert_right(
        DPLR_KERNEL_ALIASED, lambda *x, l: dplr_kernel_aliased(*moved(*x), l=l), *arguments, l=10
    )
    assert_gradients_right(DPLR_KERNEL_ALIASED, vjp, *arguments, l=10)


NODES, SUMS, PARTS = "dplr_nodes.cuh", "dplr_gradients.cuh", "capacitance.cuh"
KERNEL_BUGS = {
    "modes_overwritten": (
        NODES, "            __syncthreads();  // nobody reads the last modes any more\n", ""),
    "modes_not_awaited": (NODES, "__syncthreads();\n            for (int m", "for (int m"),
    "last_node_left_out": (NODES, "if (j >= size.l) return;", "if (j >= size.l - 1) return;"),
    "met_in_the_first_slice": (NODES, "first ? start + m : met", "first ? m : met"),
    "met_not_left_out": (NODES, "first = is_zero(T) && met < 0", "first = false"),
    "no_node_at_infinity": (NODES, "keep = infinite ? 0.0 : 1.0", "keep = 1.0"),
    "both_halves_alike": (NODES, "2 * j > l ? -above : above", "above"),
    "both_sides_alike": (NODES, "sums.solve(side, c)", "sums.solve(false, c)"),
    "another_quarter": (NODES, "if (4 * folded == l) s = c;", "if (4 * folded == l) s = 0;"),
    "first_row_of_B": (PARTS, "B += row_of(size, 3, row) * size.n;", ""),
    "no_exchange": (PARTS, "pivot_size(M[j][i]) > pivot_size(M[i][i])", "false"),
    "far_modes_as_others": (PARTS, "return static_cast", "return true || static_cast"),
    "border_of_the_other_side": (PARTS, "-(turned ? right[i + 1] : left[i + 1])", "-left[i + 1]"),
    "nodes_overwritten": (
        SUMS, "        __syncthreads();  // nobody reads the last chunk any more\n", ""),
    "groups_forgotten": (SUMS, "i < THREADS; i += across", "i < 0; i += across"),
    "sums_overwritten": (
        SUMS, "        __syncthreads();  // nobody reads the last sums any more\n", ""),
    "node_at_infinity_not_skipped": (SUMS, "2 * (start + i) != size.l", "true"),
    "first_piece_again": (SUMS, "begin = piece % size.pieces", "begin = 0"),
    "pole_forgotten": (SUMS, "const bool met = is_zero(T)", "const bool met = false"),
}  # fmt: skip


def _kernel_facts():
    """Facts that together see each of the bugs of the kernels."""
    test_a_system_of_one_mode_at_a_node_is_known_exactly()
    test_a_pivot_of_zero_is_exchanged()
    test_modes_whose_square_leaves_the_range_keep_their_digits(1, 600)
    test_a_mode_at_a_quarter_of_the_circle_is_at_a_node(1, 1)
    arguments = in_single(system(n=70, r=1, batch=(2,)))
    arguments[0][:, 66] = 0
    for order, resident in ((0, 0), (1, 0), (7, 0), (0, 10**9)):
        with settings(order=order), pytest.MonkeyPatch.context() as patch:
            patch.setattr(small_rank, "RESIDENT", resident)
            aliased(arguments, 140)


def test_the_right_kernels_pass_what_sees_the_bugs():
    _kernel_facts()


@pytest.mark.parametrize("bug", a_third(KERNEL_BUGS))
def test_a_planted_bug_in_a_kernel_is_seen(monkeypatch, tmp_path, bug):
    kernels = ["_SPECTRUM", "_SOLUTIONS", "_GRADIENTS"]
    plant(monkeypatch, tmp_path, small_rank, kernels, *KERNEL_BUGS[bug])
    with pytest.raises((AssertionError, HostError)):
        _kernel_facts()
