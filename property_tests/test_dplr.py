"""Laws that relate the DPLR kernels to each other and to the diagonal ones."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, laws

from refssm.cauchy import RESOLVENT_AT_ROOTS
from refssm.conformance.judging.grading import judge
from refssm.dplr import DPLR_KERNEL, DPLR_KERNEL_ALIASED, dplr_kernel, dplr_kernel_aliased

wide = given(
    example=examples(DPLR_KERNEL_ALIASED, "complex128", maps=("near", "normal", "one", "half"))
)


@wide
@laws
def test_a_unitary_change_of_phases_leaves_the_kernel(example):
    w, P, Q, B, C, dt = example.arrays
    turn = np.exp(1j * np.arange(w.shape[-1]))
    K = dplr_kernel(
        w, turn[:, None] * P, turn[:, None] * Q, turn * B, turn.conj() * C, dt, **example.statics
    )
    verdict = judge(DPLR_KERNEL, lambda *_, **__: K, *example.arrays, **example.statics)
    assert verdict.ok, verdict


@wide
@laws
def test_columns_may_be_scaled_against_each_other(example):
    w, P, Q, B, C, dt = example.arrays
    powers = 2.0 ** np.arange(P.shape[-1])
    K = dplr_kernel(w, P * powers, Q / powers, B, C, dt, **example.statics)
    verdict = judge(DPLR_KERNEL, lambda *_, **__: K, *example.arrays, **example.statics)
    assert verdict.ok, verdict


@wide
@laws
def test_time_and_step_are_measured_in_the_same_unit(example):
    w, P, Q, B, C, dt = example.arrays
    K = dplr_kernel(w / 4, P / 2, Q / 2, B / 4, C, 4 * dt, **example.statics)
    assert np.array_equal(K, dplr_kernel(w, P, Q, B, C, dt, **example.statics))


@wide
@laws
def test_conjugate_arguments_give_the_conjugate_kernel(example):
    conjugates = [x.conj() for x in example.arrays]
    K = dplr_kernel(*conjugates, **example.statics).conj()
    verdict = judge(DPLR_KERNEL, lambda *_, **__: K, *example.arrays, **example.statics)
    assert verdict.ok, verdict


@wide
@laws
def test_an_aliased_kernel_of_twice_the_length_folds_onto_one(example):
    arrays, l = example.arrays, example.statics["l"]
    wrapped = dplr_kernel_aliased(*arrays, l=2 * l)
    folded = wrapped[..., :l] + wrapped[..., l:]
    verdict = judge(DPLR_KERNEL_ALIASED, lambda *_, **__: folded, *arrays, l=l)
    assert verdict.ok, verdict


@given(example=examples(RESOLVENT_AT_ROOTS, "complex128", textures=("each",)), m=st.integers(2, 3))
@laws
def test_every_mth_of_m_l_nodes_is_one_of_l(example, m):
    v, a = example.arrays
    l = example.statics["l"]
    finer = RESOLVENT_AT_ROOTS.reference(v, a, l=m * l)[..., ::m]
    verdict = judge(RESOLVENT_AT_ROOTS, lambda *_, **__: finer, v, a, l=l)
    assert verdict.ok, verdict
