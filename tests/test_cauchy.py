from itertools import product

import numpy as np
import pytest

import refssm.jit.cauchy as jit
from refssm.cauchy import CAUCHY_KERNEL, cauchy_kernel, cauchy_kernel_vjp
from refssm.conformance.judging.grading import judge
from refssm.conformance.judging.verdict import kind_of
from refssm.domains import nodes, poles, residues

TYPES = ("float32", "float64", "complex64", "complex128")
ROLES = ["reference", "jit"]
roles = pytest.mark.parametrize("kernel", [cauchy_kernel, jit.cauchy_kernel], ids=ROLES)
roles_vjp = pytest.mark.parametrize("vjp", [cauchy_kernel_vjp, jit.cauchy_kernel_vjp], ids=ROLES)


def drawn(domain, name, shape, dtype, seed=1):
    a, b = np.random.default_rng(seed).random((2, *shape))
    return domain.draw(name, a, b, real=np.dtype(dtype).kind == "f").astype(dtype)


def case(dtype, shapes=((5,), (5,), (7,)), maps=("normal", "near", "near")):
    """Residues, poles and nodes from their domains; real ones from the maps' real parts."""
    arguments = zip((residues, poles, nodes), maps, shapes, (1, 2, 3), strict=True)
    return [drawn(domain, name, shape, dtype, seed) for domain, name, shape, seed in arguments]


@roles
def test_the_example_of_the_docstring(kernel):
    k = kernel([1.0, 1.0], [-1.0, -3.0], [1.0, 0.0])
    assert k.tolist() == [0.75, 1 + 1 / 3]


@roles
def test_a_single_pole_is_a_hyperbola(kernel):
    z = np.array([0.0, 1.0, 3.0, 7.0])
    assert kernel([2.0], [-1.0], z).tolist() == [2, 1, 0.5, 0.25]
    assert kernel([2.0], [-1.0], 1j * z[1:2]).tolist() == [1 - 1j]


@roles
def test_partial_fractions_of_a_known_transfer_function(kernel):
    # (3 s + 5) / ((s + 1)(s + 3)) = 1/(s + 1) + 2/(s + 3)
    s = np.array([1.0, 3.0, 1j, 5 - 2j])
    quotient = (3 * s + 5) / ((s + 1) * (s + 3))
    v, w = np.array([1.0, 2.0]), np.array([-1.0, -3.0])
    assert judge(CAUCHY_KERNEL, lambda *_: quotient, v, w, s).ok
    assert judge(CAUCHY_KERNEL, kernel, v, w, s).ok


@roles
def test_the_transfer_function_of_a_harmonic_oscillator(kernel):
    # 1/(s² + 1) = (1/(s − i) − 1/(s + i)) / 2i
    s = np.array([1.0, 2.0, 3.0])
    k = kernel([-0.5j, 0.5j], [1j, -1j], s)
    exact = (1 / (s**2 + 1)).astype(complex)
    assert judge(CAUCHY_KERNEL, lambda *_: exact, *map(np.array, ([-0.5j, 0.5j], [1j, -1j], s))).ok
    assert not k.imag.any()


@roles
def test_a_conjugate_pair_gives_conjugate_values_at_conjugate_nodes(kernel):
    v, w, z = case("complex128")
    v, w = np.append(v, v.conj()), np.append(w, w.conj())
    k = kernel(v, w, np.append(z, z.conj()))
    assert judge(CAUCHY_KERNEL, lambda *_: k[z.size :].conj(), v, w, z).ok
    real_axis = np.array([0.5, 1.0, 4.0])
    real = kernel(v, w, real_axis).real.astype(complex)
    assert judge(CAUCHY_KERNEL, lambda *_: real, v, w, real_axis).ok


@roles
@pytest.mark.parametrize("dtype", TYPES)
def test_a_pole_hit_exactly_is_infinite_and_nan_where_the_residue_is_zero(kernel, dtype):
    w, z = np.array([-1, -2], dtype), np.array([-1, 1], dtype)
    for residue, kind in ((3, 1), (-3, 1), (0, 2)):
        k = kernel(np.array([residue, 1], dtype), w, z)
        assert kind_of(k).tolist() == [kind, 0]


@roles
def test_a_pole_hit_at_an_imaginary_residue_is_infinite(kernel):
    assert kind_of(kernel([2j], [-1 + 1j], [-1 + 1j])).tolist() == [1]


