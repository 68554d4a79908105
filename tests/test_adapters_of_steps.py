"""Forms of SSD as functions of x, steps dt and rates A, as Mamba-2's kernels take them."""

import re
import subprocess
import sys

import numpy as np
import pytest
from judging import judged, run

import refssm
from refssm._declaration.adapted import Adapted, _OfSteps, adapted, adapters_of, taken, with_steps
from refssm.adapters import dt_and_A, log_dt, neg_exp
from refssm.catalog import OPERATORS
from refssm.conformance.calling.finding import operator_named as named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.judging.certificate import certify
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.conformance.usage_error import UsageError
from refssm.presets.catalog import presets_of
from refssm.testing import Declaration, check, implements

FORMS = [op for op in OPERATORS if op.family == "ssd" and "log_a" in op.inputs]
CHUNKED = "ssd_chunked"
OWN = {"adapters": dt_and_A(), "profile": "quick"}


def by_steps(x, dt, A, B, C, *, chunk):
    return refssm.ssd_chunked(x * dt[..., None], dt * A[..., None], B, C, chunk=chunk)


def by_steps_vjp(dy, x, dt, A, B, C, *, chunk):
    natural = x * dt[..., None], dt * A[..., None], B, C
    dX, dlog_a, dB, dC = refssm.ssd_chunked_vjp(dy, *natural, chunk=chunk)
    ddt = ((x.conj() * dX).sum(-1) + dlog_a * A.conj()[..., None]).real
    return dX * dt[..., None], ddt, (dlog_a * dt).sum(-1).sum(0), dB, dC


@pytest.mark.parametrize("op", FORMS, ids=str)
def test_every_form_of_ssd_by_steps_and_rates_is_that_of_the_oracle_with_its_gradient(op):
    (stepped,) = with_steps(op)
    assert [*stepped.inputs][:3] == ["x", "dt", "A"]
    assert certify(stepped) == ""


def test_logarithms_of_rates_and_steps_come_after_it():
    op = adapted(named(CHUNKED), (dt_and_A(), neg_exp("A"), log_dt()))
    assert list(map(str, adapters_of(op))) == ["dt_and_A()", "neg_exp(A)", "log_dt(dt)"]
    assert certify(op) == ""


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_a_wrong_gradient_of_the_parameters_is_no_certificate(wrong, monkeypatch):
    right = _OfSteps.back

    def back(self, *given):
        found = right(self, *given)
        found[wrong] = 2 * found[wrong]
        return found

    monkeypatch.setattr(_OfSteps, "back", back)
    assert "VJP disagrees" in certify(with_steps(named(CHUNKED))[0])


@pytest.mark.long
def test_a_kernel_of_steps_and_rates_passes_with_its_gradient():
    check(CHUNKED, by_steps, vjp=by_steps_vjp, dtypes=("float32", "complex64"), **OWN)


@pytest.mark.long
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda x, dt, *rest, chunk: by_steps(x / dt[..., None], dt, *rest, chunk=chunk), "[CF]"),
        (lambda x, dt, A, *rest, chunk: by_steps(x, dt, A[::-1], *rest, chunk=chunk), "[CF]"),
        (lambda x, dt, A, B, C, *, chunk: by_steps(x, dt, A, C, B, chunk=chunk), "exchanged"),
    ],
    ids=["no step in the input", "the rates of other groups", "B for C"],
)
def test_a_wrong_kernel_of_steps_is_refused(wrong, told):
    with np.errstate(all="ignore"), pytest.raises(AssertionError, match=f"{told}[ :]"):
        check(CHUNKED, wrong, checks=("value",), dtypes=("float32",), **OWN)


def test_a_gradient_by_dt_without_the_decay_is_refused():
    def vjp(dy, x, dt, A, B, C, *, chunk):
        dx, _, *others = by_steps_vjp(dy, x, dt, A, B, C, chunk=chunk)
        inputs = np.where(dt[..., None] == 0, 1, dt[..., None])
        return dx, (x * dx / inputs).sum(-1), *others

    how = {**OWN, "checks": ("gradient",), "dtypes": ("float32",)}
    with pytest.raises(AssertionError, match="ddt"):
        check(CHUNKED, by_steps, vjp=vjp, **how)


def stateful(x, dt, A, B, C, S0, *, chunk):
    natural = x * dt[..., None], dt * A[..., None], B, C, S0
    return refssm.ssd_chunked_stateful(*natural, chunk=chunk)


def forgetful(x, dt, A, B, C, S0, *, chunk):
    return stateful(x, dt, A, B, C, 0.5 * S0, chunk=chunk)


