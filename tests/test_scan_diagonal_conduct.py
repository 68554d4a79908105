from itertools import product

import numpy as np
import pytest
from recurrences import (
    DIAGONAL,
    FROM_REST,
    PAIRED,
    TYPES,
    VARYING,
    drawn,
    each_role,
    random,
    several,
)

from refssm.conformance.judging.grading import judge
from refssm.conformance.judging.verdict import kind_of
from refssm.scan import DIAGONAL_SSM_BIDIRECTIONAL

each_form = pytest.mark.parametrize("op", DIAGONAL, ids=str)
each_from_rest = pytest.mark.parametrize("op", FROM_REST, ids=str)


@each_role
def test_no_states_leave_the_skip_no_inputs_and_no_outputs_nothing(role):
    for op in DIAGONAL:
        a, B, C, D, u, *x0 = drawn(op, 14, n=0)
        y, *x = several(op.implementation(role)(a, B, C, D, u, *x0))
        assert np.array_equal(y, u @ D.T)
        assert [last.shape for last in x] == [(0,)] * len(x)
        y = several(op.implementation(role)(*drawn(op, 14, m=0)))[0]
        assert y.shape == (6, 2)
        assert y.any() == bool(x0)  # the free response
        assert several(op.implementation(role)(*drawn(op, 14, p=0)))[0].shape == (6, 0)


SIZES = [{"l": 0}, {"l": 1}, {"n": 0}, {"m": 0}, {"p": 0}, {"l": 0, "n": 0}, {"l": 0, "m": 0}]
SIZES += [{"l": 1, "n": 1, "m": 1, "p": 1}, {"l": 31, "n": 2, "m": 3, "p": 5}, {"l": 37, "n": 1}]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@each_role
@each_form
def test_sizes_of_zero_one_and_primes(op, role, sizes):
    arrays = drawn(op, 15, random, **sizes)
    i = list(op.inputs).index("a")
    arrays[i] = arrays[i] / (1 + np.abs(arrays[i]))
    outputs = several(op.implementation(role)(*arrays))
    assert [y.shape for y in outputs] == op.output_shapes(*arrays)
    assert judge(op, op.implementation(role), *arrays).ok
    gradients = op.vjp(role)(*outputs, *arrays)
    assert [g.shape for g in gradients] == [a.shape for a in arrays]


def wanted_types(op, arrays):
    """The types of outputs and last states: the outputs of the real form are real."""
    a, B, _, _, u, *x0 = arrays
    state, y = np.result_type(a, B, u, *x0), np.result_type(*arrays)
    y = np.finfo(y).dtype if op in PAIRED else y
    return [y, state] if x0 else [y]


@pytest.mark.parametrize("types", list(product(TYPES[1:], TYPES)), ids="-".join)
@each_role
@each_form
def test_result_and_gradients_have_the_types_and_kinds_of_the_arguments(op, role, types):
    a, B, C, D, u, *x0 = drawn(op, 16)
    for which in range(3):  # complex: the decays, an input matrix, an output matrix
        arrays = [a, B, C, D, u, *x0]
        arrays[which] = arrays[which].astype(types[0])
        arrays[(which + 1) % 3] = arrays[(which + 1) % 3].astype(types[1])
        outputs = several(op.implementation(role)(*arrays))
        assert [y.dtype for y in outputs] == wanted_types(op, arrays)
        gradients = op.vjp(role)(*outputs, *arrays)
        assert [g.dtype.kind for g in gradients] == [x.dtype.kind for x in arrays]


@each_role
@each_form
def test_single_precision_stays_single(op, role):
    arrays = drawn(op, 17, dtype="complex64")
    outputs = several(op.implementation(role)(*arrays))
    gradients = op.vjp(role)(*outputs, *arrays)
    assert {np.finfo(y.dtype).dtype for y in (*outputs, *gradients)} == {np.dtype("float32")}
    assert outputs[0].dtype == ("float32" if op in PAIRED else "complex64")


@each_form
def test_long_double_keeps_its_digits_in_the_references(op):
    eps, one = np.finfo(np.longdouble).eps, np.ones((1, 1), np.longdouble)
    a, C = (one if op in VARYING else one[0]), one
    if op is DIAGONAL_SSM_BIDIRECTIONAL:
        C = np.ones((1, 2), np.longdouble)
    arrays = [a, one, C, 0 * one, one + eps, 0 * one[0]][: len(op.inputs)]
    y, *x = several(op.implementation("reference")(*arrays))
    twice = op in PAIRED or op is DIAGONAL_SSM_BIDIRECTIONAL
    assert y[0, 0] == (1 + eps) * (2 if twice else 1)
    assert [last.tolist() for last in x] == [[1 + eps]] * len(x)
    assert all(g.dtype == np.longdouble for g in op.vjp()(y, *x, *arrays))


