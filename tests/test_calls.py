import warnings
from itertools import product

import numpy as np
import pytest
from calls import also_empty, each_role, filled, ordinary, several, statics, times

from refssm._declaration.signature import length_of
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, grade_outputs


def views_of(a):
    """The same values in other memory layouts."""
    swapped = a.astype(a.dtype.newbyteorder())
    fixed = a.copy()
    fixed.flags.writeable = False
    wide = np.zeros((*a.shape, 2), a.dtype)
    wide[..., 0] = a
    turned = np.flip(np.flip(a).copy())
    return [swapped, fixed, np.asfortranarray(a), turned, wide[..., 0]]


def lengths_of(op):
    """Sizes for calls: the default, and no time steps if there is time."""
    timed = any("l" in dims for dims in op.input_dims)
    return [{}, {"l": 0}] if timed else [{}]


def present(gradients):
    """The gradients of the arguments that have one."""
    return [g for g in gradients if g is not None]


def alike(x, y):
    """True if all numbers are equal; NaN equals NaN, because ones may be at a pole."""
    return x is y if x is None else np.array_equal(x, y, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@each_role
def test_byte_order_strides_and_the_writeable_flag_do_not_matter(op, role, dtype):
    lengths, count = statics(op), len(op.inputs)
    arrays = times(ordinary(op, dtype, batch=(2,)), [(i + 2) / 8 for i in range(count)])
    expected = several(op.implementation(role)(*arrays, **lengths))
    cotangents = [np.ones_like(y) for y in expected]
    gradients = op.vjp(role)(*cotangents, *arrays, **lengths)
    bounds = expect(op, [*cotangents, *arrays], lengths, op.bare_vjp)
    for views in zip(*map(views_of, arrays), strict=True):
        outputs = several(op.implementation(role)(*views, **lengths))
        assert [y.dtype for y in outputs] == [y.dtype for y in expected]
        assert (
            all(map(alike, outputs, expected))
            or grade_outputs(op, arrays, outputs, expect(op, arrays, lengths)).ok
        )  # the order of a sum may depend on the memory layout
        for backwards in zip(*map(views_of, cotangents), strict=True):
            pulled = op.vjp(role)(*backwards, *views, **lengths)
            assert all(map(alike, pulled, gradients)) or all(
                compare(g, bound, g.dtype).ok
                for g, bound in zip(present(pulled), bounds, strict=True)
            )


@each_role
@pytest.mark.parametrize("size", [1, 3])
def test_inputs_stay_unchanged_and_outputs_are_memory_of_their_own(op, role, size):
    arrays = times(ordinary(op, size=size), range(2, 2 + len(op.inputs)))
    before = [a.copy() for a in arrays]
    outputs = [*several(op.implementation(role)(*arrays, **statics(op)))]
    cotangents = [np.ones_like(y) for y in outputs]
    outputs += present(op.vjp(role)(*cotangents, *arrays, **statics(op)))
    assert all(map(np.array_equal, arrays, before))
    assert all(np.array_equal(c, np.ones_like(c)) for c in cotangents)
    everything = [*outputs, *arrays, *cotangents]
    for i, output in enumerate(outputs):
        assert output.flags.writeable
        assert not any(np.shares_memory(output, x) for x in everything[i + 1 :])


@pytest.mark.parametrize("special", [np.nan, np.inf, 0.0, 1e300], ids=str)
@each_role
def test_special_values_warn_nothing_whatever_the_caller_set(op, role, special):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for dtype in ("float64", "complex128"):
            pairs = zip(op.inputs, ordinary(op), strict=True)
            arrays = [filled(op, name, a.shape, dtype, special) for name, a in pairs]
            try:
                y = several(op.implementation(role)(*arrays, **statics(op)))
                op.vjp(role)(*y, *arrays, **statics(op))
            except np.linalg.LinAlgError:
                assert op.contract.may_raise_if_singular  # I - 1e300 is singular


@each_role
def test_length_state_and_batch_of_size_zero_are_legal(op, role):
    letters = sorted({d[-1] for dims in (*op.input_dims, *op.output_dims) for d in dims})
    for zero in (*letters, "batch"):
        batch = (2, 0) if zero == "batch" else (2, 3)
        sizes = {d: 0 if d in (zero, also_empty(op, zero)) else 4 for d in letters}
        shapes = [(*batch, *(length_of(d, sizes) for d in dims)) for dims in op.input_dims]
        named = zip(op.inputs, shapes, strict=True)
        arrays = [filled(op, name, shape, l=sizes.get("l", 0)) for name, shape in named]
        lengths = statics(op, 4)
        lengths |= {zero: 0} if zero in op.static else {}
        wanted = op.output_shapes(*arrays, **lengths)
        outputs = several(op.implementation(role)(*arrays, **lengths))
        assert [y.shape for y in outputs] == wanted
        assert grade_outputs(op, arrays, outputs, expect(op, arrays, lengths)).ok
        gradients = op.vjp(role)(*map(np.ones, wanted), *arrays, **lengths)
        assert [
            a.shape if g is None else g.shape for g, a in zip(gradients, arrays, strict=True)
        ] == shapes


def of_every_kind(op, **sizes):
    """Arguments in every combination of real and complex that the operator accepts."""
    kinds = [
        [np.int64]
        if name in op.offsets
        else [bool]
        if name in op.discrete
        else [np.float32]
        if domain.real
        else [np.float32, np.complex64]
        for name, domain in op.inputs.items()
    ]
    ones = ordinary(op, np.float32, **sizes)
    for types in product(*kinds):
        yield [a.astype(t) for a, t in zip(ones, types, strict=True)]


@each_role
def test_every_role_has_the_types_of_the_declaration_whichever_arguments_are_complex(op, role):
    for sizes in lengths_of(op):
        for arrays in of_every_kind(op, **sizes):
            outputs = several(op.implementation(role)(*arrays, **statics(op)))
            told = [a.dtype.char for a in arrays], sizes
            assert tuple(y.dtype for y in outputs) == op.output_types(*arrays), told
            pulled = op.vjp(role)(*outputs, *arrays, **statics(op))
            pairs = [(g, a) for g, a in zip(pulled, arrays, strict=True) if g is not None]
            assert all(g.dtype == a.dtype for g, a in pairs), told


@each_role
def test_leading_axes_of_one_argument_alone_reach_every_output(op, role):
    for sizes in lengths_of(op):
        for i in range(len(op.inputs)):
            arrays = ordinary(op, **sizes)
            arrays[i] = np.stack([arrays[i]] * 8).reshape(4, 1, 2, *arrays[i].shape)
            wanted = op.output_shapes(*arrays, **statics(op))
            outputs = several(op.implementation(role)(*arrays, **statics(op)))
            assert [y.shape for y in outputs] == wanted, ([*op.inputs][i], sizes)
            pulled = op.vjp(role)(*outputs, *arrays, **statics(op))
            pairs = [(g, a) for g, a in zip(pulled, arrays, strict=True) if g is not None]
            assert all(g.shape == a.shape for g, a in pairs), ([*op.inputs][i], sizes)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@each_role
def test_a_cotangent_of_a_narrower_type_is_as_good_as_the_same_one_widened(op, role, dtype):
    arrays = times(ordinary(op, dtype), [(i + 2) / 7 for i in range(len(op.inputs))])
    arrays[0] = np.stack([arrays[0]] * 6)  # gradients of shared arguments are summed
    outputs = several(op.implementation(role)(*arrays, **statics(op)))
    narrow = [np.linspace(0.1, 1, y.size, dtype="f4").reshape(y.shape) for y in outputs]
    wide = [c.astype(y.dtype) for c, y in zip(narrow, outputs, strict=True)]
    pulled, wanted = (op.vjp(role)(*c, *arrays, **statics(op)) for c in (narrow, wide))
    for g, exact in zip(present(pulled), present(wanted), strict=True):
        assert g.dtype == exact.dtype
        assert alike(g, exact)
