import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, laws

from refssm.conformance.judging.grading import judge
from refssm.domains import exponents, residues
from refssm.vandermonde import VANDERMONDE_KERNEL, VANDERMONDE_KERNEL_REAL

TYPES = ("float32", "complex128")  # both precisions, real and complex
# no number becomes subnormal, so scaling by a power of two is exact
NORMAL = {"maps": (*residues.maps, *exponents.tame), "textures": ("each", "constant", "gaps")}
each_type = pytest.mark.parametrize("dtype", TYPES)
each_role = pytest.mark.parametrize("role", ["reference", "jit"])
each_op = pytest.mark.parametrize("op", [VANDERMONDE_KERNEL, VANDERMONDE_KERNEL_REAL], ids=str)


def verdict_on(op, value, v, x):
    """The judge's verdict on `value` as the kernel of these modes."""
    return judge(op, lambda *_, **__: value, v, x, l=value.shape[-1])


def appended(x, more):
    """Concatenate two arrays along the modes, over the leading axes of both."""
    leading = np.broadcast_shapes(x.shape[:-1], more.shape[:-1])
    return np.concatenate([np.broadcast_to(a, (*leading, a.shape[-1])) for a in (x, more)], -1)


@each_role
@each_type
@each_op
@given(data=st.data())
@laws
def test_a_step_of_every_mode_advances_the_kernel_by_one(op, dtype, role, data):
    example = data.draw(examples(op, dtype))
    (v, x), l = example.arrays, example.statics["l"]
    kernel = op.implementation(role)
    later = kernel(v * np.exp(x), x, l=l)
    verdict = verdict_on(op, np.concatenate([kernel(v, x, l=1), later], -1), v, x)
    assert verdict.ok, verdict


@each_role
@each_type
@each_op
@given(data=st.data())
@laws
def test_twice_the_exponents_are_every_other_step(op, dtype, role, data):
    example = data.draw(examples(op, dtype))
    (v, x), l = example.arrays, example.statics["l"]
    every_other = op.implementation(role)(v, x, l=2 * l)[..., ::2]
    verdict = verdict_on(op, every_other, v, 2 * x)
    assert verdict.ok, verdict


@each_role
@each_type
@each_op
@given(data=st.data())
@laws
def test_the_order_of_the_modes_does_not_matter(op, dtype, role, data):
    example = data.draw(examples(op, dtype))
    v, x = example.arrays
    order = example.generator(50).permutation(x.shape[-1])
    k = op.implementation(role)(v[..., order], x[..., order], **example.statics)
    verdict = verdict_on(op, k, v, x)
    assert verdict.ok, verdict


@each_role
@each_type
@each_op
@given(data=st.data())
@laws
def test_two_sets_of_modes_add(op, dtype, role, data):
    example = data.draw(examples(op, dtype))
    first, second = example.arrays, example.redrawn().arrays
    kernel, statics = op.implementation(role), example.statics
    k = kernel(*first, **statics) + kernel(*second, **statics)
    verdict = verdict_on(op, k, *map(appended, first, second))
    assert verdict.ok, verdict


@each_role
@each_type
@each_op
@given(data=st.data(), zeros=st.integers(1, 3))
@laws
def test_modes_without_a_coefficient_change_nothing(op, dtype, role, data, zeros):
    example = data.draw(examples(op, dtype))
    (v, x), statics = example.arrays, example.statics
    other = example.redrawn().arrays[1][..., :zeros]
    kernel = op.implementation(role)
    k = kernel(appended(v, np.zeros_like(v[..., :zeros])), appended(x, other), **statics)
    assert np.array_equal(k, np.broadcast_to(kernel(v, x, **statics), k.shape))


@each_role
@each_type
@each_op
@given(data=st.data(), k=st.integers(-16, 16))
@laws
def test_a_power_of_two_in_the_coefficients_comes_out_exactly(op, dtype, role, data, k):
    example = data.draw(examples(op, dtype, **NORMAL))
    v, x = example.arrays
    kernel, scale = op.implementation(role), np.finfo(dtype).dtype.type(2.0**k)
    scaled = kernel(v * scale, x, **example.statics)
    assert np.array_equal(scaled, kernel(v, x, **example.statics) * scale)


@each_role
@each_type
@given(data=st.data())
@laws
def test_the_real_form_is_the_kernel_of_the_modes_and_their_conjugates(dtype, role, data):
    example = data.draw(examples(VANDERMONDE_KERNEL_REAL, dtype))
    v, x = example.arrays
    k = VANDERMONDE_KERNEL_REAL.implementation(role)(v, x, **example.statics)
    v, x = (appended(a, a.conj()) for a in (v, x))
    whole = VANDERMONDE_KERNEL.implementation(role)(v, x, **example.statics)
    for value in (k.astype(whole.dtype), whole):
        verdict = verdict_on(VANDERMONDE_KERNEL, value, v, x)
        assert verdict.ok, verdict


@each_role
@given(data=st.data())
@laws
def test_conjugate_modes_give_the_conjugate_kernel_exactly(role, data):
    example = data.draw(examples(VANDERMONDE_KERNEL, "complex128"))
    v, x = example.arrays
    kernel = VANDERMONDE_KERNEL.implementation(role)
    k = kernel(v, x, **example.statics)
    assert np.array_equal(kernel(v.conj(), x.conj(), **example.statics), k.conj())
