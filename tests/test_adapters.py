"""Adapters: parametrisations judged with a candidate; each adapted operator is certified."""

import numpy as np
import pytest

import refssm
from refssm._adapted import MODES, adapted, adapters_of
from refssm._parametrisations import MAPS
from refssm.adapters import PAIRS, Adapter, halves, log_dt, neg_exp, neg_softplus
from refssm.catalog import OPERATORS
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.cases.ranges import narrowed, parse
from refssm.conformance.judging.certificate import certify
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import judge
from refssm.presets.catalog import presets_of
from refssm.testing import check, implements

ONE = [("log_dt", "dt"), *((name, key) for name in ("neg_exp", "neg_softplus") for key in "wA")]
FITTING = [
    (op, Adapter(*one))
    for op in OPERATORS
    for one in ONE
    if ("n", "n") not in op.input_dims and one[1] in op.inputs
]
PAIRED = [
    op
    for op in OPERATORS
    if any(MODES in dims for dims in op.input_dims)
    and not any(MODES in dims for dims in op.output_dims)
    and op.family in ("diagonal", "vandermonde", "dplr", "cauchy")
]
FITTING += [(op, halves()) for op in PAIRED]
KERNEL = next(op for op in OPERATORS if op.name == "diagonal_kernel_zoh_real")
OWN = {"adapters": (log_dt(), neg_exp("w")), "kinds": "complex", "dtypes": ("complex64",)}


def kernel(w, B, C, dt, l):
    """2 Re Σ_n C_n (e^z − 1)/w_n B_n e^{z k}."""
    z = dt[..., None] * w
    D = C * B * np.expm1(z) / w
    return 2 * (D[..., None] * np.exp(z[..., None] * np.arange(l, dtype=z.real.dtype))).sum(-2).real


def of_logarithms(w, B, C, dt, *, l):
    return kernel(-np.exp(w.real) + 1j * w.imag, B, C, np.exp(dt), l)


@pytest.mark.long
@pytest.mark.parametrize(("op", "adapter"), FITTING, ids=[f"{o}-{a}" for o, a in FITTING])
def test_every_adapted_operator_is_that_of_the_oracle_with_its_gradient(op, adapter):
    assert certify(adapted(op, (adapter,))) == ""


@pytest.mark.parametrize("adapter", [log_dt(), neg_exp("w"), neg_softplus("w"), halves()], ids=str)
def test_an_adapted_kernel_is_that_of_the_oracle_with_its_gradient(adapter):
    op = KERNEL if adapter.name != PAIRS else next(o for o in OPERATORS if o.name == "dplr_kernel")
    assert certify(adapted(op, (adapter,))) == ""


@pytest.mark.parametrize("name", MAPS)
def test_a_wrong_parametrisation_is_no_certificate(name, monkeypatch):
    """The certificate sees a map, a slope and an oracle that are off by a factor."""
    op = adapted(KERNEL, (Adapter(name, "dt" if name == "log_dt" else "w"),))
    right = MAPS[name]
    monkeypatch.setitem(MAPS, name, right._replace(slope=lambda *x: 2 * right.slope(*x)))
    assert "VJP disagrees" in certify(op)
    monkeypatch.setitem(MAPS, name, right._replace(forward=lambda x: 2 * right.forward(x)))
    assert "disagrees with its oracle" in certify(op)


@pytest.mark.parametrize("name", MAPS)
def test_the_inverse_of_each_map_is_its_inverse(name):
    theta = np.linspace(-6, 4, 41) + (0 if name == "log_dt" else 2j)
    found = MAPS[name].inverse(MAPS[name].forward(theta))
    assert np.abs(found - theta).max() < 40 * np.finfo(float).eps * np.abs(theta).max()


def test_halves_are_the_pairs_of_the_operator_for_pairs():
    op, case = (
        adapted(refssm.catalog.named("diagonal_kernel_zoh"), (halves(),)),
        ordinary_case(KERNEL, "complex128"),
    )
    verdict = judge(KERNEL, lambda *x, **how: op.reference(*x, **how), *case.arrays, l=5)
    assert verdict.grade == "A"


def test_adapters_compose_and_are_told():
    op = adapted(KERNEL, (log_dt(), neg_exp("w")))
    assert list(map(str, adapters_of(op))) == ["log_dt(dt)", "neg_exp(w)"]
    assert adapters_of(KERNEL) == ()
    assert [p.name for p in presets_of(op)] == [p.name for p in presets_of(KERNEL)]
    case = ordinary_case(op, "complex64")
    natural = op.base.given(op.given(case.arrays))
    assert np.allclose(natural[0].real, -np.exp(case.arrays[0].real))
    assert np.array_equal(natural[3], np.exp(case.arrays[3]))


