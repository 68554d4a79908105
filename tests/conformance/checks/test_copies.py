"""The checks `copies` and `summed`: more members of a batch than any case has."""

import numpy as np
import pytest
from judging import judged

import refssm
from refssm import catalog
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.checks.checks import types_of
from refssm.conformance.running.explaining import ALONE
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.ssd import SSD_RECURRENT

ssd, ssd_vjp = SSD_RECURRENT.reference, SSD_RECURRENT.bare_vjp


def heads_lost(x, log_a, B, C):
    """Its ninth head of a group and those after it read the first one."""
    heads = x.shape[-3]
    kept = np.arange(heads) % 8 if heads > 8 else np.arange(heads)
    return ssd(x[..., kept, :, :], log_a[..., kept, :], B, C)


def sum_ends(dy, x, log_a, B, C):
    """The gradient of what heads share without those from the ninth on."""
    dx, dlog_a, _, dC = ssd_vjp(dy, x, log_a, B, C)
    first = dy.copy()
    first[..., 8:, :, :] = 0
    return dx, dlog_a, ssd_vjp(first, x, log_a, B, C)[2], dC


def at_most_three(a, b):
    if max(a.shape[0], b.shape[0]) > 3:
        raise ValueError("three rows at most")
    return refssm.linear_scan(a, b)


def few(case):
    """The case if it has at most three rows."""
    return case if max(x.shape[0] for x in case.values() if x.ndim > 2) <= 3 else None


def verdict(name, function, check="copies", **settings):
    how = {"types": ("float32",), "profile": "default", **settings}
    (line,) = judged(name, function, check, **how)
    return line


def test_heads_that_read_others_from_the_ninth_on_are_refused_with_the_number_of_heads():
    line = verdict("ssd_recurrent", heads_lost)
    assert line.verdict == "wrong"
    assert line.message.startswith("h=16: worst y[")


def test_a_sum_over_heads_that_ends_after_eight_is_refused():
    line = verdict("ssd_recurrent", ssd, "summed", vjp=sum_ends)
    assert line.verdict == "wrong"
    assert line.message.startswith("h=16: worst dB[")


def test_no_other_check_sees_that_sum():
    checks = ("value", "gradient", "batch", "group")
    lines = judged("ssd_recurrent", ssd, *checks, vjp=sum_ends, types=("float32",))
    assert {line.check: line.verdict for line in lines} == dict.fromkeys(checks, "pass")


def test_a_function_for_few_members_says_so_by_only_or_fails():
    line = verdict("linear_scan", at_most_three)
    assert line.verdict == "error"
    assert "three rows at most" in line.message
    line = verdict("linear_scan", at_most_three, only=few)
    assert line.verdict == "skipped"
    assert line.message == "nothing could be judged"


@pytest.mark.parametrize("name", [op.name for op in catalog.judged() if any(op.batch_axes)])
def test_copies_of_a_references_members_are_right_with_their_gradients(name):
    op = operator_named(name)
    vjp = op.bare_vjp if op.differentiable else None
    how = {"types": types_of(op)[:1], "profile": "default", "vjp": vjp}
    lines = judged(name, op.reference, "copies", "summed", **how)
    wanted = dict.fromkeys(["copies", *["summed"] * op.differentiable], "pass")
    if name == "hankel_singular_values":  # 33 of them in single precision: no bound for gradients
        wanted["summed"] = "skipped"
    assert {line.check: line.verdict for line in lines} == wanted


def explained(name, function):
    """The result of `copies` on one function, with its likely cause."""
    found = Found(operator_named(name), function, None)
    how = {"only_checks": ("copies",), "types": ("float32",), "shrink": False, "folder": None}
    (line,) = results_of(Session(InProcess([found]), "here", Settings(diagnose=True, **how)))
    assert line.verdict == "wrong"
    return line


def test_a_program_that_is_wrong_for_one_member_is_not_explained_by_copies():
    line = explained("linear_scan", lambda a, b: 1.25 * refssm.linear_scan(a, b))
    assert (line.hint, line.looks_like) == (ALONE, "")
    line = explained("ssd_recurrent", heads_lost)
    assert line.hint != ALONE
