"""Details of the DPLR mirrors in Numba: nodes near poles, elimination."""

import numpy as np
import pytest
from test_dplr import LENGTHS, POLES_AT_NODES, distance, legs, legt, of, of_single, single, system

import refssm.jit.dplr as jit
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.dplr import (
    DPLR_KERNEL,
    DPLR_KERNEL_ALIASED,
    dplr_kernel,
    dplr_kernel_aliased,
    dplr_kernel_aliased_vjp,
    dplr_kernel_vjp,
)

BOTH = [(DPLR_KERNEL, jit.dplr_kernel), (DPLR_KERNEL_ALIASED, jit.dplr_kernel_aliased)]
kernels = pytest.mark.parametrize(("op", "mirror"), BOTH, ids=["whole", "aliased"])
NORMAL = pytest.mark.parametrize(
    ("measure", "n"), POLES_AT_NODES, ids=["fourier", "legt5", "legt6", "legs5"]
)


def gradients_are_right(op, vjp, dk, arguments, l):
    """True if each gradient is within the judge's bound of the reference's."""
    gauged = expect(op, [dk, *arguments], {"l": l}, op.bare_vjp)
    found = vjp(dk, *arguments, l=l)
    return all(compare(g, gauge, g.dtype).ok for g, gauge in zip(found, gauged, strict=True))


@pytest.mark.parametrize("r", [0, 1, 2, 5, 7])
@pytest.mark.parametrize("l", LENGTHS)
@kernels
def test_any_rank_at_any_length(op, mirror, l, r):
    arguments = system(r=r)
    assert judge(op, mirror, *arguments, l=l).grade == "A"
    dk = np.exp(2j * np.arange(l))
    assert gradients_are_right(op, op.vjp("jit"), dk, arguments, l)


@pytest.mark.parametrize("l", LENGTHS)
@NORMAL
def test_a_pole_of_the_normal_part_at_a_node_is_no_obstacle(measure, n, l):
    arguments, _ = of(measure, n, 0.05)
    assert judge(DPLR_KERNEL, jit.dplr_kernel, *arguments, l=l).ok
    dk = np.cos(np.arange(l)) + 0j
    assert gradients_are_right(DPLR_KERNEL, jit.dplr_kernel_vjp, dk, arguments, l)


def test_members_of_a_batch_have_their_own_nodes_near_poles():
    zeros = np.zeros((3, 2, 1))
    # no node, one node and two nodes are near a pole: 1, and a quarter turn
    w = np.array([[-9.0, -8.0], [0.0, -8.0], [0.0, -2j]])
    ones = np.ones((3, 2))
    arguments = w, zeros, zeros, ones, ones, np.ones(3)
    assert judge(DPLR_KERNEL, jit.dplr_kernel, *arguments, l=32).ok
    for i in range(3):
        K = jit.dplr_kernel(*arguments, l=32)[i]
        assert judge(DPLR_KERNEL, lambda *_, l, K=K: K, *(x[i] for x in arguments), l=32).ok


def test_the_aliased_mirror_leaves_a_pole_at_a_node_to_the_reference():
    arguments, _ = of(legt, 5, 0.05)
    assert (arguments[0] == 0).any()
    K = jit.dplr_kernel_aliased(*arguments, l=16)
    assert np.array_equal(K, dplr_kernel_aliased(*arguments, l=16))
    found = jit.dplr_kernel_aliased_vjp(K, *arguments, l=16)
    wanted = dplr_kernel_aliased_vjp(K, *arguments, l=16)
    assert all(np.array_equal(f, g) for f, g in zip(found, wanted, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("l", [4096, 65536])
def test_single_precision_is_rounded_once_however_long(l):
    arguments, _ = of(legs, 64, 1e-3)
    exact = dplr_kernel(*of_single(arguments), l=l)
    # one rounding of each part, plus the error of the reference in double precision
    assert distance(jit.dplr_kernel(*single(arguments), l=l), exact) < 2.0**-24 * 2**0.5 + 1e-12
    dk = np.exp(1j * np.arange(l)).astype(np.complex64)
    found = jit.dplr_kernel_vjp(dk, *single(arguments), l=l)
    wanted = dplr_kernel_vjp(dk.astype(complex), *of_single(arguments), l=l)
    assert all(distance(f, g) < 1e-5 for f, g in zip(found, wanted, strict=True))


def exchanged():
    """A capacitance [[0, 1], [1, 1]] at the one node: −A, of which (−A)⁻¹ = [[−1, 1], [1, 0]]."""
    Q = np.array([[-1.0, 1.0], [1.0, 0.0]])
    return -np.ones(2), np.eye(2), Q, np.array([1.0, 0.0]), np.array([1.0, 2.0]), np.ones(())


@pytest.mark.parametrize("role", ["reference", "jit"])
def test_elimination_exchanges_rows_where_a_pivot_is_zero(role):
    assert DPLR_KERNEL_ALIASED.implementation(role)(*exchanged(), l=1).tolist() == [1]
    dw, dP, dQ, dB, dC, ddt = DPLR_KERNEL_ALIASED.vjp(role)([1.0], *exchanged(), l=1)
    X, Y = np.array([-1.0, 1.0]), np.array([1.0, 1.0])  # (−A)⁻¹ B, (−A)⁻ᵀ C
    assert dC.tolist() == X.tolist()
    assert dB.tolist() == Y.tolist()
    assert dw.tolist() == (X * Y).tolist()
    Q = exchanged()[2]
    assert dP.tolist() == (-np.outer(Y, Q.T @ X)).tolist()
    assert dQ.tolist() == (-np.outer(X, Y)).tolist()
    assert ddt == 0


@pytest.mark.parametrize("exponent", [-700, 600])
def test_a_denominator_whose_square_leaves_the_range(exponent):
    w, none, one = np.array([-(2.0**exponent)]), np.zeros((1, 0)), np.ones(1)
    K = jit.dplr_kernel_aliased(w, none, none, one, one, 1.0, l=1)
    assert K.tolist() == [2.0**-exponent]
    dC = jit.dplr_kernel_aliased_vjp([1.0], w, none, none, one, one, 1.0, l=1)[4]
    assert dC.tolist() == [2.0**-exponent]


def test_the_mirrors_refuse_long_double():
    arguments = [np.asarray(x, np.longdouble) for x in system(kind=float)]
    for _, mirror in BOTH:
        with pytest.raises(TypeError, match="`w` has dtype"):
            mirror(*arguments, l=3)