def test_bounds_of_an_adapted_kernel_follow_the_rounding_of_the_map():
    """With w = 30i the rounding of dt = e^θ moves the phase: K0 has room for it."""
    op = adapted(KERNEL, (log_dt(),))
    w, one = np.array([-1e-3 + 30j]), np.ones(1, complex)
    (plain,) = expect(KERNEL, [w, one, one, np.array(0.5)], {"l": 100})
    (moved,) = expect(op, [w, one, one, np.array(np.log(0.5))], {"l": 100})
    assert moved.k0[1] > 2 * plain.k0[1]
    assert moved.k0[99] > plain.k0[99]


def test_a_kernel_of_logarithms_passes_with_its_gradient():
    def vjp(dk, w, B, C, dt, *, l):
        natural = -np.exp(w.real) + 1j * w.imag, B, C, np.exp(dt)
        dw, dB, dC, ddt = refssm.diagonal_kernel_zoh_real_vjp(dk, *natural, l=l)
        return dw.real * natural[0].real + 1j * dw.imag, dB, dC, ddt * natural[3]

    check("diagonal_kernel_zoh_real", of_logarithms, vjp=vjp, profile="quick", **OWN)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda *x, l: of_logarithms(*x, l=l) / 2, "Re in place of 2 Re"),
        (lambda w, B, C, dt, *, l: of_logarithms(w, B, C, -dt, l=l), "grade F"),
        (lambda w, *x, l: of_logarithms(w.conj(), *x, l=l), "every entry is wrong"),
        (lambda w, B, C, dt, *, l: kernel(w, B, C, np.exp(dt), l), "grade F"),
    ],
    ids=["halved", "dt inverted", "conjugated", "map forgotten"],
)
def test_a_wrong_kernel_of_logarithms_is_refused_and_named(wrong, told):
    with pytest.raises(AssertionError, match=told):
        check("diagonal_kernel_zoh_real", wrong, profile="quick", checks=("value",), **OWN)


def test_a_gradient_by_dt_in_place_of_log_dt_is_refused():
    def vjp(dk, w, B, C, dt, *, l):
        return refssm.diagonal_kernel_zoh_real_vjp(dk, w, B, C, np.exp(dt), l=l)

    def forward(w, B, C, dt, *, l):
        return refssm.diagonal_kernel_zoh_real(w, B, C, np.exp(dt), l=l)

    how = {**OWN, "adapters": (log_dt(),), "profile": "quick", "checks": ("gradient",)}
    with pytest.raises(AssertionError, match="ddt"):
        check("diagonal_kernel_zoh_real", forward, vjp=vjp, **how)


@pytest.mark.parametrize(
    ("operator", "given", "told"),
    [
        ("linear_scan", log_dt(), "log_dt: linear_scan has no argument 'dt'; wanted one of a, b"),
        ("linear_scan", halves(), "halves: linear_scan returns states"),
        ("short_convolution", halves(), "halves: short_convolution has no axis n of modes"),
        ("linear_scan_packed", neg_exp("resets"), "is true or false"),
        ("krylov_kernel", neg_exp(), r"neg_exp\(A\): `A` of krylov_kernel is a matrix"),
        ("diagonal_kernel_zoh", log_dt, r"`adapters` must be functions of refssm.adapters, called"),
    ],
)
def test_an_adapter_that_does_not_fit_is_one_sentence(operator, given, told):
    with pytest.raises(ValueError, match=told):
        implements(operator, adapters=given)


def test_where_narrows_the_argument_that_an_adapter_replaces():
    where = parse(("dt=0.25..0.5", "abs(w)=20..40"), [KERNEL])
    op = adapted(narrowed(KERNEL, where), (log_dt(), neg_exp("w")))
    a, b = np.random.default_rng(0).random((2, 50))
    for real in (True, False):
        for name in op.inputs["w"].maps:
            w = MAPS["neg_exp"].forward(op.inputs["w"].draw(name, a, b, real))
            assert ((np.abs(w) > 19.99) & (np.abs(w) < 40.01)).all()
    for name in op.inputs["dt"].maps:
        dt = np.exp(op.inputs["dt"].draw(name, a, b, True))
        assert ((dt > 0.2499) & (dt < 0.5001)).all()