@pytest.mark.parametrize(
    ("later", "adapters", "wanted"),
    [
        (stateful, (dt_and_A(),), {"pass"}),
        (forgetful, (dt_and_A(),), {"wrong"}),
        (refssm.ssd_chunked_stateful, (), {"skipped"}),  # it takes other arguments
    ],
    ids=["its own", "a wrong one", "of log_a"],
)
def test_a_scan_of_steps_is_cut_and_continued_from_its_state(later, adapters, wanted):
    found = [
        Found(named(name), function, None, judged, Declaration(name, adapters=of))
        for name, function, judged, of in (
            (CHUNKED, by_steps, True, (dt_and_A(),)),
            (f"{CHUNKED}_stateful", later, False, adapters),
        )
    ]
    how = {"only_checks": ("split",), "types": ("float32",), "shrink": False, "folder": None}
    results = list(results_of(Session(InProcess(found), "here", Settings(**how))))
    assert {result.verdict for result in results} <= wanted


def test_where_limits_steps_and_rates_and_no_logarithms_of_decays():
    seen = []

    def program(x, dt, A, B, C, *, chunk):
        seen.append((dt.min(initial=1), dt.max(initial=1), A.max(initial=-1)))
        return by_steps(x, dt, A, B, C, chunk=chunk)

    how = {"types": ("float32",), "adapters": (dt_and_A(),)}
    (result,) = judged(CHUNKED, program, "value", where=("dt=0.5..2", "A=-4..-0.25"), **how)
    assert result.verdict == "pass"
    low, high, rate = np.array(seen).T
    assert low.min() >= 0.5
    assert high.max() <= 2
    assert rate.max() <= -0.25
    with pytest.raises(UsageError, match=r"unknown name 'log_a'; wanted one of x, dt, A, B, C"):
        judged(CHUNKED, program, "value", where=("log_a=-1..0",), **how)


def test_an_operator_without_decays_of_ssd_has_no_steps():
    with pytest.raises(ValueError, match=r"dt_and_A: linear_scan is no form of SSD"):
        implements("linear_scan", adapters=dt_and_A())


def test_it_comes_first_because_it_makes_the_arguments_that_others_change():
    with pytest.raises(ValueError, match="dt_and_A: wanted as the first adapter"):
        implements(CHUNKED, adapters=(neg_exp("log_a"), dt_and_A()))


WRONG = """
import numpy as np
import refssm
from refssm.adapters import dt_and_A
from refssm.testing import implements


@implements("ssd_chunked", adapters=dt_and_A(), dtypes=("float32",))
def my_ssd(x, dt, A, B, C, *, chunk):
    return 2 * refssm.ssd_chunked(x * dt[..., None], dt * A[..., None], B, C, chunk=chunk)
"""


@pytest.mark.long
def test_a_failure_with_ranges_of_steps_is_replayed_and_its_script_runs(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_ops.py").write_text(WRONG, encoding="utf-8")
    how = ("--check", "value", "--profile", "quick", "--where", "dt=0.5..2")
    result, out, _ = run(capfd, "verify", "my_ops.py", *how)
    assert result == 1
    (again,) = re.findall(r"again: refssm (replay \S+ my_ops.py)", out)
    (alone,) = re.findall(r"alone: python (\S+)", out)
    result, out, err = run(capfd, *again.split())
    assert (result, err) == (1, "")
    assert "FAIL ssd_chunked/value[float32]" in out
    done = subprocess.run(
        [sys.executable, alone], capture_output=True, encoding="utf-8", check=False
    )
    assert "wrong" in done.stdout.lower(), done.stdout + done.stderr


def test_a_layout_is_that_of_the_arguments_the_function_takes():
    layout = "b l g h p, b l g h, g h, b l g n, b l g n -> b l g h p"
    implements(CHUNKED, adapters=dt_and_A(), layout=layout)
    with pytest.raises(ValueError, match=re.escape("must have 4 arguments")):
        implements(CHUNKED, layout=layout)
    assert taken(named(CHUNKED), (dt_and_A(), log_dt())).input_dims[2] == ()


def test_a_preset_is_the_same_head_in_steps_and_rates():
    (op,), sizes = with_steps(named(CHUNKED)), {"l": 8, "n": 4, "p": 3}
    for own, plain in zip(presets_of(op), presets_of(named(CHUNKED)), strict=True):
        drawn = own.draw(np.random.default_rng(1), {**sizes, **own.sizes})
        wanted = plain.draw(np.random.default_rng(1), {**sizes, **own.sizes})
        assert isinstance(op, Adapted)
        x, log_a = op.given([drawn[name] for name in ("x", "dt", "A")])
        assert np.allclose(x, wanted["x"], rtol=1e-12)
        assert np.allclose(log_a, wanted["log_a"], rtol=1e-12)
        assert (drawn["dt"] >= 0).all()
        assert drawn["dt"].max() <= 1


def test_an_ordinary_case_has_one_rate_for_each_head():
    case = ordinary_case(with_steps(named(CHUNKED))[0], "float32")
    x, dt, A = case.arrays[:3]
    assert dt.shape == x.shape[:-1]
    assert A.shape == dt.shape[1:-1]
