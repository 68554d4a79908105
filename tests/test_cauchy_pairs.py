"""Cauchy kernels of conjugate pairs: S4's sums over stored halves, at any node."""

import numpy as np
import pytest
from test_cauchy import case

import refssm.jit.cauchy as jit
from refssm import cauchy
from refssm._numerics.pairs import folded, paired
from refssm.cauchy import CAUCHY_KERNEL, CAUCHY_KERNEL_PAIRS, cauchy_kernel, cauchy_kernel_pairs
from refssm.conformance.cases.case import Case, Knob
from refssm.conformance.judging.certificate import adjoint_slip
from refssm.conformance.judging.grading import judge
from refssm.conformance.standard import C as ALLOWED

OP = CAUCHY_KERNEL_PAIRS
roles = pytest.mark.parametrize("role", [cauchy, jit], ids=["reference", "jit"])
each_type = pytest.mark.parametrize("dtype", ["complex64", "complex128"])


@roles
@each_type
def test_it_is_the_sum_over_both_poles_of_every_pair(role, dtype):
    v, w, z = case(dtype, shapes=((3, 5), (5,), (70,)))
    whole = cauchy_kernel(paired(v), paired(w), z)
    assert judge(OP, lambda *_: whole, v, w, z).ok
    assert judge(OP, role.cauchy_kernel_pairs, v, w, z).grade == "A"


@roles
def test_a_harmonic_oscillator_by_hand(role):
    # 1/(s² + 1) = −½i/(s − i) + ½i/(s + i)
    v, w, s = np.array([-0.5j]), np.array([1j]), np.array([1.0, 2.0, 3.0, 2j]) + 0j
    assert judge(OP, lambda *_: 1 / (s * s + 1), v, w, s).ok
    assert judge(OP, role.cauchy_kernel_pairs, v, w, s).grade == "A"


def test_it_is_twice_the_real_part_at_real_nodes_only():
    v, w, z = case("complex128")
    for nodes, same in ((z.real + 0j, True), (z, False)):
        half = 2 * cauchy_kernel(v, w, nodes).real + 0j
        assert judge(OP, lambda *_, half=half: half, v, w, nodes).ok == same


def test_conjugate_nodes_have_conjugate_sums():
    v, w, z = case("complex128")
    assert judge(OP, lambda *_: cauchy_kernel_pairs(v, w, z).conj(), v, w, z.conj()).ok


@roles
def test_a_pole_on_the_real_axis_counts_twice_with_the_real_part_of_its_residue(role):
    v, w, z = np.array([1 + 2j]), np.array([-3 + 0j]), np.array([1.0, 1j])
    alone = 2 / (z + 3)
    assert judge(OP, lambda *_: alone, v, w, z).ok
    assert judge(OP, role.cauchy_kernel_pairs, v, w, z).ok


def cauchy_conj(v, w, z):
    """S4's formula."""
    v, w, z = v[..., None, :], w[..., None, :], z[..., :, None]
    numerator = z * v.real - (v.real * w.real + v.imag * w.imag)
    return 2 * (numerator / ((z - w) * (z - w.conj()))).sum(-1)


def test_s4s_cauchy_conj_is_right_on_the_imaginary_axis_and_not_beside_a_real_pole():
    v, w, z = case("complex64")
    assert judge(OP, cauchy_conj, v, w, (1j * z.imag).astype(z.dtype)).ok
    assert not judge(CAUCHY_KERNEL, cauchy_conj, v, w, z).ok
    w = w.real.astype(w.dtype)
    beside = w * w.dtype.type(1 - 1e-5)
    assert not judge(OP, cauchy_conj, v, w, beside).ok
    assert judge(OP, cauchy_kernel_pairs, v, w, beside).ok


@roles
def test_the_gradients_are_the_oracles_also_where_residues_are_real(role):
    for real in (False, True):
        knobs = {"v": Knob("normal", "each", real)}
        knobs |= {name: Knob("near", "each", False) for name in "wz"}
        sizes = {"l": 9, "n": 3}
        drawn = Case(OP, np.dtype("complex128"), sizes, {"d": 2}, knobs, 1)
        assert adjoint_slip(OP, role.cauchy_kernel_pairs_vjp, drawn) <= ALLOWED


@roles
def test_the_types_are_those_of_the_arguments(role):
    for dtype in ("float32", "float64", "complex64", "complex128"):
        arrays = [np.array([x], dtype) for x in (1, -2, 3)]
        k = role.cauchy_kernel_pairs(*arrays)
        assert k.dtype == np.dtype(dtype)
        assert judge(OP, lambda *_, k=k: k, *arrays).ok
        for g in role.cauchy_kernel_pairs_vjp(k, *arrays):
            assert g.dtype == np.dtype(dtype)


@roles
def test_a_node_at_either_pole_of_a_pair_is_not_finite(role):
    w = np.array([-1 + 2j])
    for z in (w, w.conj()):
        assert not np.isfinite(role.cauchy_kernel_pairs(np.ones(1), w, z)).any()


def test_a_gradient_is_folded_along_the_axis_of_its_halves():
    x = np.arange(12).reshape(4, 3) * (1 + 1j)
    assert np.array_equal(folded(x, -2), x[:2] + x[2:].conj())
    assert np.array_equal(folded(x.T), x.T[:, :2] + x.T[:, 2:].conj())
    assert np.array_equal(paired(x, -2)[4:], x.conj())
