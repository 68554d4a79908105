"""Laws that relate HOPE's transfer function and its kernels."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, laws

from refssm.conformance.judging.grading import judge
from refssm.convolution import causal_convolution_direct
from refssm.hope import (
    HOPE_KERNEL,
    HOPE_KERNEL_ALIASED,
    HOPE_TRANSFER,
    hope_kernel,
    hope_kernel_aliased,
    hope_transfer,
)


def holds(op, y, arrays, statics):
    """Assert that the judge accepts y as the operator's output for these arguments."""
    verdict = judge(op, lambda *_, **__: y, *arrays, **statics)
    assert verdict.ok, verdict


@given(example=examples(HOPE_TRANSFER, "complex128"), m=st.integers(2, 3))
@laws
def test_every_mth_of_m_l_nodes_is_one_of_l(example, m):
    h, dt = example.arrays
    l = example.statics["l"]
    holds(HOPE_TRANSFER, hope_transfer(h, dt, l=m * l)[..., ::m], (h, dt), {"l": l})


@given(example=examples(HOPE_TRANSFER, "complex128", maps=("powers", "one", "normal")))
@laws
def test_the_inverse_step_warps_the_other_half_of_the_circle(example):
    h, dt = example.arrays  # powers of two, so that 1/dt is exact
    l = 2 * example.statics["l"]
    turned = -h * (-1.0) ** np.arange(h.shape[-1])
    other = np.roll(hope_transfer(turned, 1 / dt, l=l), l // 2, axis=-1)
    holds(HOPE_TRANSFER, other, (h, dt), {"l": l})


@given(example=examples(HOPE_KERNEL, "complex128", maps=("powers", "one", "normal")))
@laws
def test_the_kernel_of_the_inverse_step_alternates(example):
    h, dt = example.arrays
    l = example.statics["l"]
    turned = -h * (-1.0) ** np.arange(h.shape[-1])
    holds(HOPE_KERNEL, (-1.0) ** np.arange(l) * hope_kernel(turned, 1 / dt, l=l), (h, dt), {"l": l})


@given(example=examples(HOPE_KERNEL_ALIASED, "complex128"))
@laws
def test_an_aliased_kernel_of_twice_the_length_folds_onto_one(example):
    h, dt = example.arrays
    l = example.statics["l"]
    wrapped = hope_kernel_aliased(h, dt, l=2 * l)
    holds(HOPE_KERNEL_ALIASED, wrapped[..., :l] + wrapped[..., l:], (h, dt), {"l": l})


@given(example=examples(HOPE_KERNEL, "complex128"))
@laws
def test_padding_the_input_with_zeros_changes_nothing(example):
    h, dt = example.arrays
    l = example.statics["l"]
    u = np.cos(np.arange(l))
    short = causal_convolution_direct(u, hope_kernel(h, dt, l=l))
    padded = np.concatenate([u, np.zeros(l)])
    long = causal_convolution_direct(padded, hope_kernel(h, dt, l=2 * l))
    assert np.array_equal(short, long[..., :l])


@given(example=examples(HOPE_TRANSFER, "complex128"))
@laws
def test_stages_before_a_system_are_parameters_of_later_stages(example):
    h, dt = example.arrays
    l = example.statics["l"]
    one = hope_transfer(np.ones(1), dt, l=l)
    later = np.concatenate([np.zeros_like(h[..., :1]), h], axis=-1)
    holds(HOPE_TRANSFER, one * hope_transfer(h, dt, l=l), (later, dt), {"l": l})
