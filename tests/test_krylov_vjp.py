"""Gradients of the Krylov kernel: real and complex types, precisions and shapes."""

from itertools import product

import numpy as np
import pytest
from recurrences import TYPES, drawn, each_role, integers, random, same

import refssm.jit.krylov as jit
from refssm.conformance.cases.case import Case, Knob
from refssm.conformance.judging.certificate import adjoint_slip
from refssm.conformance.judging.grading import judge
from refssm.conformance.standard import C as ALLOWED
from refssm.krylov import KRYLOV_KERNEL


def kernel_of(role):
    return KRYLOV_KERNEL.implementation(role)


@each_role
def test_the_gradient_by_hand(role):
    A, B, C = np.array([[2.0, 3j], [5.0, 7.0]]), np.array([1.0, 2j]), np.array([1.0, 1j])
    dA, dB, dC = KRYLOV_KERNEL.vjp(role)([1.0, 2.0], A, B, C, l=2)
    # g_1 = 2 C*, g_0 = C* + Aᴴ g_1; x_0 = B, x_1 = A B
    g_1, x_1 = np.array([2, -2j]), np.array([2 + 3j * 2j, 5 + 14j])
    assert dA.tolist() == np.outer(g_1, [1, -2j]).tolist()
    assert dB.tolist() == [1 + 2 * 2 + 5 * -2j, -1j + -3j * 2 + 7 * -2j]
    assert dC.tolist() == (B.conj() + 2 * x_1.conj()).tolist()


@each_role
def test_the_gradient_in_the_matrix_is_a_hankel_matrix_between_rows_and_columns(role):
    A, B, C, dK = integers(12, (3, 3), (3,), (3,), (7,))
    X = np.stack([np.linalg.matrix_power(A, j) @ B for j in range(7)])
    R = np.stack([C @ np.linalg.matrix_power(A, j) for j in range(7)])
    H = [[dK[i + j + 1] if i + j < 6 else 0 for j in range(7)] for i in range(7)]
    gradients = KRYLOV_KERNEL.vjp(role)(dK, A, B, C, l=7)
    for found, wanted in zip(gradients, (R.T @ H @ X, dK @ R, dK @ X), strict=True):
        assert np.array_equal(found, wanted)


@each_role
@pytest.mark.parametrize("real", [(), ("A",), ("B", "C"), ("A", "C")], ids=str)
def test_the_gradients_are_the_oracles_also_where_some_arguments_are_real(role, real):
    maps = {"A": "turning", "B": "normal", "C": "normal"}
    knobs = {name: Knob(plain, "each", name in real) for name, plain in maps.items()}
    example = Case(KRYLOV_KERNEL, np.dtype(complex), {"l": 6, "n": 3}, {"d": 2}, knobs, 1)
    assert adjoint_slip(KRYLOV_KERNEL, KRYLOV_KERNEL.vjp(role), example) <= ALLOWED


@pytest.mark.parametrize("types", list(product(TYPES, repeat=3)), ids="-".join)
@each_role
def test_result_and_gradients_have_the_types_and_kinds_of_the_arguments(role, types):
    arrays = [np.ones(s, t) for s, t in zip(((2, 2), (2,), (2,)), types, strict=True)]
    K = kernel_of(role)(*arrays, l=3)
    assert K.dtype == np.result_type(*arrays)
    gradients = KRYLOV_KERNEL.vjp(role)(K, *arrays, l=3)
    assert [g.dtype.kind for g in gradients] == [a.dtype.kind for a in arrays]
    assert {np.finfo(g.dtype).dtype for g in gradients} == {np.finfo(K.dtype).dtype}


def test_long_double_keeps_its_digits_in_the_reference_and_is_refused_by_the_mirror():
    eps = np.finfo(np.longdouble).eps
    A, B = np.eye(1, dtype=np.longdouble), np.full(1, 1 + eps)
    assert (KRYLOV_KERNEL.implementation("reference")(A, B, [1.0], l=3) - 1).tolist() == [eps] * 3
    assert all(g.dtype == np.longdouble for g in KRYLOV_KERNEL.vjp()(B, A, B, B, l=1))
    with pytest.raises(TypeError, match=r"^krylov_kernel: `A` has dtype"):
        jit.krylov_kernel(A, B, B, l=3)


BATCHES = [((), (), ()), ((3,), (), ()), ((), (3,), (1,)), ((2, 1), (3,), ()), ((), (), (4, 1))]


@pytest.mark.parametrize("batches", BATCHES, ids=str)
@each_role
def test_leading_axes_broadcast_and_gradients_have_the_shapes_of_their_arguments(role, batches):
    cores = ((3, 3), (3,), (3,))
    arrays = random(13, *(b + core for b, core in zip(batches, cores, strict=True)))
    for l in (0, 1, 5):  # l = 1 gives C B, without a matrix to broadcast with
        K = kernel_of(role)(*arrays, l=l)
        assert K.shape == (*KRYLOV_KERNEL.batch_shape(*arrays), l)
        assert judge(KRYLOV_KERNEL, kernel_of(role), *arrays, l=l).ok
        gradients = KRYLOV_KERNEL.vjp(role)(K, *arrays, l=l)
        assert [g.shape for g in gradients] == [a.shape for a in arrays]
        assert l or not any(g.any() for g in gradients)


@each_role
def test_no_state_gives_zeros(role):
    assert kernel_of(role)(np.ones((0, 0)), [], [], l=3).tolist() == [0, 0, 0]
    gradients = KRYLOV_KERNEL.vjp(role)(np.ones(3), np.ones((0, 0)), [], [], l=3)
    assert [g.shape for g in gradients] == [(0, 0), (0,), (0,)]


@each_role
def test_arguments_are_left_alone_and_results_are_new(role):
    arrays = drawn(KRYLOV_KERNEL, 14)
    for l in (1, 6):
        before = [a.copy() for a in arrays]
        K = kernel_of(role)(*arrays, l=l)
        gradients = KRYLOV_KERNEL.vjp(role)(K, *arrays, l=l)
        assert same(tuple(arrays), tuple(before))
        for new, old in product((K, *gradients), arrays):
            assert not np.shares_memory(new, old)
