"""Adapters: parametrisations judged with a candidate; each adapted operator is certified."""

import numpy as np
import pytest

import refssm
from refssm._declaration.adapted import MODES, adapted, adapters_of, fits, through
from refssm._declaration.parametrisations import MAPS
from refssm.adapters import (
    PAIRS,
    Adapter,
    base_2,
    halves,
    linear_gate,
    log_dt,
    log_sigmoid,
    neg_exp,
    neg_softplus,
    normalised,
    oldest_first,
    scaled,
    sigmoid,
    transposed,
)
from refssm.catalog import OPERATORS
from refssm.conformance.calling.implementation import Found
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.cases.ranges import narrowed, parse
from refssm.conformance.gauges.contracts import gradient_programs, output_programs
from refssm.conformance.judging.certificate import certify
from refssm.conformance.judging.expected import _made_of, expect
from refssm.conformance.judging.grading import judge
from refssm.conformance.report.lines import header
from refssm.conformance.standard import Standard
from refssm.linear_attention.kimi import KIMI
from refssm.presets.catalog import presets_of
from refssm.testing import Declaration, check, implements

ONE = [("log_dt", "dt"), *((name, key) for name in ("neg_exp", "neg_softplus") for key in "wA")]
FITTING = [
    (op, Adapter(*one))
    for op in OPERATORS
    for one in ONE
    if one[1] in op.inputs and fits(op, Adapter(*one))
]
PAIRED = [
    op
    for op in OPERATORS
    if any(MODES in dims for dims in op.input_dims)
    and not any(MODES in dims for dims in op.output_dims)
    and op.family in ("diagonal", "vandermonde", "dplr", "cauchy")
]
FITTING += [(op, halves()) for op in PAIRED]
CONVENTIONS = [linear_gate(), base_2(), log_sigmoid(), sigmoid(), scaled(), normalised()]
CONVENTIONS += [scaled("q", by=0.375)]
CONVENTIONS += [oldest_first(), transposed(), transposed("S")]
OF_CONVENTIONS = [
    op
    for op in OPERATORS
    if op.name.startswith(("gated_delta", "causal_conv1d", "short_convolution", "ssd_recurrent"))
    or op.name in ("kimi_delta_rule_chunked", "gated_linear_recurrence", "mamba2_scan_stateful")
]
FITTING += [(op, one) for op in OF_CONVENTIONS for one in CONVENTIONS if fits(op, one)]
GATED = next(op for op in OPERATORS if op.name == "gated_delta_rule_stateful")
GATED_FROM_REST = next(op for op in OPERATORS if op.name == "gated_delta_rule")
STEP = next(op for op in OPERATORS if op.name == "gated_delta_step")
TAPS = next(op for op in OPERATORS if op.name == "causal_conv1d")
RATES = ("log_dt", "neg_exp", "neg_softplus")  # parameters of a kernel
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


@pytest.mark.parametrize("adapter", CONVENTIONS, ids=str)
def test_a_convention_is_that_of_the_oracle_with_its_gradient(adapter):
    op = TAPS if adapter.name == "oldest_first" else GATED if adapter.argument != "S" else STEP
    assert certify(adapted(op, (adapter,))) == ""


def test_conventions_compose():
    all_ = (scaled(), normalised("q"), normalised(), log_sigmoid(), sigmoid(), transposed())
    op = adapted(GATED, all_)
    assert certify(op) == ""
    assert op.signature == "(l,n),(l,n),(l,p),(l),(l),(p,n)->(l,p),(p,n)"
    q, k, v, log_g, beta, S = ordinary_case(op, "float64", (3, 4, 2)).arrays
    unit = [x / np.sqrt((x**2).sum(-1, keepdims=True) + 1e-6) for x in (q, k)]
    gates = -np.log1p(np.exp(-log_g)), 1 / (1 + np.exp(-beta))
    natural = unit[0] / np.sqrt(q.shape[-1]), unit[1], v, *gates, S.swapaxes(-1, -2)
    y, last = op.reference(q, k, v, log_g, beta, S)
    own, state = GATED.reference(*natural)
    assert np.allclose(y, own, rtol=1e-14)
    assert np.allclose(last, state.swapaxes(-1, -2), rtol=1e-14)


