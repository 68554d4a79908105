from itertools import product

import numpy as np
import pytest

import refssm.jit.vandermonde as jit
from refssm.conformance.cases.case import Case, Knob
from refssm.conformance.judging.certificate import adjoint_slip
from refssm.conformance.judging.grading import judge
from refssm.conformance.judging.verdict import kind_of
from refssm.conformance.standard import C
from refssm.domains import exponents, residues
from refssm.vandermonde import (
    VANDERMONDE_KERNEL,
    VANDERMONDE_KERNEL_REAL,
    vandermonde_kernel,
    vandermonde_kernel_real,
    vandermonde_kernel_real_vjp,
    vandermonde_kernel_vjp,
)

TYPES = ("float32", "float64", "complex64", "complex128")
ROLES = ["reference", "jit"]
KERNELS = [vandermonde_kernel, jit.vandermonde_kernel]
REAL = [vandermonde_kernel_real, jit.vandermonde_kernel_real]
VJPS = [vandermonde_kernel_vjp, jit.vandermonde_kernel_vjp]
REAL_VJPS = [vandermonde_kernel_real_vjp, jit.vandermonde_kernel_real_vjp]
roles = pytest.mark.parametrize("kernel", KERNELS, ids=ROLES)
roles_real = pytest.mark.parametrize("kernel", REAL, ids=ROLES)
roles_vjp = pytest.mark.parametrize("vjp", VJPS, ids=ROLES)
roles_real_vjp = pytest.mark.parametrize("vjp", REAL_VJPS, ids=ROLES)
both_roles = pytest.mark.parametrize("role", [0, 1], ids=ROLES)
FORMS = {VANDERMONDE_KERNEL: KERNELS, VANDERMONDE_KERNEL_REAL: REAL}
FOUR = [(op, kernel) for op, kernels in FORMS.items() for kernel in kernels]
forms = pytest.mark.parametrize(
    ("op", "kernel"), FOUR, ids=[f"{op}-{role}" for op in FORMS for role in ROLES]
)


def right(op, value, v, x):
    """True if the judge accepts `value` as the output of `op`."""
    v, x = np.asarray(v), np.asarray(x)
    return judge(op, lambda *_, **__: value, v, x, l=value.shape[-1]).ok


def case(dtype, shapes=((5,), (5,)), maps=("normal", "turning")):
    """Coefficients and exponents from their domains."""
    arrays, real = [], np.dtype(dtype).kind == "f"
    for seed, (domain, name, shape) in enumerate(
        zip((residues, exponents), maps, shapes, strict=True)
    ):
        a, b = np.random.default_rng(seed).random((2, *shape))
        arrays.append(domain.draw(name, a, b, real).astype(dtype))
    return arrays


@roles
def test_the_example_of_the_docstring(kernel):
    k = kernel([1.0, 3.0], [0.0, -np.log(2)], l=4)
    by_hand = np.array([4.0, 2.5, 1.75, 1.375])
    for value in (k, by_hand):
        assert right(VANDERMONDE_KERNEL, value, [1.0, 3.0], [0.0, -np.log(2)])


@roles_real
def test_the_example_of_the_docstring_of_the_real_form(kernel):
    for value in (kernel([0.5], [0.5j * np.pi], l=4), np.array([1.0, 0.0, -1.0, 0.0])):
        assert right(VANDERMONDE_KERNEL_REAL, value, [0.5], [0.5j * np.pi])


@roles
@pytest.mark.parametrize("dtype", TYPES)
def test_a_pole_of_one_gives_a_constant(kernel, dtype):
    k = kernel(np.array([2, -5, 7], dtype), np.zeros(3, dtype), l=9)
    assert np.array_equal(k, np.full(9, 4))


@roles
def test_a_single_mode_is_a_geometric_sequence(kernel):
    j = np.arange(40)
    for x, ratio in ((-np.log(2), 0.5), (np.log(2), 2.0), (-3 * np.log(2), 0.125)):
        for value in (kernel([3.0], [x], l=40), 3 * ratio**j):
            assert right(VANDERMONDE_KERNEL, value, [3.0], [x])


@roles
def test_half_a_turn_per_step_alternates(kernel):
    signs = np.where(np.arange(9) % 2, -1, 1).astype(complex)
    for value in (kernel([1.0], [1j * np.pi], l=9), signs):
        assert right(VANDERMONDE_KERNEL, value, [1.0], [1j * np.pi])


@forms
@pytest.mark.parametrize("dtype", TYPES)
def test_the_first_entry_is_the_sum_of_the_coefficients(op, kernel, dtype):
    (_, x), v = case(dtype), np.array([1, 2, -4, 8, 16], dtype)
    first = kernel(v, x, l=6)[0]
    assert first == (46 if op is VANDERMONDE_KERNEL_REAL else 23)


