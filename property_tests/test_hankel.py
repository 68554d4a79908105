"""Laws that relate Hankel matrices, gramians, transfer functions and reduced systems."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import examples, laws

import refssm
from refssm._numerics.balance import balanced
from refssm._numerics.lyapunov import lyapunov, stein
from refssm.conformance.judging.grading import judge
from refssm.convolution import CAUSAL_CONVOLUTION_DIRECT
from refssm.domains import (
    contraction_matrices,
    frequencies,
    projections,
    ringing_matrices,
    settling_matrices,
)
from refssm.hankel import (
    GRAMIANS_DISCRETE,
    HANKEL_MATRIX,
    HANKEL_SINGULAR_VALUES,
    TRANSFER,
)

U = 2.0**-53
norm = np.linalg.norm
each_type = pytest.mark.parametrize("dtype", ["float64", "complex128"])
MAPS = {
    GRAMIANS_DISCRETE: (*projections.tame, *contraction_matrices.tame),
    HANKEL_SINGULAR_VALUES: (*projections.tame, *ringing_matrices.tame),
    TRANSFER: (*projections.tame, *settling_matrices.tame, *frequencies.tame),
}


def systems(data, op, dtype):
    """A, B and C of one system at a time."""
    example = data.draw(examples(op, dtype, maps=MAPS[op], mixed=False))
    return [arrays for _, arrays in example.slices()]


def known(solve, gramians, A, B, C, more=1.0):
    """Error bound of squared singular values: 16 (dP ‖Q‖ + ‖P‖ dQ + n u ‖P‖ ‖Q‖).

    dP is the residual of the equation times the norm of the inverse, which is that of the solution
    for the identity. `more` scales the residuals if A, B and C themselves are computed.
    """
    n, (p, q) = len(A), map(norm, gramians)
    terms = 1 + norm(A) ** 2 if solve is stein else 2 * norm(A)
    dP, dQ = (
        more * n * U * (terms * x + norm(v) ** 2) * norm(solve(M, np.eye(n)), 2)
        for M, v, x in ((A, B, p), (A.conj().T, C, q))
    )
    return 16 * (dP * q + p * dQ + n * U * p * q)


@each_type
@given(data=st.data())
@laws
def test_a_hankel_matrix_gives_what_comes_after_an_input_that_was_reversed(dtype, data):
    example = data.draw(examples(HANKEL_MATRIX, dtype, maps=projections.tame))
    (h,), n = example.arrays, example.arrays[0].shape[-1]
    x = example.generator(7).standard_normal(n)
    past = np.concatenate([x[::-1], np.zeros(n - 1)])
    kernel = np.concatenate([h, np.zeros_like(h[..., 1:])], axis=-1)
    y = refssm.causal_convolution_direct(past, kernel)
    later = np.einsum("...ij,j->...i", refssm.hankel_matrix(h), x)
    made = np.concatenate([y[..., : n - 1], later], axis=-1)
    verdict = judge(CAUSAL_CONVOLUTION_DIRECT, lambda *_: made, past, kernel)
    assert verdict.ok, verdict.message


@each_type
@given(data=st.data())
@laws
def test_values_of_long_hankel_matrices_tend_to_those_of_the_discrete_gramians(dtype, data):
    l = 96
    for A, B, C in systems(data, GRAMIANS_DISCRETE, dtype):
        A = A / 2  # ‖A‖∞ ≤ ½
        P, Q = refssm.gramians_discrete(A, B, C)
        h = refssm.markov_parameters(A, B, C, l=l)
        values = np.linalg.svd(refssm.hankel_matrix(h), compute_uv=False)
        n, sigma = len(A), balanced(P, Q)[0]
        # the part of Γ beyond l: Frobenius norm √Σ (k + 1)|h_k|², |h_k| ≤ ‖C‖₁ ‖B‖∞ 2^−k
        beyond = 2 * np.sqrt(l + 1) * 2.0**-l * np.abs(C).sum() * np.abs(B).max(initial=0)
        # errors of h: n roundings per step, k (½)^k ≤ ½ of them; of the decomposition: l u times
        # the norm
        parts = 2 * n * l * U * np.abs(C).sum() * np.abs(B).max(initial=0) + l * U * norm(values)
        off = parts + beyond
        room = known(stein, (P, Q), A, B, C) + off * (2 * values[0] + off)
        assert (np.abs(values[:n] ** 2 - sigma**2) <= room).all()
        assert (values[n:] <= off).all()  # Kronecker: the rank is at most n


@each_type
@given(data=st.data())
@laws
def test_similar_systems_have_the_same_values(dtype, data):
    for A, B, C in systems(data, HANKEL_SINGULAR_VALUES, dtype):
        n = len(A)
        T = np.eye(n) + np.tril(np.ones((n, n)), -1) * (-1.0) ** np.arange(n)  # exact inverse
        inverse = np.round(np.linalg.inv(T))
        assert np.array_equal(T @ inverse, np.eye(n))
        other = T @ A @ inverse, T @ B, C @ inverse
        more = 2 * np.linalg.cond(T) ** 2  # two products; T A T⁻¹ may be a small part of them
        ours, theirs = refssm.gramians(A, B, C), refssm.gramians(*other)
        away = refssm.hankel_singular_values(A, B, C) ** 2
        away = np.abs(away - refssm.hankel_singular_values(*other) ** 2)
        room = known(lyapunov, ours, A, B, C) + known(lyapunov, theirs, *other, more)
        assert (away <= room).all()


@each_type
@given(data=st.data(), order=st.integers(1, 2))
@laws
def test_a_reduced_system_is_within_its_bound_in_the_h_infinity_norm(dtype, data, order):
    for A, B, C in systems(data, HANKEL_SINGULAR_VALUES, dtype):
        n = len(A)
        if order >= n:
            continue
        sigma = refssm.hankel_singular_values(A, B, C)
        room = np.sqrt(
            known(lyapunov, refssm.gramians(A, B, C), A, B, C)
        )  # for one value, among those that are 0
        assume(sigma[order - 1] > 2 * sigma[order] + room)  # equal values must stay together
        a, b, c = refssm.balanced_truncation(A, B, C, order)
        assert (np.linalg.eigvals(a).real < 0).all()
        both = np.zeros((n + order, n + order), np.result_type(A, a))
        both[:n, :n], both[n:, n:] = A, a
        away = refssm.h_infinity_norm(both, np.append(B, b), np.append(C, -c), 0.0)
        bound = refssm.balanced_truncation_bound(A, B, C, order)
        assert away <= bound + 2 * n * room
        assert sigma[order] <= away + room  # no system of that order is nearer (Hankel norm)


@each_type
@given(data=st.data())
@laws
def test_the_bilinear_map_takes_one_transfer_function_to_the_other(dtype, data):
    """G(z) − D = 2z/(1 + z) (G(s) − D), s = (2/dt)(z − 1)/(z + 1)."""
    for A, B, C, D, _ in systems(data, TRANSFER, dtype):
        n, size = len(A), norm(A)
        assume(size > 0)
        dt = 1 / (2 * size)  # ‖½ dt A‖ ≤ ¼: the inverse has norm ≤ 4/3
        s = size * np.exp(1j * np.linspace(-1.5, 1.5, 7))
        A_bar, B_bar = refssm.discretize_bilinear(A, B[:, None], np.float64(dt))
        z = (1 + s * dt / 2) / (1 - s * dt / 2)
        G = refssm.transfer_discrete(A_bar, B_bar[:, 0], C, D, z)
        wanted = D + 2 * z / (1 + z) * (refssm.transfer(A, B, C, D, s) - D)
        for k, point in enumerate(s):
            M = point * np.eye(n) - A
            row, x = norm(np.linalg.solve(M.T, C)), np.linalg.solve(M, B)
            # M, and Ā, z in units of M: errors of n u times all parts; B is exact
            room = 16 * n * U * row * ((norm(M) + 4 * size) * norm(x) + norm(B))
            assert abs(G[k] - wanted[k]) <= room + 16 * U * (abs(D) + norm(C) * norm(x))
