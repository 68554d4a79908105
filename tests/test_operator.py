import re

import numpy as np
import pytest
from calls import MIRRORED, WITH_ARGUMENTS, each_role, ordinary, statics

from refssm._declaration.operator import COMPILED_TYPES, REFERENCE_TYPES, Operator
from refssm._declaration.signature import aligned
from refssm.catalog import OPERATORS
from refssm.convolution import SHORT_CONVOLUTION
from refssm.discretize import DISCRETIZE_ZOH
from refssm.domains import decays, residues, signals
from refssm.hope import HOPE_STREAM
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM, linear_scan, linear_scan_vjp


def vandermonde(v, x, *, l):
    return np.einsum("...n,...ln->...l", v, x[..., None, :] ** np.arange(l)[:, None])


def two_sums(u):
    return u.sum(-1), -u.sum(-1)


VANDERMONDE = Operator(
    reference=vandermonde,
    signature="(n),(n)->(l)",
    inputs={"v": residues, "x": decays},
    batch="d b, d",
    traits=frozenset({"linear:v"}),
)
TWO_SUMS = Operator(two_sums, "(n)->(),()", {"u": signals}, outputs=("plus", "minus"))
CHECKED = VANDERMONDE.checked(vandermonde)


def types_of(op):
    """The types that the reference accepts."""
    return COMPILED_TYPES if op.contract.solved_by_lapack else REFERENCE_TYPES


def refused(kind, message):
    return pytest.raises(kind, match=f"^{re.escape(message)}$")


def test_a_signature_names_the_core_dimensions_of_inputs_and_outputs():
    assert LINEAR_SCAN.input_dims == (("l", "n"), ("l", "n"))
    assert LINEAR_SCAN.output_dims == (("l", "n"),)
    assert (VANDERMONDE.input_dims, VANDERMONDE.output_dims) == ((("n",), ("n",)), (("l",),))
    assert TWO_SUMS.output_dims == ((), ())


def test_batch_axes_and_linear_arguments_are_read_from_the_declaration():
    assert VANDERMONDE.batch_axes == (("d", "b"), ("d", "1"))
    assert VANDERMONDE.batch_names == ("d", "b")
    assert aligned("b d, d", 2) == (("b", "d"), ("d",))
    assert aligned("d, b d, b d h, b h", 4) == (
        ("d", "1"), ("b", "d", "1"), ("b", "d", "h"), ("b", "1", "h")
    )  # fmt: skip
    assert HOPE_STREAM.batch_axes == (("d",), ("d",), ("b", "d"))  # in a group's order
    assert HOPE_STREAM.batch_names == ("b", "d")  # the outermost first
    assert SHORT_CONVOLUTION.batch_axes == (("b", "d"), ("d",))
    assert TWO_SUMS.batch_axes == ((),)
    assert (VANDERMONDE.linear_in, TWO_SUMS.linear_in) == (((("v",), (0,)),), ())
    assert LINEAR_SCAN_FROM.linear_in == ((("b", "x0"), (0,)),)
    assert DISCRETIZE_ZOH.linear_in == ((("B",), (1,)),)


def test_name_family_and_text_come_from_the_reference():
    assert (str(LINEAR_SCAN), LINEAR_SCAN.family) == ("linear_scan", "scan")
    assert LINEAR_SCAN.call == "linear_scan(a, b) (l,n),(l,n)->(l,n)"
    assert VANDERMONDE.call == "vandermonde(v, x, *, l) (n),(n)->(l)"


CONTRADICTIONS = {
    "unknown trait": {"traits": frozenset({"fast"})},
    "inputs": {"signature": "(n)->(l)"},
    "outputs": {"signature": "(n),(n)->(l),(l)"},
    "batch": {"batch": "d"},
}


