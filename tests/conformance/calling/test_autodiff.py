"""Gradients of PyTorch and JAX in our convention: formulas by hand, and the judge's verdicts."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from frameworks import identical, judged

from refssm.command import code
from refssm.conformance.calling.adapters import adapter
from refssm.conformance.number_types import number_type

DOUBLE = number_type("complex128")
Z = np.array([0.5 + 1.25j, -1.5 + 0.25j, 2 - 0.75j])
DY = np.array([1 - 0.5j, 0.25 + 2j, -1.5 + 1j])
# f(xp, z), and g = ∂L/∂Re z + i ∂L/∂Im z for a loss with dy = ∂L/∂Re y + i ∂L/∂Im y
FUNCTIONS = {
    "square": (lambda xp, z: z * z, lambda dy: dy * np.conj(2 * Z)),
    "exp": (lambda xp, z: xp.exp(z), lambda dy: dy * np.conj(np.exp(Z))),
    "conj": (lambda xp, z: xp.conj(z), lambda dy: np.conj(dy)),
    "z conj(z)": (lambda xp, z: z * xp.conj(z), lambda dy: 2 * dy.real * Z),
    "abs": (lambda xp, z: xp.abs(z), lambda dy: dy * Z / np.abs(Z)),
    "real": (lambda xp, z: xp.real(z), lambda dy: dy + 0j),
    "imag": (lambda xp, z: xp.imag(z), lambda dy: 1j * dy),
}


class Framework:
    """An adapter, its array namespace, and gradients through it."""

    def __init__(self, name):
        module = pytest.importorskip(name)
        self.name, self.made = name, adapter(name)
        self.xp = module.numpy if name == "jax" else module
        self.constant = module.Tensor.detach if name == "torch" else module.lax.stop_gradient
        self.compiled = module.jit if name == "jax" else lambda function: function

    def pulled(self, function, cotangents, primals):
        """The gradients of a function of this framework, as NumPy arrays."""
        with self.made.inside(DOUBLE):
            given = [[self.made.give(a, DOUBLE) for a in some] for some in (cotangents, primals)]
            gradients = self.made.pullback(function, *given, {})
            return [self.made.take(g, DOUBLE) for g in gradients]


@pytest.fixture(params=["torch", "jax"])
def framework(request):
    return Framework(request.param)


def by_differences(function, dy, step=1e-6):
    """∂L/∂Re z + i ∂L/∂Im z of L = Re Σ conj(dy) f(z)."""

    def loss(z):
        return np.real(np.conj(dy) * function(np, z))

    along = [(loss(Z + d) - loss(Z - d)) / (2 * step) for d in (step, 1j * step)]
    return along[0] + 1j * along[1]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_autodiff_gives_what_the_formula_gives(framework, name):
    function, by_hand = FUNCTIONS[name]
    dy = DY if np.iscomplexobj(function(np, Z)) else DY.real
    (g,) = framework.pulled(lambda z: function(framework.xp, z), [dy], [Z])
    assert g.dtype == np.complex128
    assert np.allclose(g, by_hand(dy), rtol=1e-14)
    assert np.allclose(g, by_differences(function, dy), rtol=1e-8)
    if name not in ("real", "abs"):  # a test for another convention
        assert not np.allclose(g.conj(), by_hand(dy))


def test_jax_by_itself_has_the_conjugate_convention():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        _, pull = jax.vjp(lambda z: z * z, jax.numpy.asarray(Z))
        (g,) = pull(jax.numpy.asarray(DY))
        assert np.allclose(g, DY * 2 * Z)
        (g,) = pull(jax.numpy.asarray(DY.conj()))
    assert np.allclose(np.conj(g), FUNCTIONS["square"][1](DY))


def test_real_arguments_have_real_gradients_and_unused_ones_are_zero(framework):
    da, dz, unused = framework.pulled(lambda a, z, c: a * z, [DY], [Z.real, Z, Z.imag])
    assert (da.dtype, dz.dtype, unused.dtype) == (float, complex, float)
    assert np.allclose(da, np.real(DY * Z.conj()))
    assert np.allclose(dz, DY * Z.real)
    assert identical(unused, np.zeros(3))


@pytest.mark.parametrize("kind", [tuple, list])
def test_the_gradients_of_several_outputs_are_added(framework, kind):
    def function(a, z):
        return kind([a * z, a * framework.xp.abs(z)])

    da, dz = framework.pulled(function, [DY, DY.real], [Z.real, Z])
    assert np.allclose(da, np.real(DY * Z.conj()) + DY.real * np.abs(Z))
    assert np.allclose(dz, DY * Z.real + DY.real * Z.real * Z / np.abs(Z))


def test_a_complex_output_for_a_real_one_has_the_real_cotangent(framework):
    (g,) = framework.pulled(lambda a: a * a + 0j, [DY.real], [Z.real])
    assert identical(g, 2 * Z.real * DY.real)


class Discrete(NamedTuple):
    A_bar: Any
    B_bar: Any


def bilinear(w, B, dt):
    """Outputs from real and complex arguments; 2R − 1 = (1 + z)/(1 − z) does not cancel.

    Of dt R the two terms of the product rule cancel where Re z < −1; those of the quotient do not.
    """
    R = 1 / (1 - dt * w / 2)
    return 2 * R - 1, B / (1 / dt - w / 2)[..., None]


def by_the_product_rule(w, B, dt):
    """The same outputs; the gradient of dt loses log2|1 − dt w/2| bits."""
    R = 1 / (1 - dt * w / 2)
    return 2 * R - 1, (dt * R)[..., None] * B


def bilinear_judged(framework, function, check, dtype="complex64"):
    settings = {"dtype": dtype, "framework": framework.name, "vjp": True, "ftz": True}
    settings |= {"sizes": {"n": (1, 2), "m": (1, 1)}}  # JAX compiles once per shape
    return judged("discretize_diagonal_bilinear", framework.compiled(function), check, **settings)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_gradients_of_several_outputs_are_judged(framework, dtype):
    result = bilinear_judged(framework, bilinear, "gradient", dtype)
    assert (result.verdict, result.examples) == ("pass", 25)


def test_terms_of_the_product_rule_cancel_and_those_of_a_quotient_do_not(framework):
    w, B, dt = np.array([-512.0]), np.array([[3.0 + 0j]]), np.array([1 / 3])
    exact = B[0, 0] / (1 - np.longdouble(dt) * w / 2) ** 2  # of B̄; that of Ā has no cotangent
    lost = {}
    for function in (bilinear, by_the_product_rule):
        *_, ddt = framework.pulled(function, [np.zeros(1), np.ones_like(B)], [w, B, dt])
        lost[function] = float(abs(ddt - exact.real)[0] / abs(exact)[0] / 2.0**-53)
    assert lost[bilinear] < 4
    assert lost[by_the_product_rule] > 16


def test_outputs_may_be_a_named_tuple(framework):
    def named(w, B, dt):
        return Discrete(*bilinear(w, B, dt))

    result = bilinear_judged(framework, named, "gradient")
    assert (result.verdict, result.message) == ("pass", "")


@pytest.mark.parametrize("spoilt", [0, 1])
def test_a_wrong_gradient_of_one_output_of_two_is_caught(framework, spoilt):
    def half_constant(w, B, dt):
        outputs = [*bilinear(w, B, dt)]
        outputs[spoilt] = (outputs[spoilt] + framework.constant(outputs[spoilt])) / 2
        return tuple(outputs)

    assert bilinear_judged(framework, half_constant, "value").verdict == "pass"
    result = bilinear_judged(framework, half_constant, "gradient")
    assert result.verdict == "wrong"


BY_HAND = """
import XP as xp