@roles_real
def test_one_complex_mode_is_a_damped_cosine(kernel):
    rate, turn, phase = 0.03, 0.7, 0.4
    j = np.arange(50)
    v, x = np.array([0.5 * np.exp(1j * phase)]), np.array([-rate + 1j * turn])
    for value in (kernel(v, x, l=50), np.exp(-rate * j) * np.cos(turn * j + phase)):
        assert right(VANDERMONDE_KERNEL_REAL, value, v, x)


@both_roles
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_conjugate_pair_is_one_mode_of_the_real_form(role, dtype):
    v, x = case(dtype)
    pairs = np.append(v, v.conj()), np.append(x, x.conj())
    whole, half = KERNELS[role](*pairs, l=20), REAL[role](v, x, l=20)
    assert right(VANDERMONDE_KERNEL, half.astype(dtype), *pairs)
    assert right(VANDERMONDE_KERNEL_REAL, np.ascontiguousarray(whole.real), v, x)


@both_roles
def test_a_mode_on_the_real_axis_has_half_its_coefficient_in_the_real_form(role):
    v, x = np.array([3.0, 1 + 2j, 1 - 2j]), np.array([-0.25, -0.5 + 1j, -0.5 - 1j])
    stored = np.array([1.5, 1 + 2j]), x[:2]
    half = REAL[role](*stored, l=12)
    assert right(VANDERMONDE_KERNEL, half.astype(complex), v, x)
    whole = KERNELS[role](v, x, l=12)
    assert right(VANDERMONDE_KERNEL_REAL, np.ascontiguousarray(whole.real), *stored)


@pytest.mark.parametrize("types", list(product(TYPES, repeat=2)), ids="-".join)
@both_roles
def test_types_follow_the_arguments_and_the_real_form_is_real(role, types):
    v, x = (np.full(2, number, t) for number, t in zip((1, -1), types, strict=True))
    common = np.result_type(v, x)
    k, real = KERNELS[role](v, x, l=3), REAL[role](v, x, l=3)
    assert k.dtype == common
    assert real.dtype == np.finfo(common).dtype
    for dk, vjp in ((k, VJPS[role]), (real, REAL_VJPS[role])):
        gradients = vjp(dk, v, x, l=3)
        assert [g.dtype.kind for g in gradients] == [v.dtype.kind, x.dtype.kind]
        assert {np.finfo(g.dtype).dtype for g in gradients} == {np.finfo(common).dtype}


def test_long_double_keeps_its_digits_in_the_references():
    eps = np.finfo(np.longdouble).eps
    v = np.ones(1, np.longdouble) + eps
    for kernel, vjp, factor in zip(
        (KERNELS[0], REAL[0]), (VJPS[0], REAL_VJPS[0]), (1, 2), strict=True
    ):
        k = kernel(v, [0.0], l=2)
        assert k.dtype == np.longdouble
        assert (k / factor - 1).tolist() == [eps, eps]
        assert all(g.dtype == np.longdouble for g in vjp(k, v, v, l=2))


@pytest.mark.parametrize("kernel", [KERNELS[1], REAL[1]])
def test_the_mirrors_refuse_long_double(kernel):
    with pytest.raises(TypeError, match=r"^vandermonde_kernel(_real)?: `v` has dtype"):
        kernel(np.ones(1, np.longdouble), [0.0], l=2)


@forms
def test_no_steps_one_step_and_no_modes(op, kernel):
    assert kernel([1.0], [-1.0], l=0).shape == (0,)
    assert kernel(np.ones((2, 1)), [-1.0], l=0).shape == (2, 0)
    assert kernel([1.0, 2.0], [-1.0, np.log(2)], l=1).tolist() == [
        3 if "real" not in op.name else 6
    ]
    assert kernel([], [], l=3).tolist() == [0, 0, 0]
    assert kernel([1.0], [0.0], l=np.int64(3)).shape == (3,)


@forms
@pytest.mark.parametrize("length", [-1, 2.0, True, None, "3", np.float64(3)], ids=repr)
def test_what_is_no_length_is_told(op, kernel, length):
    with pytest.raises(ValueError, match=f"^{op}: `l` must be an integer >= 0, got "):
        kernel([1.0], [0.0], l=length)


@forms
def test_the_length_is_a_keyword_and_must_be_given(op, kernel):
    with pytest.raises(TypeError, match=f"^{op}: missing a required argument: 'l'"):
        kernel([1.0], [0.0])
    with pytest.raises(TypeError, match=f"^{op}: too many positional arguments"):
        kernel([1.0], [0.0], 3)
    with pytest.raises(ValueError, match=f"^{op}: `x` has n=2, but earlier arguments have n=1"):
        kernel([1.0], [0.0, 0.0], l=3)


@forms
@pytest.mark.parametrize("dtype", TYPES)
def test_nan_in_one_mode_reaches_every_step_of_its_member(op, kernel, dtype):
    for argument in (0, 1):
        arrays = case(dtype, ((2, 3), (2, 3)))
        arrays[argument][0, 1] = np.nan
        assert kind_of(kernel(*arrays, l=4)).tolist() == [[2] * 4, [0] * 4]


