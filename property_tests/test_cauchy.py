from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, laws

from refssm.cauchy import CAUCHY_KERNEL
from refssm.conformance.judging.grading import judge

TYPES = ("float32", "complex128")  # both precisions, real and complex
GRID = 2.0**-8  # poles and nodes on it may be shifted by integers without rounding
NORMAL: dict[str, Any] = {"textures": ("each", "constant")}
each_type = pytest.mark.parametrize("dtype", TYPES)
each_role = pytest.mark.parametrize("role", ["reference", "jit"])


def on_grid(x):
    """Round away from zero to the grid, so a pole stays left of every node."""
    parts = (np.copysign(np.ceil(np.abs(p) / GRID), p) * GRID for p in (np.real(x), np.imag(x)))
    real, imag = parts
    return (real + 1j * imag if np.iscomplexobj(x) else real).astype(x.dtype)


@each_role
@each_type
@given(data=st.data(), real=st.integers(-100, 100), imag=st.integers(-100, 100))
@laws
def test_poles_and_nodes_may_be_shifted_together_exactly(dtype, role, data, real, imag):
    v, w, z = data.draw(examples(CAUCHY_KERNEL, dtype, **NORMAL)).arrays
    w, z = on_grid(w), on_grid(z)
    c = np.dtype(dtype).type(real + 1j * imag if np.dtype(dtype).kind == "c" else real)
    kernel = CAUCHY_KERNEL.implementation(role)
    assert np.array_equal(kernel(v, w, z), kernel(v, w + c, z + c))


@each_role
@each_type
@given(data=st.data(), k=st.integers(-16, 16))
@laws
def test_a_power_of_two_in_time_comes_out_exactly(dtype, role, data, k):
    v, w, z = data.draw(examples(CAUCHY_KERNEL, dtype, **NORMAL)).arrays
    kernel, scale = CAUCHY_KERNEL.implementation(role), np.finfo(dtype).dtype.type(2.0**k)
    assert np.array_equal(kernel(v, w * scale, z * scale) * scale, kernel(v, w, z))


@each_role
@each_type
@given(data=st.data(), k=st.integers(-16, 16))
@laws
def test_a_power_of_two_in_the_residues_comes_out_exactly(dtype, role, data, k):
    v, w, z = data.draw(examples(CAUCHY_KERNEL, dtype, **NORMAL)).arrays
    kernel, scale = CAUCHY_KERNEL.implementation(role), np.finfo(dtype).dtype.type(2.0**k)
    assert np.array_equal(kernel(v * scale, w, z), kernel(v, w, z) * scale)


@each_role
@each_type
@given(data=st.data())
@laws
def test_the_order_of_the_poles_does_not_matter(dtype, role, data):
    example = data.draw(examples(CAUCHY_KERNEL, dtype))
    v, w, z = example.arrays
    order = example.generator(50).permutation(w.shape[-1])
    k = CAUCHY_KERNEL.implementation(role)(v[..., order], w[..., order], z)
    verdict = judge(CAUCHY_KERNEL, lambda *_: k, v, w, z)
    assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data())
@laws
def test_the_order_of_the_nodes_is_that_of_the_values(dtype, role, data):
    example = data.draw(examples(CAUCHY_KERNEL, dtype))
    v, w, z = example.arrays
    order = example.generator(51).permutation(z.shape[-1])
    k = CAUCHY_KERNEL.implementation(role)(v, w, z[..., order])
    verdict = judge(CAUCHY_KERNEL, lambda *_: k[..., np.argsort(order)], v, w, z)
    assert verdict.ok, verdict


@each_role
@each_type
@given(data=st.data())
@laws
def test_two_sets_of_poles_add(dtype, role, data):
    example = data.draw(examples(CAUCHY_KERNEL, dtype))
    v, w, z = example.arrays
    kernel = CAUCHY_KERNEL.implementation(role)
    n = w.shape[-1] // 2
    k = kernel(v[..., :n], w[..., :n], z) + kernel(v[..., n:], w[..., n:], z)
    verdict = judge(CAUCHY_KERNEL, lambda *_: k, v, w, z)
    assert verdict.ok, verdict