def linear_scan(a, b):
    x, states = 0 * b[..., 0, :], []
    for k in range(b.shape[-2]):
        x = a[..., k, :] * x + b[..., k, :]
        states.append(x)
    return xp.stack(states, -2)

def linear_scan_vjp(dx, a, b):
    x, g, da, db = linear_scan(a, b), 0 * dx[..., 0, :], [], []
    for k in reversed(range(b.shape[-2])):
        g = dx[..., k, :] + g
        before = x[..., k - 1, :] if k else 0 * g
        da.append(g * before.conj())
        db.append(g)
        g = a[..., k, :].conj() * g
    pulled = [xp.flip(xp.stack(d, -2), (-2,)) for d in (da, db)]
    return tuple(d if c.dtype == d.dtype else d.real for d, c in zip(pulled, (a, b)))
"""


@pytest.mark.parametrize("conjugated", [True, False])
def test_a_gradient_by_hand_is_judged_in_our_convention(framework, tmp_path, capfd, conjugated):
    path = tmp_path / "my_ops.py"
    text = BY_HAND.replace("XP", framework.xp.__name__)
    path.write_text(text if conjugated else text.replace("k, :].conj()", "k, :]"), encoding="utf-8")
    asked = f"--framework {framework.name} --check gradient --dtype complex64 --ftz".split()
    asked += ["--where", "l=2..3", "--where", "n=1..1"]
    assert code(["verify", str(path), *asked]) == (not conjugated)
    out = capfd.readouterr().out
    assert ("PASS: linear_scan " if conjugated else "FAIL linear_scan/gradient[complex64]") in out


def test_a_gradient_that_nobody_gave_is_a_skip_that_says_how_to_give_one(framework):
    result = judged("linear_scan", lambda a, b: b, "gradient", framework=framework.name)
    assert result.verdict == "skipped"
    assert result.message == f"needs vjp=True (the gradient of {framework.name}) or linear_scan_vjp"