@pytest.mark.parametrize("name", MAPS)
def test_a_wrong_parametrisation_is_no_certificate(name, monkeypatch):
    """The certificate sees a map, a slope and an oracle that are off by a factor."""
    argument = {"log_dt": "dt", "sigmoid": "beta"}.get(name, "w" if name in RATES else "log_g")
    op = adapted(KERNEL if name in RATES else GATED_FROM_REST, (Adapter(name, argument),))
    right = MAPS[name]
    monkeypatch.setitem(MAPS, name, right._replace(slope=lambda *x: 2 * right.slope(*x)))
    assert "VJP disagrees" in certify(op)
    monkeypatch.setitem(MAPS, name, right._replace(forward=lambda x: 2 * right.forward(x)))
    assert "disagrees with its oracle" in certify(op)


@pytest.mark.parametrize("name", MAPS)
def test_the_inverse_of_each_map_is_its_inverse(name):
    theta = np.linspace(-6, 4, 41) + (2j if name.startswith("neg_") else 0)
    if name in ("linear_gate", "base_2"):  # of gates from 2^-14 to 1
        theta = np.linspace(0.001, 1, 41) if name == "linear_gate" else np.linspace(-10, 0, 41)
    found = MAPS[name].inverse(MAPS[name].forward(theta))
    assert np.abs(found - theta).max() < 40 * np.finfo(float).eps * np.abs(theta).max()


def test_a_gate_of_zero_is_never_drawn():
    op = adapted(KIMI.operators[0], [linear_gate()])
    domain = op.inputs["log_g"]
    assert domain.textures == ("each", "constant")  # gaps are zeros of the parameter
    a, b = np.random.default_rng(0).random((2, 50))
    assert min(domain.draw(name, a, b, True).min() for name in domain.maps) > 0


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
        ("linear_scan", base_2("a"), r"base_2\(a\): `a` of linear_scan may be complex"),
        ("gated_delta_step", scaled("beta"), r"`beta` of gated_delta_step is one number, no row"),
        ("gated_delta_rule", transposed("q"), r"`q` of gated_delta_rule is no state that it"),
        ("linear_scan", log_dt(), "log_dt: linear_scan has no argument 'dt'; wanted one of a, b"),
        ("linear_scan", halves(), "halves: linear_scan returns states"),
        ("krylov_kernel", halves(), "halves: `A` of krylov_kernel is a matrix, no list of modes"),
        ("short_convolution", halves(), "halves: short_convolution has no axis n of modes"),
        ("linear_scan_packed", neg_exp("resets"), "is true or false"),
        ("linoss_im", neg_exp("A"), r"neg_exp\(A\): `A` of linoss_im is at least 0"),
        ("krylov_kernel", neg_exp(), r"neg_exp\(A\): `A` of krylov_kernel is a matrix"),
        ("diagonal_kernel_zoh", log_dt, r"`adapters` must be functions of refssm.adapters, called"),
    ],
)
def test_an_adapter_that_does_not_fit_is_one_sentence(operator, given, told):
    with pytest.raises(ValueError, match=told):
        implements(operator, adapters=given)


@pytest.mark.parametrize("by", [0.0, 0.3])
def test_a_scale_is_of_complex_numbers_too(by):
    op = adapted(named("ssd_recurrent"), (scaled("C", by=by),))
    assert certify(op) == ""
    assert op.adapter.in_words("C", True) == ("C/0.3" if by else "√n C")
    assert f"{op.adapter}" == ("scaled(C, by=0.3)" if by else "scaled(C)")


def test_a_factor_is_a_finite_number():
    with pytest.raises(ValueError, match="scaled: `by` must be a finite number, got nan"):
        scaled(by=float("nan"))


def test_an_epsilon_of_a_norm_is_above_0():
    with pytest.raises(ValueError, match="normalised: `eps` must be a number above 0, got 0"):
        normalised(eps=0)


def test_parameters_with_domains_of_their_own_obey_where_too():
    """σ(θ) of any θ, unless `--where` limits β: then θ is drawn by the inverse."""
    usual = adapted(GATED, (sigmoid(),)).inputs["beta"]
    assert usual.summary.startswith("numbers before a logistic function")
    narrow = adapted(narrowed(GATED, parse(("beta=0.25..0.5",), [GATED])), (sigmoid(),))
    a, b = np.random.default_rng(0).random((2, 50))
    for name in narrow.inputs["beta"].maps:
        beta = 1 / (1 + np.exp(-narrow.inputs["beta"].draw(name, a, b, True)))
        assert ((beta > 0.2499) & (beta < 0.5001)).all()


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


def named(name):
    return next(op for op in OPERATORS if op.name == name)


