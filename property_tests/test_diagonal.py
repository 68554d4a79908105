import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, laws

from refssm.conformance.judging.expected import expect, unit_roundoff
from refssm.conformance.judging.grading import judge
from refssm.conformance.standard import C as ALLOWED
from refssm.diagonal import (
    DIAGONAL_KERNEL_BILINEAR,
    DIAGONAL_KERNEL_ZOH,
    DSS_EXP_KERNEL,
    DSS_SOFTMAX_KERNEL,
    EMA_KERNEL,
    SHIFT_KERNEL,
)

OPERATORS = (
    DIAGONAL_KERNEL_ZOH,
    DIAGONAL_KERNEL_BILINEAR,
    DSS_EXP_KERNEL,
    DSS_SOFTMAX_KERNEL,
    EMA_KERNEL,
)
CONTINUOUS = OPERATORS[:4]
TYPES = ("float32", "complex128")  # both precisions, real and complex
PLAIN = ("each", "constant")
each_type = pytest.mark.parametrize("dtype", TYPES)
each_role = pytest.mark.parametrize("role", ["reference", "jit"])
each = pytest.mark.parametrize("op", OPERATORS, ids=str)
each_continuous = pytest.mark.parametrize("op", CONTINUOUS, ids=str)


def verdict_on(op, value, arrays):
    """The judge's verdict on `value` as the kernel of these arguments."""
    return judge(op, lambda *_, **__: value, *arrays, l=value.shape[-1])


def along_modes(op, example, function):
    """Apply `function` to every argument with a mode axis."""
    pairs = zip(example.arrays, op.input_dims, strict=True)
    return [function(a) if dims else a for a, dims in pairs]


@each_role
@each_type
@each_continuous
@given(data=st.data())
@laws
def test_modes_twice_as_fast_and_half_the_step_are_half_the_kernel(op, dtype, role, data):
    example = data.draw(examples(op, dtype, maps=("near", "normal", "usual"), textures=PLAIN))
    w, *others, dt = example.arrays
    kernel, statics = op.implementation(role), example.statics
    k, faster = kernel(*example.arrays, **statics), kernel(2 * w, *others, dt / 2, **statics)
    assert np.array_equal(k, 2 * faster)


@each_role
@each_type
@each
@given(data=st.data())
@laws
def test_the_order_of_the_modes_does_not_matter(op, dtype, role, data):
    example = data.draw(examples(op, dtype))
    n = example.arrays[0].shape[-1]
    order = example.generator(50).permutation(n)
    turned = along_modes(op, example, lambda a: a[..., order])
    k = op.implementation(role)(*turned, **example.statics)
    verdict = verdict_on(op, k, example.arrays)
    assert verdict.ok, verdict


@each_role
@each_type
@each_continuous
@given(data=st.data())
@laws
def test_the_kernel_of_all_modes_is_the_sum_of_the_kernels_of_each(op, dtype, role, data):
    example = data.draw(examples(op, dtype))
    kernel, k = op.implementation(role), 0
    for i in range(example.arrays[0].shape[-1]):
        one = along_modes(op, example, lambda a, i=i: a[..., i : i + 1])
        k = k + kernel(*one, **example.statics)
    verdict = verdict_on(op, np.asarray(k), example.arrays)
    assert verdict.ok, verdict


@each_role
@each
@given(data=st.data())
@laws
def test_conjugate_arguments_have_the_conjugate_kernel(op, role, data):
    example = data.draw(examples(op, "complex128"))
    kernel, statics = op.implementation(role), example.statics
    k = kernel(*(a.conj() for a in example.arrays), **statics)
    verdict = verdict_on(op, k.conj(), example.arrays)
    assert verdict.ok, verdict


@pytest.mark.long
@each_role
@each_type
@given(data=st.data())
@laws
def test_a_step_of_every_mode_advances_a_held_kernel_by_one(dtype, role, data):
    op = DIAGONAL_KERNEL_ZOH
    example = data.draw(examples(op, dtype))
    (w, B, C, dt), l = example.arrays, example.statics["l"]
    kernel = op.implementation(role)
    later = kernel(w, B, C * np.exp(dt[..., None] * w), dt, l=l)
    verdict = verdict_on(op, np.concatenate([kernel(w, B, C, dt, l=1), later], -1), example.arrays)
    assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data())
@laws
def test_a_softmax_kernel_sums_to_the_sum_of_the_quotients(dtype, role, data):
    op = DSS_SOFTMAX_KERNEL
    example = data.draw(examples(op, dtype, maps=("near", "normal", "usual"), textures=PLAIN))
    w, C, _ = example.arrays
    k = op.implementation(role)(*example.arrays, **example.statics)
    (gauge,), u = expect(op, example.arrays, example.statics), unit_roundoff(dtype)
    quotients = (C.astype(np.clongdouble) / w).sum(-1)
    off = np.abs(k.astype(np.clongdouble).sum(-1) - quotients)
    assert (off <= (ALLOWED * u * gauge.k0 + u * np.abs(k)).sum(-1)).all()


@each_role
@each_type
@given(data=st.data())
@laws
def test_a_shift_kernel_read_backwards_is_that_of_both_exchanged(dtype, role, data):
    example = data.draw(examples(SHIFT_KERNEL, dtype))
    B, C = example.arrays
    k = SHIFT_KERNEL.implementation(role)(C[..., ::-1], B[..., ::-1], **example.statics)
    verdict = verdict_on(SHIFT_KERNEL, k, example.arrays)
    assert verdict.ok, verdict


@pytest.mark.long
@each_role
@each_type
@given(data=st.data())
@laws
def test_what_is_written_in_one_place_is_read_from_there_on(dtype, role, data):
    example = data.draw(examples(SHIFT_KERNEL, dtype))
    _, C = example.arrays
    n, l = C.shape[-1], example.statics["l"]
    for i in range(n):
        k = SHIFT_KERNEL.implementation(role)(np.eye(1, n, i, dtype=C.dtype)[0], C, l=l)
        padded = np.concatenate([C[..., i:], np.zeros((*C.shape[:-1], l), C.dtype)], axis=-1)
        assert np.array_equal(k, padded[..., :l])


@each_role
@each_type
@given(data=st.data())
@laws
def test_an_average_does_not_know_what_is_multiplied_in_from_what_is_multiplied_out(
    dtype, role, data
):
    example = data.draw(examples(EMA_KERNEL, dtype))
    delta, alpha, beta, gamma = example.arrays
    k = EMA_KERNEL.implementation(role)(delta, alpha, gamma, beta, **example.statics)
    verdict = verdict_on(EMA_KERNEL, k, example.arrays)
    assert verdict.ok, verdict