@pytest.mark.parametrize("change", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_declaration_that_contradicts_itself_asserts(change):
    declaration = {"signature": "(n),(n)->(l)", "inputs": {"v": residues, "x": decays}} | change
    with pytest.raises(AssertionError, match=r"^vandermonde: "):
        Operator(reference=vandermonde, **declaration)


def test_sizes_are_the_core_dimensions_by_name():
    assert LINEAR_SCAN.sizes(np.ones((2, 4, 3)), np.ones((4, 3))) == {"l": 4, "n": 3}
    assert VANDERMONDE.sizes(np.ones(3), np.ones((5, 3)), l=7) == {"l": 7, "n": 3}


def test_output_shapes_have_the_broadcast_batch():
    assert LINEAR_SCAN.output_shapes(np.ones((2, 1, 4, 3)), np.ones((5, 4, 3))) == [(2, 5, 4, 3)]
    assert VANDERMONDE.output_shapes(np.ones(3), np.ones((5, 3)), l=7) == [(5, 7)]
    assert TWO_SUMS.output_shapes(np.ones((5, 3))) == [(5,), (5,)]


@each_role
def test_a_missing_argument_is_named_with_the_call(op, role):
    last = list(op.inputs)[-1]
    run, lengths = op.implementation(role), statics(op)
    with refused(TypeError, f"{op}: missing a required argument: '{last}' ({op.call})"):
        run(*ordinary(op)[:-1], **lengths)
    with refused(TypeError, f"{op}: too many positional arguments ({op.call})"):
        run(*ordinary(op), 1, **lengths)
    with refused(TypeError, f"{op}: got an unexpected keyword argument 'other' ({op.call})"):
        run(*ordinary(op), **lengths, other=1)


@each_role
def test_too_few_axes_are_refused_with_the_core_shape_and_the_signature(op, role):
    named = enumerate(zip(op.inputs, op.input_dims, strict=True))
    place, (name, dims) = next((i, (name, dims)) for i, (name, dims) in named if dims)
    arrays = ordinary(op)
    arrays[place] = np.ones((3,) * (len(dims) - 1))
    message = f"{op}: `{name}` needs core shape ({', '.join(dims)}), "
    message += f"got shape {arrays[place].shape} ({op.signature})"
    with refused(ValueError, message):
        op.implementation(role)(*arrays, **statics(op))


@each_role
@pytest.mark.parametrize("size", [1, 4])
def test_a_wrong_size_names_the_argument_and_a_core_axis_of_size_1_is_not_broadcast(op, role, size):
    arrays = ordinary(op)
    shared = (  # core axes shared with an earlier argument
        (i, axis, dim)
        for i, dims in enumerate(op.input_dims[1:], 1)
        for axis, dim in enumerate(dims)
        if any(dim in earlier for earlier in op.input_dims[:i])
    )
    position, axis, dim = next(shared, (-1, 0, ""))
    if not dim:
        apart = (
            "short_convolution",
            "causal_conv1d",
            "hippo_project_legs",
            "hippo_reconstruct",
            "hope_",
        )
        # taps and signal, states and times may have any length
        assert op.name.startswith(apart) or len(op.inputs) == 1
        return
    shape = list(arrays[position].shape)
    before, shape[axis] = shape[axis], size
    arrays[position] = np.ones(shape, arrays[position].dtype)
    message = f"{op}: `{list(op.inputs)[position]}` has {dim}={size}, but earlier arguments have "
    with refused(ValueError, f"{message}{dim}={before} ({op.signature})"):
        op.implementation(role)(*arrays, **statics(op))


@each_role
def test_leading_axes_that_do_not_broadcast_are_listed_with_the_first_misfit(op, role):
    if len(op.inputs) < 2:
        return
    arrays = [np.ones((i + 2, *a.shape), a.dtype) for i, a in enumerate(ordinary(op))]
    listed = ", ".join(f"`{name}` ({i + 2},)" for i, name in enumerate(op.inputs))
    misfit = f"`{list(op.inputs)[1]}` does not fit those before it"
    with refused(ValueError, f"{op}: leading axes do not broadcast: {listed}; {misfit}"):
        op.implementation(role)(*arrays, **statics(op))


@pytest.mark.parametrize("dtype", ["U1", "float16", "O", "M8[s]"])
@pytest.mark.parametrize("op", WITH_ARGUMENTS, ids=str)
def test_another_type_is_refused_by_name(op, dtype):
    arrays, name = ordinary(op), list(op.inputs)[-1]
    arrays[-1] = np.zeros(arrays[-1].shape, dtype)
    wanted = "wanted one of " + ", ".join(np.dtype(t).name for t in types_of(op))
    if name in op.discrete:
        wanted = "wanted true or false, or integers, where 0 means false"
    if name in op.offsets:
        wanted = "wanted integers"
    with refused(TypeError, f"{op}: `{name}` has dtype {np.dtype(dtype)}, {wanted}"):
        op.implementation("reference")(*arrays, **statics(op))


@pytest.mark.parametrize("op", MIRRORED, ids=str)
def test_the_mirrors_refuse_longdouble_as_they_were_not_compiled_for_it(op):
    wanted = ", ".join(np.dtype(t).name for t in COMPILED_TYPES)
    arrays, name = ordinary(op, np.longdouble), next(iter(op.inputs))
    message = f"{op}: `{name}` has dtype {np.dtype(np.longdouble)}, wanted one of {wanted}"
    with refused(TypeError, message):
        op.implementation("jit")(*arrays, **statics(op))


def test_a_ragged_list_is_no_array():
    with pytest.raises(
        ValueError, match=r"^linear_scan: `b` is not an array: setting an array elem"
    ):
        linear_scan([[1.0]], [[1.0], [1.0, 2.0]])


@each_role
def test_a_cotangent_of_another_shape_than_the_output_is_refused(op, role):
    shape, *others = op.output_shapes(*ordinary(op), **statics(op))
    output, rest = op.outputs[0], [np.ones(other) for other in others]
    message = f"{op}_vjp: `d{output}` has shape {(2, *shape)}, but `{output}` has {shape} "
    with refused(ValueError, f"{message}({op.signature})"):
        op.vjp(role)(np.ones((2, *shape)), *rest, *ordinary(op), **statics(op))


def test_a_cotangent_has_the_broadcast_shape_and_is_not_broadcast_itself():
    message = "linear_scan_vjp: `dx` has shape (3, 1), but `x` has (2, 3, 1) "
    with refused(ValueError, f"{message}({LINEAR_SCAN.signature})"):
        linear_scan_vjp(np.ones((3, 1)), np.ones((2, 3, 1)), np.ones((3, 1)))


def test_the_arguments_and_cotangents_of_a_vjp_are_checked_by_name():
    with pytest.raises(TypeError, match=r"`dx` has dtype <U1"):
        linear_scan_vjp([["x"]], [[1.0]], [[1.0]])
    with pytest.raises(TypeError, match=r"^linear_scan_vjp: missing a required argument: 'b'"):
        linear_scan_vjp([[1.0]], [[1.0]])  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("numbers", [[[1], [2]], [[True], [False]], np.array([[1], [2]], "u1")])
def test_lists_integers_and_booleans_become_float64(numbers):
    assert linear_scan(numbers, numbers).dtype == np.float64


def test_arguments_may_be_keywords():
    assert linear_scan(b=[[3.0]], a=[[2.0]]).item() == 3.0


def test_an_output_only_dimension_is_a_keyword():
    assert VANDERMONDE.static == ("l",)
    assert LINEAR_SCAN.static == ()
    assert CHECKED([1.0, 1.0], [2.0, 3.0], l=np.int64(3)).tolist() == [2.0, 5.0, 13.0]
    assert CHECKED([1.0], [2.0], l=0).shape == (0,)


@pytest.mark.parametrize("l", [-1, True, 2.0, "2", None])
def test_a_bad_length_is_refused(l):
    with refused(ValueError, f"vandermonde: `l` must be an integer >= 0, got {l!r}"):
        CHECKED([1.0], [2.0], l=l)


def test_a_missing_length_is_named_with_the_call():
    with refused(TypeError, f"vandermonde: missing a required argument: 'l' ({VANDERMONDE.call})"):
        CHECKED([1.0], [2.0])  # pyright: ignore[reportCallIssue]
    with refused(ValueError, "vandermonde: `l` must be an integer >= 0, got None"):
        VANDERMONDE.sizes(np.ones(1), np.ones(1))


def test_a_vjp_with_two_outputs_takes_two_cotangents_first():
    checked = TWO_SUMS.checked_vjp(lambda dplus, dminus, u: ((dplus - dminus)[..., None] + 0 * u,))
    (du,) = checked([3.0], [1.0], [[1.0, 2.0]])
    assert du.tolist() == [[2.0, 2.0]]
    with refused(
        ValueError, "<lambda>: `dminus` has shape (2,), but `minus` has (1,) ((n)->(),())"
    ):
        checked([3.0], [1.0, 1.0], [[1.0, 2.0]])


@pytest.mark.parametrize("op", OPERATORS, ids=str)
def test_checked_functions_keep_name_and_docstring_and_unwrap_to_the_formula(op):
    functions = [(op.implementation("reference"), f"{op}", op.reference)]
    functions += [(op.vjp(), f"{op}_vjp", op.bare_vjp)] if op.differentiable else []
    for public, name, bare in functions:
        assert (public.__name__, public.__doc__) == (name, public.__wrapped__.__doc__)
        assert public.__wrapped__ is bare
