"""`--where NAME=LOW..HIGH`: judged only in a range of values or sizes."""

import re

import numpy as np
import pytest
from judging import LATE, SCAN, judged, plugin, run, scan, verdicts

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.cases.limits import may_hold
from refssm.conformance.cases.ranges import narrowed, parse
from refssm.conformance.usage_error import UsageError
from refssm.convolution import CAUSAL_CONVOLUTION_DIRECT
from refssm.discretize import DISCRETIZE_DIAGONAL_ZOH
from refssm.domains import decays, signals, steps
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM
from refssm.vandermonde import VANDERMONDE_KERNEL

# operator, range as typed, real, LOW, HIGH
RANGES = [
    ("linear_scan", "a=0.9..1", True, 0.9, 1),
    ("linear_scan", "a=0.07..0.11", True, 0.07, 0.11),  # 0.07 (0.11 / 0.07) > 0.11
    ("linear_scan", "a=-1..-0.5", True, -1, -0.5),
    ("linear_scan", "a=-.5...5", True, -0.5, 0.5),
    ("linear_scan", " b = 1e-20..1e-10 ", True, 1e-20, 1e-10),
    ("linear_scan", "b=0..0", True, 0, 0),
    ("linear_scan", "b=3..3", True, 3, 3),
    ("discretize_diagonal_zoh", "dt=1e-3..1e-1", True, 1e-3, 1e-1),
    ("linear_scan", "a=0.5..0.9", False, 0.5, 0.9),
    ("linear_scan", "a=-1..0.1", False, 0, 0.1),
    ("cauchy_kernel", "w=2..7", False, 2, 7),
    ("vandermonde_kernel", "x=1e-3..1e-2", False, 1e-3, 1e-2),
]


def unit_square():
    a, b = np.random.default_rng(0).random((2, 500))
    a[0], a[1], b[0] = 0, 1, 0
    return a, b


def domain_in(name, text):
    """The argument's domain in a range, and its whole domain."""
    op, argument = operator_named(name), text.partition("=")[0].strip()
    return narrowed(op, parse([text], [op])).inputs[argument], op.inputs[argument]


@pytest.mark.parametrize(("name", "text", "real", "low", "high"), RANGES)
def test_every_map_of_a_narrowed_domain_draws_inside_the_range(name, text, real, low, high):
    domain, usual = domain_in(name, text)
    assert list(domain.maps) == list(usual.maps)
    for each in domain.maps:
        x = domain.draw(each, *unit_square(), real)
        size = x if real else np.abs(x)
        half_a_digit = 0 if real else 2**-52  # a modulus has rounding errors
        assert low * (1 - half_a_digit) <= size.min()
        assert size.max() <= high * (1 + half_a_digit)
    assert set(domain.textures) <= {*usual.textures}
    assert ("gaps" in domain.textures) == (low <= 0 <= high and "gaps" in usual.textures)


def test_the_whole_domain_would_leave_each_of_these_ranges():
    for name, text, real, low, high in RANGES:
        _, usual = domain_in(name, text)
        drawn = np.concatenate([usual.draw(m, *unit_square(), real) for m in usual.maps])
        size = drawn if real else np.abs(drawn)
        assert size.min() < low or size.max() > high


def test_what_lies_in_the_range_is_drawn_as_before_and_a_phase_is_kept():
    domain, _ = domain_in("linear_scan", "b=-2000..2000")
    for each in signals.maps:
        points = (each, *unit_square(), True)
        assert np.array_equal(domain.draw(*points), signals.draw(*points))
    domain, _ = domain_in("linear_scan", "a=0.25..0.5")
    points = ("unit", *unit_square(), False)
    turned = domain.draw(*points) / decays.draw(*points)
    assert np.allclose(turned.imag, 0)
    assert (turned.real > 0).all()


