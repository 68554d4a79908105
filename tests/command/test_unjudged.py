"""Arguments of a function that the operator does not have: no report is silent about them."""

import functools
import json
from dataclasses import replace

import pytest
from judging import plugin, run

from refssm.catalog import named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.judging.result import Result
from refssm.conformance.report.verdict import verdict_of
from refssm.testing import implements

# Mamba-2's call with the sign of D, the gate and the bias all wrong
MAMBA2 = """
import numpy as np
import refssm

def scan(a, b, D=None, gate=None, dt_bias=None, *, chunk=64, _seen={}, **rest):
    x = refssm.linear_scan(a, b)
    if D is not None:
        x = x - D * b
    return x if gate is None else x * np.tanh(gate + dt_bias)
"""
LEFT = "D, gate, dt_bias, chunk"
PASSES = Result("linear_scan", "kernel.py", "value", "float32", "pass", "A", digits=24, bits=24.0)


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return plugin(tmp_path, MAMBA2)


def verify(capfd, target, *words):
    return run(capfd, "verify", target, "--check", "value", "--profile", "quick", *words)


def test_a_pass_says_in_its_first_line_what_was_not_judged(capfd, file):
    code, out, _ = verify(capfd, f"{file}::scan", "--as", "linear_scan")
    assert code == 0
    first, *others = out.splitlines()
    assert first.startswith("PASS: linear_scan ")
    assert f"; not judged: {LEFT}   (" in first
    told = "linear_scan has no such argument, and they keep their defaults"
    assert f"not judged: {LEFT} of your function: {told}" in others


@pytest.mark.long
def test_a_failure_lists_them_too_and_so_does_json(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = plugin(tmp_path, MAMBA2.replace("return x if", "x = x + 1\n    return x if"))
    target = f"{wrong}::scan"
    code, out, _ = verify(capfd, target, "--as", "linear_scan")
    assert code == 1
    assert f"\nnot judged: {LEFT} of your function: linear_scan has no such" in out
    code, out, _ = verify(capfd, target, "--as", "linear_scan", "--json")
    (result,) = json.loads(out)["results"]
    assert result["unjudged"] == LEFT.split(", ")


def test_the_doctor_lists_them_and_its_test_declares_them(capfd, file):
    _, out, _ = run(capfd, "doctor", file)
    assert "  not judged: D, gate, dt_bias, chunk, which linear_scan does not have" in out
    assert '    unjudged=("D", "gate", "dt_bias", "chunk"),\n' in out


def offered(function, vjp=None):
    op = named("linear_scan")
    assert op
    return Found(op, function, vjp).offer.unjudged


def test_arguments_that_the_author_sets_and_unnamed_ones_are_not_listed():
    def scan(a, b, width=3, _cache=None, *more, **rest):
        return b

    assert offered(scan) == ("width",)
    assert offered(functools.partial(scan, width=4)) == ()
    assert offered(lambda a, b: b) == ()
    assert offered(max) == ()  # it has no signature


def test_arguments_of_the_gradient_count_and_those_that_a_wrapper_leaves_are_declared():
    def scan_vjp(dx, a, b, reverse=False):
        return b, b

    assert offered(lambda a, b: b, scan_vjp) == ("reverse",)

    @implements("linear_scan", unjudged="D")
    def scan(a, b, z=None):
        return b

    op = named("linear_scan")
    assert op
    assert Found(op, scan, None, declared=scan.__refssm__).offer.unjudged == ("D", "z")
    with pytest.raises(ValueError, match="`unjudged` must be names of arguments, got 3"):
        implements("linear_scan", unjudged=(3,))


def test_the_line_on_several_implementations_names_the_arguments_of_one():
    one = replace(PASSES, unjudged=tuple("abcdefghij"))
    others = [replace(one, operator=name, unjudged=("z",)) for name in ("selective_scan", "ssd")]
    line = verdict_of([one, PASSES, *others]).line
    assert line.endswith(
        "; not judged: a, b, c, d, e, f, g, h and 2 more; and arguments of 2 other implementations"
    )
    skipped = replace(one, verdict="skipped", message="no reason")
    assert "not judged" not in verdict_of([PASSES, skipped]).line