@forms
def test_what_grows_beyond_the_largest_number_is_infinite_and_what_fades_is_zero(op, kernel):
    wanted = [0] * 710 + [1] * 90
    k = kernel([[1.0], [-1.0]], [1.0], l=800)
    assert kind_of(k).tolist() == [wanted, wanted]
    assert np.sign(k[:, -1]).tolist() == [1, -1]
    first = 3 if op is VANDERMONDE_KERNEL else 6
    assert kernel([3.0], [-800.0], l=3).tolist() == [first, 0, 0]


@roles_vjp
def test_the_gradient_by_hand(vjp):
    dv, dx = vjp([3.0, 5.0, 7.0], [2.0], [0.0], l=3)
    assert (dv.tolist(), dx.tolist()) == ([15], [2 * (0 * 3 + 1 * 5 + 2 * 7)])
    dv, dx = vjp([3.0, 5j, 7.0], [1 + 2j], [0j], l=3)
    assert (dv.tolist(), dx.tolist()) == ([10 + 5j], [(1 - 2j) * (14 + 5j)])
    dv, dx = vjp([3.0, 5j, 7.0], [1 + 2j], [0.0], l=3)
    assert (dv.tolist(), dx.tolist()) == ([10 + 5j], [((1 - 2j) * (14 + 5j)).real])


@roles_real_vjp
def test_the_gradient_of_the_real_form_by_hand(vjp):
    dv, dx = vjp([3.0, 5.0, 7.0], [1 + 2j], [0j], l=3)
    assert (dv.tolist(), dx.tolist()) == ([30], [(1 - 2j) * 38])
    dv, dx = vjp([3.0, 5.0, 7.0], [2.0], [0.0], l=3)
    assert (dv.tolist(), dx.tolist()) == ([30], [2 * 38])


@pytest.mark.parametrize("real", [(), ("v",), ("x",)], ids=str)
@both_roles
def test_the_gradients_are_the_oracles_also_where_one_argument_is_real(role, real):
    maps = {"v": "normal", "x": "turning"}
    knobs = {name: Knob(plain, "each", name in real) for name, plain in maps.items()}
    example = Case(VANDERMONDE_KERNEL, np.dtype(complex), {"l": 9, "n": 3}, {"d": 2}, knobs, 1)
    assert adjoint_slip(VANDERMONDE_KERNEL, VJPS[role], example) <= C
    assert adjoint_slip(VANDERMONDE_KERNEL_REAL, REAL_VJPS[role], example) <= C


@pytest.mark.parametrize("role", [0, 1], ids=ROLES)
def test_the_gradient_of_a_real_mode_that_grows_beyond_the_largest_number_is_infinite(role):
    for vjp in (VJPS[role], REAL_VJPS[role]):
        gradients = vjp(np.ones(800), [1.0], [1.0], l=800)
        assert [kind_of(g).tolist() for g in gradients] == [[1], [1]]


@forms
@pytest.mark.parametrize("dtype", TYPES)
def test_every_length_begins_with_the_same_entries_call_after_call(op, kernel, dtype):
    v, x = case(dtype)
    first, longer, again = (kernel(v, x, l=l) for l in (37, 74, 37))
    assert np.array_equal(first, again)
    assert right(op, longer[:37], v, x)


@forms
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name", ["creeping", "growing", "alternating"])
def test_a_long_kernel_does_not_drift(op, kernel, name, dtype):
    v, x = case(dtype, ((3,), (3,)), ("normal", name))
    assert judge(op, kernel, v, x, l=4096).grade == "A"


SHAPES = [((5,), (5,)), ((2, 5), (5,)), ((5,), (3, 1, 5)), ((2, 1, 5), (3, 5))]


@forms
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_leading_axes_broadcast(op, kernel, shapes, dtype):
    v, x = case(dtype, shapes)
    batch = np.broadcast_shapes(*(shape[:-1] for shape in shapes))
    assert kernel(v, x, l=7).shape == (*batch, 7)
    assert judge(op, kernel, v, x, l=7).grade == "A"


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@both_roles
def test_gradients_have_the_shapes_of_their_arguments(role, shapes):
    v, x = case("complex128", shapes)
    for kernel, vjp in ((KERNELS[role], VJPS[role]), (REAL[role], REAL_VJPS[role])):
        gradients = vjp(kernel(v, x, l=7), v, x, l=7)
        assert [g.shape for g in gradients] == list(shapes)


@forms
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", exponents.maps)
def test_every_map_of_exponents_is_judged_right(op, kernel, name, dtype):
    assert judge(op, kernel, *case(dtype, maps=("magnitudes", name)), l=33).ok


@forms
@pytest.mark.parametrize("size", [1e-300, 1e300], ids=str)
def test_coefficients_of_any_size_keep_their_digits(op, kernel, size):
    v, x = case("complex128")
    assert judge(op, kernel, v * size, x, l=9).grade == "A"