NO_RANGE = {
    "linear_scan": {
        "a": "--where 'a' is not NAME=LOW..HIGH",
        "a=1": "--where 'a=1' is not NAME=LOW..HIGH",
        "a=..1": "is not NAME=LOW..HIGH",
        "a=0..": "is not NAME=LOW..HIGH",
        "a=x..1": "--where 'a=x..1' is not NAME=LOW..HIGH",
        "a=1..0": "--where 'a=1..0' is not a range: LOW must not exceed HIGH",
        "a=0..inf": "is not a range",
        "a=nan..1": "is not a range",
        "q=0..1": "--where q=0..1: unknown name 'q'; wanted one of a, b, l, n",
        "l=0..64": "--where l=0..64: a size is a whole number of 1 or more",
        "l=1.5..64": "a size is a whole number of 1 or more",
    },
    "cauchy_kernel": {
        "re(w)=1..2": "--where re(w)=1..2 is outside of the domain: `w` of cauchy_kernel has a "
        "real part from -100 to -1e-06",
        "abs(w)=2000..3000": "is outside of the domain: `w` of cauchy_kernel has a modulus from ",
        "w=2000..3000": "is outside of the domain: `w` of cauchy_kernel has a modulus from ",
        "im(w)=1e4..1e5": "`w` of cauchy_kernel has an imaginary part from -1e+03 to 1e+03",
        "abs(w)=-2..-1": "--where abs(w)=-2..-1: no modulus is negative",
        "arg(w)=0..1": "'arg(w)=0..1' is not NAME=LOW..HIGH, nor re(NAME), im(NAME) or abs(NAME)",
        "re(w=0..1": "is not NAME=LOW..HIGH",
        "w)=0..1": "is not NAME=LOW..HIGH",
        "re(q)=0..1": "unknown name 'q'; wanted one of v, w, z, ",
        "re(l)=1..9": "--where re(l)=1..9: `l` is a size: write l=1..9",
    },
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in NO_RANGE.items() for text in texts]
)
def test_what_is_no_range_is_told_in_one_sentence(name, text):
    with pytest.raises(UsageError, match=re.escape(NO_RANGE[name][text])) as refused:
        parse([text], [operator_named(name)])
    assert "\n" not in str(refused.value)


def test_a_matrix_that_is_kept_stable_and_a_negative_modulus_are_refused():
    bilinear, cauchy = operator_named("discretize_bilinear"), operator_named("cauchy_kernel")
    with pytest.raises(UsageError, match=r"`A` of discretize_bilinear cannot be limited"):
        parse(["A=-1..0"], [bilinear])
    told = "--where w=-2..-1: `w` of cauchy_kernel is complex, so the range is of its modulus, "
    with pytest.raises(UsageError, match=re.escape(f"{told}and no modulus is negative")):
        narrowed(cauchy, parse(["w=-2..-1"], [cauchy]))


SEEN = []


def watching(a, b):
    SEEN.append((a.min(), a.max(), b.shape[-2]))
    return scan(a, b)


def test_nothing_is_called_outside_of_a_range_of_values_or_sizes():
    SEEN.clear()
    results = judged(
        "linear_scan", watching, profile="default", types=("float32",), where=("a=0.5..1",)
    )
    assert {"value", "additive", "scaling", "zero", "prefix", "batch"} <= set(verdicts(results))
    assert set(verdicts(results).values()) == {"pass"}
    low, high, _ = (np.array(seen) for seen in zip(*SEEN, strict=True))
    assert low.min() >= 0.5
    assert high.max() <= 1


@pytest.mark.parametrize("text", ["abs(a)=0.3..0.4", "im(a)=0.2..0.4", "a=0.3..0.4"])
def test_the_smallest_case_of_a_failure_stays_in_the_range(text):
    dtype = "float32" if text.startswith("a") and "abs" not in text else "complex64"
    here = {"where": (text,), "types": (dtype,), "shrink": True}
    (result,) = judged("linear_scan", lambda a, b: 2 * scan(a, b), "value", **here)
    shown = re.search(r"; a=\[?([^ \],]+)", result.smallest)
    assert shown
    a = complex(shown[1])
    part = {"abs": abs(a), "im(": a.imag, "a=0": a.real}[text[:3]]
    low, high = (0.2, 0.4) if "im" in text else (0.3, 0.4)
    assert low * (1 - 1e-5) <= part <= high * (1 + 1e-5), result.smallest


def test_a_number_beyond_the_reach_of_a_domain_is_outside_and_a_rounding_is_not():
    drawn = np.array([0.5])
    for inside, value in [(True, 1.0), (True, np.float32(1e-4)), (False, 2.0), (False, -1.0)]:
        assert may_hold(steps, np.array([0, value]), drawn) == inside
    tiny = np.array([1e-42])
    assert may_hold(steps, tiny, tiny)  # a texture drew a subnormal number
    assert not may_hold(steps, tiny, drawn)
    assert not may_hold(signals, np.array([1e9 + 0j]), np.ones(1, complex))


def test_nothing_is_called_outside_of_a_range_of_lengths():
    SEEN.clear()
    checks = ("value", "nan", "additive", "causal", "unchanged", "alias", "strides")
    results = judged("linear_scan", watching, *checks, where=("l=64..100",))
    lengths = {length for *_, length in SEEN}
    assert verdicts(results) == dict.fromkeys(checks, "pass")
    assert {64, 65, 100} <= lengths
    assert min(lengths) >= 64
    assert max(lengths) <= 100


def only_here(a, b):
    """Right only for decays from 0.5 to 1 and 64 to 128 steps."""
    if not 64 <= b.shape[-2] <= 128:
        raise ValueError(f"l={b.shape[-2]}")
    return scan(np.clip(a, 0.5, 1), b)


def wrong_even_here(a, b):
    return only_here(np.minimum(a, np.float32(0.9)), b)


