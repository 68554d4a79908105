"""`--where "re(w)=-1..0"`: ranges of parts of complex numbers, within the operator's domain."""

import numpy as np
import pytest
from judging import SCAN, judged, plugin, run, scan

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.cases.limits import reach
from refssm.conformance.cases.ranges import narrowed, parse
from refssm.conformance.usage_error import UsageError

OF = {"re": np.real, "im": np.imag, "abs": np.abs}
# operator, ranges, real draws
RANGES = [
    ("cauchy_kernel", ("re(w)=-1..-0.1",), False),
    ("cauchy_kernel", ("im(w)=3..4",), False),
    ("cauchy_kernel", ("abs(w)=20..21",), False),
    ("cauchy_kernel", ("re(w)=-1..0", "im(w)=5..6", "abs(w)=5.5..9"), False),
    ("cauchy_kernel", (" re( w ) = -1..-.5 ",), False),
    ("cauchy_kernel", ("w=1e-3..2e-3",), False),
    ("linear_scan", ("re(a)=0.5..0.9",), False),
    ("linear_scan", ("re(a)=0.5..0.9",), True),
    ("linear_scan", ("abs(a)=0.5..0.9",), True),
    ("linear_scan", ("re(a)=-1..0", "abs(a)=0.5..0.9"), True),
    ("linear_scan", ("im(a)=0..0.5",), False),
    ("linear_scan", ("im(a)=0..0.5",), True),
    ("vandermonde_kernel", ("abs(x)=1e-3..2e-3",), False),
]


def limited(name, texts):
    """The argument's domain in ranges, the whole one, and the ranges by part."""
    op = operator_named(name)
    where = parse(texts, [op])
    ((argument, limits),) = where.values.items()
    parts = {part: (low, high) for part, low, high in limits}
    return narrowed(op, where).inputs[argument], op.inputs[argument], parts


@pytest.mark.parametrize(("name", "texts", "real"), RANGES)
def test_every_map_draws_within_all_ranges_and_within_the_domain(name, texts, real):
    domain, usual, parts = limited(name, texts)
    (a, b), drawn = np.random.default_rng(0).random((2, 500)), []
    for each in domain.maps:
        x = domain.draw(each, a, b, real)
        for part, (low, high) in parts.items():
            size = OF[part or ("re" if real else "abs")](x)
            assert size.min() >= low * (1 - 2**-51 * np.sign(low))
            assert size.max() <= high * (1 + 2**-51 * np.sign(high))
        for part, (low, high) in reach(usual, real).items():
            slack = 2**-50 * np.abs(x)
            assert (OF[part](x) >= low - slack).all()
            assert (OF[part](x) <= high + slack).all()
        drawn.append(x)
    assert np.unique(np.concatenate(drawn)).size > 50


def test_a_modulus_that_is_scaled_stays_in_the_half_plane():
    # these poles have real parts of -1e-6 or less: a scaled modulus alone would bring them nearer
    domain, usual, _ = limited("cauchy_kernel", ("w=1e-3..2e-3",))
    a, b = np.random.default_rng(0).random((2, 5000))
    x = domain.draw("grazing", a, b, False)
    assert x.real.max() <= -1e-6
    assert reach(usual, False)["re"] == (-100, -1e-6)


def test_ranges_that_exclude_each_other_are_one_sentence():
    with pytest.raises(UsageError, match=r"no number in the domain of `w` of cauchy_kernel is in"):
        parse(["re(w)=-1..0", "im(w)=0..1", "abs(w)=50..60"], [operator_named("cauchy_kernel")])


def test_a_step_that_is_never_negative_is_not_limited_to_negative_numbers():
    op = operator_named("discretize_diagonal_zoh")
    with pytest.raises(UsageError, match=r"`dt` of discretize_diagonal_zoh has values from "):
        parse(["dt=-2..-1"], [op])


@pytest.mark.long
def test_a_range_of_imaginary_parts_without_zero_leaves_out_real_arrays():
    seen = set()

    def function(a, b):
        seen.add(a.dtype.kind)
        assert (a.imag >= 0.25).all()
        return scan(a, b)

    lines = judged(
        "linear_scan", function, "value", "batch", profile="default", where=("im(a)=0.25..0.5",)
    )
    assert {r.verdict for r in lines} == {"pass"}
    assert {r.dtype for r in lines} == {"complex64", "complex128"}
    assert seen == {"c"}


@pytest.mark.long
def test_the_header_and_a_kept_failure_have_the_range(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = plugin(tmp_path, SCAN.replace("return x", "return x + 1"))
    where = ("--where", "re(a)=0.5..0.9", "--where", "l=3..5")
    code, out, _ = run(capfd, "verify", file, *where, "--check", "value", "--dtype", "complex64")
    assert code == 1
    assert "limited to re(a)=0.5..0.9" in out
    again = next(line for line in out.splitlines() if "refssm replay" in line)
    code, out, _ = run(capfd, *again.split("refssm ")[1].split())
    assert code == 1
    assert "FAIL linear_scan/value[complex64]" in out
    code, _, err = run(capfd, "verify", file, "--where", "re(a)=500..900")
    assert code == 4
    assert "re(a)=500..900 is outside of the domain: `a` of linear_scan has " in err
    (tmp_path / "pyproject.toml").write_text('[tool.refssm]\nwhere = "arg(a)=0..1"\n', "utf-8")
    code, _, err = run(capfd, "verify", file)
    assert (code, "is not NAME=LOW..HIGH, nor re(NAME)" in err) == (4, True)