def test_a_preset_of_an_adapted_kernel_is_the_same_system_in_its_parameters():
    op, sizes = adapted(KERNEL, (log_dt(), neg_exp("w"))), {"l": 8, "n": 4}
    for own, plain in zip(presets_of(op), presets_of(KERNEL), strict=True):
        theta = own.draw(np.random.default_rng(1), {**sizes, **own.sizes})
        wanted = plain.draw(np.random.default_rng(1), {**sizes, **own.sizes})
        for name, map_ in (("dt", MAPS["log_dt"]), ("w", MAPS["neg_exp"])):
            if name in wanted:
                assert np.allclose(map_.forward(np.asarray(theta[name])), wanted[name], rtol=1e-12)
                assert not np.allclose(theta[name], wanted[name])


@pytest.mark.parametrize("before", [(), (log_dt(), neg_exp("w"))])
def test_halves_of_a_preset_have_no_mode_twice(before):
    found = presets_of(adapted(named("dplr_kernel"), (*before, halves())))
    assert [preset.name for preset in found] == [
        preset.name for preset in presets_of(named("dplr_kernel_real"))
    ]
    for preset in found[::3]:
        drawn = preset.draw(np.random.default_rng(1), {"l": 8, **preset.sizes})
        assert (drawn["w"].imag > -1e-9).all()
        assert np.unique(drawn["w"]).size == preset.sizes["n"]


def test_what_is_kept_on_disk_for_an_adapted_kernel_is_not_that_of_the_kernel():
    arrays = ordinary_case(KERNEL, "complex64").arrays
    held = Standard.of(np.dtype("complex64"))
    made = {
        _made_of(op, arrays, {"l": 5}, None, held, "bounds")
        for op in (KERNEL, adapted(KERNEL, (log_dt(),)), adapted(KERNEL, (neg_exp("w"),)))
    }
    assert len(made) == 3


def test_the_second_gauge_of_an_adapted_scan_is_that_of_the_scan():
    scan = named("selective_scan")
    op = adapted(scan, (neg_exp("A"),))
    theta = ordinary_case(op, "float32").arrays
    theta[1], theta[2] = np.ones_like(theta[1]), np.full_like(theta[2], 1)  # A = −e; as rates, e^k
    natural = through(op, lambda *arrays: arrays)(*theta)
    for vjp in (False, True):
        ones = [np.ones((2, 2, 5))] * vjp
        own, plain = (
            expect(o, [*ones, *x], {}, o.bare_vjp if vjp else None)[0].cumulated
            for o, x in ((op, theta), (scan, natural))
        )
        assert own is not None
        assert plain is not None
        assert (own.whole() <= 8 * plain.whole()).all()
        assert (plain.whole() <= 8 * own.whole()).all()


@pytest.mark.parametrize("gradient", [False, True])
def test_the_programs_that_measure_an_adapted_kernel_are_those_of_the_kernel(gradient):
    kernel = named("dplr_kernel")
    op = adapted(kernel, (log_dt(),))
    theta = ordinary_case(op, "complex128").arrays
    natural = through(op, lambda *arrays, l: arrays)(*theta, l=5)
    ones = (np.ones((2, 5)),) * gradient
    programs = gradient_programs if gradient else output_programs
    found, plain = programs(op) or {}, programs(kernel) or {}
    assert list(found) == list(plain) != []
    for name, program in found.items():
        mine, theirs = (p(*ones, *x, l=5) for p, x in ((program, theta), (plain[name], natural)))
        pairs = zip(mine, theirs, strict=True) if gradient else [(mine, theirs)]
        *first, (last, by_dt) = pairs
        assert all(np.allclose(y, z) for y, z in first), name
        assert np.allclose(last, by_dt * natural[5] if gradient else by_dt)


def test_further_programs_that_measure_an_adapted_kernel_are_composed_too():
    op = adapted(named("dplr_kernel"), (log_dt(),))
    (gauge,) = expect(op, ordinary_case(op, "complex64").arrays, {"l": 5})
    assert gauge.more_copies is not None
    assert gauge.more_copies().max() <= 64 * gauge.k0.max()


def test_beside_halves_other_arguments_are_real():
    op = adapted(named("selective_scan"), (halves(),))
    assert {n: d.kind for n, d in op.inputs.items()}["u"] == "real"
    assert named("selective_scan").inputs["u"].kind == "either"


def test_an_operator_is_not_linear_in_a_parameter():
    assert "linear:C" in KERNEL.traits
    op = adapted(KERNEL, (neg_exp("C"),))
    assert "linear:C" not in op.traits
    assert "linear:B" in op.traits


def test_the_report_says_that_cases_are_parameters():
    found = Found(KERNEL, of_logarithms, None, declared=Declaration(KERNEL.name, **OWN))
    told = header("here", "quick", 0, [found.offer])
    assert "adapters log_dt(dt), neg_exp(w): cases are its parameters" in told