@each_role
@each_form
def test_nan_in_c_or_d_reaches_its_output_only(op, role):
    for argument in (2, 3):
        arrays = [np.ones_like(a) for a in drawn(op, 18, p=3)]
        arrays[argument][1, 0] = np.nan
        y, *x = several(op.implementation(role)(*arrays))
        assert kind_of(y).tolist() == [[0, 2, 0]] * 6
        assert not any(kind_of(last).any() for last in x)


@each_role
@each_from_rest
def test_nan_in_an_input_reaches_now_and_later(op, role):
    arrays = [np.ones_like(a) for a in drawn(op, 19)]
    for k in range(6):
        arrays[4][:] = 1
        arrays[4][k, 1] = np.nan
        y = op.implementation(role)(*arrays)
        assert kind_of(y).tolist() == [[0, 0]] * k + [[2, 2]] * (6 - k)


@each_role
@each_form
def test_nan_in_a_decay_spares_the_first_output_from_rest(op, role):
    arrays = [np.ones_like(a) for a in drawn(op, 20)]
    arrays[0][..., 1] = np.nan
    y, *x = several(op.implementation(role)(*arrays))
    first = 2 * int(bool(x) or op is DIAGONAL_SSM_BIDIRECTIONAL)
    assert kind_of(y).tolist() == [[first] * 2] + [[2] * 2] * 5
    assert [kind_of(last).tolist() for last in x] == [[0, 2, 0]] * len(x)


MISUSES = [
    ("B", (4, 2), "`B` has n=4, but earlier arguments have n=3"),
    ("D", (2, 3), "`D` has m=3, but earlier arguments have m=2"),
    ("D", (3, 2), "`D` has p=3, but earlier arguments have p=2"),
    ("u", (6, 1), "`u` has m=1, but earlier arguments have m=2"),
    ("u", (2,), r"`u` needs core shape \(l, m\), got shape \(2,\)"),
    ("x0", (2,), "`x0` has n=2, but earlier arguments have n=3"),
]


@pytest.mark.parametrize(
    ("op", "misuse"),
    [
        pytest.param(op, misuse, id=f"{op}-{misuse[0]}-{len(misuse[1])}-{misuse[1][0]}")
        for op in DIAGONAL
        for misuse in MISUSES
        if misuse[0] in op.inputs
    ],
)
@each_role
def test_sizes_that_disagree_are_told(op, role, misuse):
    name, shape, message = misuse
    arrays = dict(zip(op.inputs, drawn(op, 21), strict=True)) | {name: np.ones(shape)}
    with pytest.raises(ValueError, match=rf"^{op}: {message}"):
        op.implementation(role)(*arrays.values())


@pytest.mark.parametrize("columns", [0, 3, 5, 12])
@each_role
def test_both_ways_c_has_twice_as_many_columns_as_states(role, columns):
    arrays = drawn(DIAGONAL_SSM_BIDIRECTIONAL, 22)
    arrays[2] = np.ones((2, columns))
    told = f"`C` has 2n={columns}, wanted 6 for n=3"
    with pytest.raises(ValueError, match=rf"^diagonal_ssm_bidirectional: {told}"):
        DIAGONAL_SSM_BIDIRECTIONAL.implementation(role)(*arrays)


@each_role
@each_form
def test_arguments_are_left_alone_and_results_are_new(op, role):
    for l in (0, 1, 4):
        arrays = [np.ones_like(a) for a in drawn(op, 23, l=l)]
        before = [a.copy() for a in arrays]
        outputs = several(op.implementation(role)(*arrays))
        cotangents = [y.copy() for y in outputs]
        gradients = op.vjp(role)(*cotangents, *arrays)
        assert all(map(np.array_equal, arrays, before))
        assert all(map(np.array_equal, outputs, cotangents))
        for new, old in product((*outputs, *gradients), (*arrays, *cotangents)):
            assert not np.shares_memory(new, old), l
        assert all(new.flags.writeable for new in (*outputs, *gradients))