@roles
def test_nan_reaches_every_node_from_a_pole_and_one_node_from_a_node(kernel):
    for dtype in ("float64", "complex128"):
        v, w, z = (np.array([1, 2], dtype), np.array([-1, -2], dtype), np.array([1, 2], dtype))
        w[0], clean = np.nan, w.copy()
        assert kind_of(kernel(v, w, z)).tolist() == [2, 2]
        z[0], clean[0] = np.nan, -1
        assert kind_of(kernel(v, clean, z)).tolist() == [2, 0]


@roles
def test_no_modes_give_zero_and_no_nodes_give_nothing(kernel):
    assert kernel([], [], [1.0, 2.0]).tolist() == [0, 0]
    assert kernel([1.0], [-1.0], []).shape == (0,)


@pytest.mark.parametrize("types", list(product(TYPES, repeat=3)), ids="-".join)
def test_result_and_gradients_have_the_type_and_kind_of_the_arguments(types):
    v, w, z = (np.full(2, x, t) for x, t in zip((1, -1, 1), types, strict=True))
    for kernel, vjp in (
        (cauchy_kernel, cauchy_kernel_vjp),
        (jit.cauchy_kernel, jit.cauchy_kernel_vjp),
    ):
        k = kernel(v, w, z)
        assert k.dtype == np.result_type(v, w, z)
        gradients = vjp(k, v, w, z)
        assert [g.dtype.kind for g in gradients] == [x.dtype.kind for x in (v, w, z)]


def test_long_double_keeps_its_digits_in_the_reference():
    eps = np.finfo(np.longdouble).eps
    k = cauchy_kernel(np.ones(1, np.longdouble) + eps, [-1.0], [0.0])
    assert k.dtype == np.longdouble
    assert k[0] - 1 == eps
    assert all(g.dtype == np.longdouble for g in cauchy_kernel_vjp(k, k, k - 2, k))


SHAPES = [
    ((5,), (5,), (7,)),
    ((2, 5), (5,), (7,)),
    ((5,), (3, 5), (1, 7)),
    ((2, 1, 5), (3, 5), (7,)),
    ((5,), (5,), (4, 1, 7)),
]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@roles
def test_leading_axes_broadcast_in_both_roles(kernel, shapes, dtype):
    arrays = case(dtype, shapes)
    batch = np.broadcast_shapes(*(shape[:-1] for shape in shapes))
    assert kernel(*arrays).shape == (*batch, 7)
    assert judge(CAUCHY_KERNEL, kernel, *arrays).grade == "A"


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("maps", list(product(["magnitudes"], poles.maps, nodes.maps)), ids=str)
@roles
def test_both_roles_are_right_on_every_pair_of_maps(kernel, maps, dtype):
    assert judge(CAUCHY_KERNEL, kernel, *case(dtype, maps=maps)).ok


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@roles_vjp
def test_gradients_have_the_shapes_of_their_arguments(vjp, shapes):
    v, w, z = case("complex128", shapes)
    gradients = vjp(cauchy_kernel(v, w, z), v, w, z)
    assert [g.shape for g in gradients] == [x.shape for x in (v, w, z)]


@roles_vjp
def test_the_gradient_by_hand(vjp):
    # R = 1/(z − w) = (1 − i)/2, R² = −i/2
    dk, v, w, z = (np.array([x]) for x in (2 + 4j, 2j, -1 + 0j, 1j))
    dv, dw, dz = vjp(dk, v, w, z)
    assert dv.tolist() == [(2 + 4j) * (0.5 + 0.5j)]
    assert dw.tolist() == [(2 + 4j) * 1]
    assert dz.tolist() == [-(2 + 4j) * 1]


@roles_vjp
def test_the_gradient_of_real_arguments_is_real_and_so_is_its_cotangent(vjp):
    dk, v, w, z = np.array([4.0]), np.array([2.0]), np.array([-1.0]), np.array([1.0])
    assert [g.tolist() for g in vjp(dk, v, w, z)] == [[2.0], [2.0], [-2.0]]
    with pytest.raises(TypeError, match=r"`dk` is complex, but `k` is real \(float64\)"):
        vjp(dk + 3j, v, w, z)


@pytest.mark.parametrize("power", [-530, -500, -100, 0, 100, 500, 530])
@roles
def test_distances_whose_square_leaves_the_range_of_doubles_keep_their_digits(kernel, power):
    v, w, z = case("complex128")
    scale = 2.0**power
    k = kernel(v, w * scale, z * scale) * scale
    assert judge(CAUCHY_KERNEL, lambda *_: k, v, w, z).grade == "A"


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e30, 1e300], ids=str)
@roles
def test_residues_of_any_size_keep_their_digits(kernel, size):
    v, w, z = case("complex128")
    assert judge(CAUCHY_KERNEL, kernel, v * size, w, z).grade == "A"