@pytest.mark.parametrize("seed", range(2))
def test_a_kernel_for_a_narrow_range_is_right_in_it_and_wrong_beyond(seed):
    here = {"where": ("a=0.5..1", "l=64..128"), "seed": seed, "profile": "default"}
    here |= {"types": ("float32",)}
    results = judged("linear_scan", only_here, **here)
    assert [r.message for r in results if r.failed] == []
    assert {"value", "additive", "zero", "repeat"} <= set(verdicts(results))
    assert judged("linear_scan", wrong_even_here, "value", **here)[0].failed
    for half in (here["where"][:1], here["where"][1:]):
        assert judged("linear_scan", only_here, "value", **(here | {"where": half}))[0].failed


def test_a_length_that_is_a_keyword_has_a_range_too():
    def kernel(v, x, *, l):
        assert 10 <= l <= 20
        return VANDERMONDE_KERNEL.reference(v, x, l=l)

    results = judged("vandermonde_kernel", kernel, "value", "batch", where=("l=10..20",))
    assert verdicts(results) == {"value": "pass", "batch": "pass"}
    assert judged("vandermonde_kernel", kernel, "value")[0].failed


LINEAR = ("additive", "scaling", "zero")
LEFT = [
    (LINEAR_SCAN, "a=0..1", {"nan", "causal"}),
    (LINEAR_SCAN, "b=0..1", {"nan", "causal", "additive", "scaling", "zero"}),
    (LINEAR_SCAN, "l=64..128", {"prefix", "split"}),
    (LINEAR_SCAN, "n=1..4", set()),
    (LINEAR_SCAN_FROM, "x0=0..1", {"nan", "split", "joined", "rollback", *LINEAR}),
    (DISCRETIZE_DIAGONAL_ZOH, "dt=0.001..0.1", {"nan"}),
    (VANDERMONDE_KERNEL, "l=10..20", {"prefix"}),
    (
        CAUSAL_CONVOLUTION_DIRECT,
        "u=0..1",
        {"nan", "causal", "additive", "scaling", "zero", "shift"},
    ),
]


@pytest.mark.parametrize(
    ("op", "text", "left"),
    LEFT,
    ids=lambda x: " ".join(sorted(x)) if isinstance(x, set) else str(x),
)
def test_a_law_that_would_leave_the_range_is_skipped_and_says_why(op, text, left):
    from refssm.conformance.checks.laws import laws_of

    where, name = parse([text], [op]), text.partition("=")[0]
    told = {law.name: law.left_by(op, where) for law in laws_of(op)}
    assert {law for law, reason in told.items() if reason} == left
    sized = name in ("l", "n")
    reason = (
        f"tries other sizes {name}, which `where` limits"
        if sized
        else f"`{name}`, which `where` limits"
    )
    assert all(told[law].endswith(reason) for law in left)


RESUMED = """
import numpy as np
import refssm

def linear_scan_from(a, b, x0):
    assert np.abs(x0).max() <= 1
    return refssm.linear_scan_from(a, b, x0)
"""


@pytest.mark.long
def test_a_resumed_scan_is_not_handed_a_state_outside_its_range(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    name, quick = plugin(tmp_path, SCAN + RESUMED), ("--profile", "quick")
    result, out, _ = run(capfd, "verify", name, *quick, "--where", "x0=0..1")
    assert [line for line in out.splitlines() if line.startswith("FAIL")] == []
    assert result == 0
    assert run(capfd, "verify", name, *quick)[0] == 1


@pytest.mark.long
def test_the_command_says_where_it_judged(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    here = ("--where", "a=0.9..1", "--where", "l=1..64", "--profile", "quick")
    result, out, _ = run(capfd, "verify", plugin(tmp_path, LATE), *here)
    assert result == 0
    assert "profile quick, seed 0, limited to a=0.9..1, l=1..64" in out
    assert "needs linear_scan_from" in out
    assert "`a`, which `where` limits" in out
    assert "tries other sizes l, which `where` limits" in out
    assert run(capfd, "verify", plugin(tmp_path, LATE), *here[4:], "--check", "value")[0] == 1
    result, out, _ = run(
        capfd, "verify", plugin(tmp_path, SCAN), "--where", "a=1..2", "--check", "nan"
    )
    assert result == 5
    result, _, err = run(capfd, "verify", plugin(tmp_path, SCAN), "--where", "a=1..0")
    assert result == 4
    assert err.strip() == "refssm: --where 'a=1..0' is not a range: LOW must not exceed HIGH"


def test_a_range_that_the_usual_values_do_not_reach_has_an_ordinary_case():
    """Usual biases are −7 to −2: in −2 to 0 they are all −2."""
    op = operator_named("mamba_scan")
    op = narrowed(op, parse(["dt_bias=-2..0"], [op]))
    _, *_, dt_bias = ordinary_case(op, np.float32).arrays
    assert set(dt_bias.ravel()) <= {-2.0, 0.0}
