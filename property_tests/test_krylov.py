import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, laws

from refssm.conformance.judging.grading import judge
from refssm.convolution import CAUSAL_CONVOLUTION_DIRECT
from refssm.domains import projections, transitions
from refssm.krylov import KRYLOV_KERNEL
from refssm.scan import DENSE_SCAN

TYPES = ("float32", "complex128")  # both precisions, real and complex
# powers that keep their size, so that no number becomes subnormal and scaling by 2^k is exact
TAME = {
    "maps": (*projections.tame, *transitions.tame),
    "textures": (*transitions.tame_textures, "each", "constant"),
}
each_type = pytest.mark.parametrize("dtype", TYPES)
each_role = pytest.mark.parametrize("role", ["reference", "jit"])
lengths = st.integers(0, 9)


def verdict_on(value, A, B, C):
    """The judge's verdict on `value` as the kernel of these systems."""
    l = value.shape[-1]
    return judge(KRYLOV_KERNEL, lambda *_, **__: np.ascontiguousarray(value), A, B, C, l=l)


def below(A, more):
    """A block diagonal matrix of A and `more`, over the leading axes of both."""
    n = A.shape[-1]
    both = np.zeros((*A.shape[:-2], 2 * n, 2 * n), np.result_type(A, more))
    both[..., :n, :n], both[..., n:, n:] = A, more
    return both


def applied(A, x):
    """A x."""
    return np.einsum("...ij,...j->...i", A, x)


@each_role
@each_type
@given(data=st.data(), l=lengths)
@laws
def test_a_step_of_the_input_advances_the_kernel_by_one(dtype, role, data, l):
    A, B, C = data.draw(examples(KRYLOV_KERNEL, dtype)).arrays
    kernel = KRYLOV_KERNEL.implementation(role)
    first, later = kernel(A, B, C, l=1), kernel(A, applied(A, B), C, l=l)
    verdict = verdict_on(np.concatenate([first, later], -1), A, B, C)
    assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data(), l=lengths)
@laws
def test_the_square_of_the_matrix_gives_every_other_entry(dtype, role, data, l):
    A, B, C = data.draw(examples(KRYLOV_KERNEL, dtype)).arrays
    kernel = KRYLOV_KERNEL.implementation(role)
    even = kernel(A @ A, B, C, l=l)
    odd = kernel(A @ A, applied(A, B), C, l=l)
    verdict = verdict_on(np.stack([even, odd], -1).reshape(*even.shape[:-1], 2 * l), A, B, C)
    assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data(), l=lengths)
@laws
def test_the_transposed_system_exchanges_b_and_c(dtype, role, data, l):
    A, B, C = data.draw(examples(KRYLOV_KERNEL, dtype)).arrays
    verdict = verdict_on(KRYLOV_KERNEL.implementation(role)(A.mT, C, B, l=l), A, B, C)
    assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data(), l=lengths)
@laws
def test_the_order_of_the_states_does_not_matter(dtype, role, data, l):
    example = data.draw(examples(KRYLOV_KERNEL, dtype))
    A, B, C = example.arrays
    order = example.generator(50).permutation(B.shape[-1])
    turned = A[..., order, :][..., order], B[..., order], C[..., order]
    verdict = verdict_on(KRYLOV_KERNEL.implementation(role)(*turned, l=l), A, B, C)
    assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data(), l=lengths)
@laws
def test_two_systems_side_by_side_add(dtype, role, data, l):
    example = data.draw(examples(KRYLOV_KERNEL, dtype))
    first, second = example.arrays, example.redrawn().arrays
    kernel = KRYLOV_KERNEL.implementation(role)
    K = kernel(*first, l=l) + kernel(*second, l=l)
    (A, *ends), (more, *others) = first, second
    ends = (np.concatenate([x, y], -1) for x, y in zip(ends, others, strict=True))
    verdict = verdict_on(K, below(A, more), *ends)
    assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data(), k=st.integers(-3, 3), l=lengths)
@laws
def test_a_power_of_two_in_the_matrix_comes_out_to_the_power_of_the_lag(dtype, role, data, k, l):
    A, B, C = data.draw(examples(KRYLOV_KERNEL, dtype, **TAME)).arrays
    kernel = KRYLOV_KERNEL.implementation(role)
    powers = (2.0 ** (k * np.arange(l))).astype(np.finfo(dtype).dtype)
    scaled = kernel(A * powers.dtype.type(2.0**k), B, C, l=l)
    assert np.array_equal(scaled, kernel(A, B, C, l=l) * powers)


@each_role
@each_type
@given(data=st.data(), l=lengths)
@laws
def test_convolved_with_an_input_it_is_the_output_of_the_scan(dtype, role, data, l):
    example = data.draw(examples(KRYLOV_KERNEL, dtype, max_dims=0, **TAME))
    A, B, C = example.arrays
    n, u = B.size, example.generator(60).standard_normal(l).astype(np.finfo(dtype).dtype)
    K = KRYLOV_KERNEL.implementation(role)(A, B, C, l=l)
    k = CAUSAL_CONVOLUTION_DIRECT.implementation(role)(u, K)
    y = DENSE_SCAN.implementation(role)(A, u[:, None] * B) @ C
    # Both sum the same products of u, C and entries of A and B. Each product has at most n + 2
    # roundings per step and n + l + 2 more, three times that for complex numbers.
    roundings = 3 * ((n + 2) * l + n + l + 2) * np.finfo(dtype).eps / 2
    sizes = (np.abs(a).astype(float) for a in example.arrays)
    size = CAUSAL_CONVOLUTION_DIRECT.reference(np.abs(u), KRYLOV_KERNEL.reference(*sizes, l=l))
    assert (np.abs(k - y) <= 2 * roundings / (1 - roundings) * size).all()
