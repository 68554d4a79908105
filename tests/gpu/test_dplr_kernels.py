"""DPLR systems on the card: any rank and length, poles at nodes, stiff and slow modes."""

import numpy as np
import pytest
from kernel_bounds import assert_gradients_right, assert_right
from on_target import given, taken

from refssm.dplr import DPLR_KERNEL, DPLR_KERNEL_ALIASED
from refssm_gpu import dplr
from refssm_gpu.dplr import aliased, kernel

BOTH = [DPLR_KERNEL, DPLR_KERNEL_ALIASED]


def system(n=5, r=2, seed=0, batch=()):
    """w, P, Q, B, C and dt of systems that decay."""
    rng = np.random.default_rng(seed)

    def drawn(*shape):
        return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)

    P = drawn(*batch, n, r)
    w = -0.5 - rng.random((*batch, n)) + 3j * rng.standard_normal(n)
    return w, P, P.copy(), drawn(*batch, n), drawn(n), np.full(batch, 0.1)


def in_single(arguments):
    """The arguments in single precision: the judge then needs no oracle, so sizes may be larger."""
    return [x.astype(np.complex64 if x.dtype.kind == "c" else np.float32) for x in arguments]


def agree(op, arguments, l):
    """The kernel and its gradients are within the judge's bounds of the reference's."""
    assert_right(op, op.implementation("gpu"), *arguments, l=l)
    assert_gradients_right(op, op.vjp("gpu"), *arguments, l=l)


@pytest.mark.parametrize("op", BOTH, ids=str)
@pytest.mark.parametrize("r", [0, 1, 2, 3])
def test_any_rank_at_any_length(op, r):
    for l in (1, 2, 3, 4, 5, 16, 17, 40):  # around squares, where a row of powers begins
        agree(op, system(r=r), l)


@pytest.mark.parametrize("op", BOTH, ids=str)
def test_batches_broadcast(op):
    w, P, Q, B, C, dt = system(batch=(2, 3))
    agree(op, (w[:, :1], P[0, 0], Q[0, 0], B, C, dt[0]), 9)


@pytest.mark.parametrize("entries", [1, 30, 61])
def test_nodes_in_several_pieces_are_nodes_in_one(monkeypatch, entries):
    monkeypatch.setattr(aliased, "ENTRIES", entries)
    agree(DPLR_KERNEL_ALIASED, system(r=3, batch=(2,)), 17)


@pytest.mark.parametrize("op", BOTH, ids=str)
def test_nothing_is_made_of_nothing(op):
    assert taken(op.implementation("gpu")(*given(*system()), l=0)).shape == (0,)
    agree(op, system(n=0), 4)
    for g in taken(op.vjp("gpu")(*given(np.zeros(0) + 0j, *system()), l=0)):
        assert not g.any()


@pytest.mark.parametrize("r", [1, 2, 3])
def test_a_pole_of_the_normal_part_at_a_node_is_no_obstacle(r):
    w, P, Q, B, C, dt = system(r=r)
    w[2] = 0
    for op in BOTH:
        agree(op, (w, P, Q, B, C, dt), 16)


def test_elimination_exchanges_rows_where_a_pivot_is_zero():
    Q = np.array([[-1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])  # rank 3 has no kernel
    arguments = (
        -np.ones(2),
        np.eye(2, 3),
        Q,
        np.array([1.0, 0.0]),
        np.array([1.0, 2.0]),
        np.ones(()),
    )
    agree(DPLR_KERNEL_ALIASED, arguments, 1)


@pytest.mark.parametrize("exponent", [-700, 600])
def test_a_mode_far_from_the_others_keeps_its_digits(exponent):
    w, none, one = np.array([-(2.0**exponent)]), np.zeros((1, 0)), np.ones(1)
    K = taken(dplr.dplr_kernel_aliased(*given(w, none, none, one, one, np.ones(())), l=1))
    assert K.tolist() == [2.0**-exponent]


def powers_of_one_mode(h, l=4096):
    """A kernel of one mode is a power to a few units: Ā = 1 − e near 1, or p − 1 near −1."""
    one, none = np.ones(1), np.zeros((1, 0))
    K = taken(dplr.dplr_kernel(*given(-one, none, none, one, one, np.array(h)), l=l))
    k, small = np.arange(l), (h if h < 1 else 2) / (1 + h / 2)
    wanted = (1.0 if h < 1 else -1.0) ** k * np.exp(k * np.log1p(-small)) * h / (1 + h / 2)
    # each of 24 products and of 12 doublings adds some roundings, the exponential one
    assert np.abs(K - wanted).max() <= 128 * 2.0**-53 * np.abs(wanted).max()


@pytest.mark.parametrize("h", [1e-9, 1e9])
def test_modes_near_one_and_near_minus_one_keep_their_digits(h):
    powers_of_one_mode(h)


def _by_powers(self, i):
    """I − A^(2^i) from A^(2^i) itself, which loses the digits of slow modes."""
    I = np.eye(self.powers[0].shape[-1])
    return I - np.linalg.matrix_power(I - self.powers[0], 2**i)


def _by_squares(self, i):
    """E_2 like the others, which loses the digits of stiff modes."""
    E = self.powers[0]
    for _ in range(i):
        E = E + (E - E @ E)
    return E


BUGS = {
    "slow_modes_lose_digits": (kernel.Chain, "__getitem__", _by_powers),
    "stiff_modes_lose_digits": (kernel.Chain, "__getitem__", _by_squares),
    "a_power_has_no_gradient": (kernel.Chain, "take", lambda self, i, dE: None),
    "no_correction_of_low_rank": (kernel.Bilinear, "_inverse", lambda self, x: self.R * x),
    "the_next_nodes_unknowns": (
        aliased,
        "bordered",
        lambda *a, right=aliased.bordered: tuple(np.roll(x, 1, axis=-2) for x in right(*a)),
    ),
}


def _all_facts():
    """Facts that together see each of the bugs above."""
    agree(DPLR_KERNEL, system(), 40)
    agree(DPLR_KERNEL_ALIASED, system(r=3), 40)
    for h in (1e-9, 1e9):
        powers_of_one_mode(h)


def test_the_right_functions_pass_what_sees_the_bugs():
    _all_facts()


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_seen(monkeypatch, bug):
    monkeypatch.setattr(*BUGS[bug])
    with pytest.raises(AssertionError):
        _all_facts()


@pytest.mark.long
@pytest.mark.parametrize("r", [1, 2, 3])
def test_a_larger_size_is_right(r):
    for op in BOTH:
        agree(op, in_single(system(n=32, r=r, batch=(2,))), 1000)
