"""Helpers: judge one function as its author declares it, and run the command as a user does."""

import numpy as np

from refssm.command import code
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.ranges import parse
from refssm.conformance.diagnosis.shrinking import Shrinking
from refssm.conformance.judging.expected import remembering
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.scan import LINEAR_SCAN
from refssm.testing import Declaration

scan = LINEAR_SCAN.reference  # accepts and returns the type of its arguments
SCAN = """
import numpy as np

def linear_scan(a, b):
    x = np.empty_like(b, dtype=np.result_type(a, b))
    state = 0
    for k in range(b.shape[-2]):
        state = a[..., k, :] * state + b[..., k, :]
        x[..., k, :] = state
    return x
"""
ONE_SEQUENCE = """
import numpy as np

def linear_scan(a, b):
    x, state = np.empty_like(b, dtype=np.result_type(a, b)), 0
    for k in range(len(b)):
        x[k] = state = a[k] * state + b[k]
    return x
"""
# wrong by one in step 64, which only longer inputs have
LATE = SCAN.replace("    return x", "    x[..., 64:65, :] += 1\n    return x")


def judged(name, function, *checks, vjp=None, types=(), where=(), **settings):
    """The results of one implementation; `settings` are those of a run or of its declaration."""
    how = {"profile": "quick", "seed": 0, "cases": 0, "shrink": False}
    how = {key: settings.pop(key, usual) for key, usual in how.items()}
    found = Found(operator_named(name), function, vjp, declared=Declaration(name, **settings))
    more = {"types": types, "only_checks": checks, "where": parse(where, [found.op])}
    return list(
        results_of(Session(InProcess([found]), "here", Settings(folder=None, **how, **more)))
    )


def looks_like(name, function, check="value", dtype="float32", vjp=None, where=(), adapters=()):
    """What the report says of a program that fails one check in one type."""
    declared = Declaration(name, adapters=adapters)
    found = Found(operator_named(name), function, vjp, declared=declared)
    how = {"only_checks": (check,), "types": (dtype,), "shrink": False, "folder": None}
    how["where"] = parse(where, [found.op])
    with remembering():
        line, *_ = results_of(Session(InProcess([found]), "", Settings(diagnose=True, **how)))
    assert line.failed, line
    return line.looks_like


def without_clock(monkeypatch):
    """Let numbers of cases end searches and shrinking, also on a busy machine."""
    monkeypatch.setattr("refssm.conformance.running.patience.EXPLAIN", np.inf)
    monkeypatch.setattr("refssm.conformance.checks.sweep.REDRAW_SECONDS", np.inf)


def shrunk(swept, judge_case, number=0, **how):
    """The case of a failure of a sweep, made as small as the judge makes it."""
    failure = swept.failures[number]
    shrinking = Shrinking(judge_case, failure.sample, failure.smallest, swept.verdicts, **how)
    shrinking.shrink()
    return shrinking


def verdicts(results):
    """Verdicts by check, without skipped checks."""
    return {r.check: r.verdict for r in results if r.verdict != "skipped"}


def rounded_to(bits, x):
    """The nearest number with `bits` significant bits, any exponent; the type stays."""
    m, e = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(m, bits)), e - bits).astype(np.asarray(x).dtype)


def run(capfd, *arguments):
    """Exit code, standard output, standard error."""
    result = code([*map(str, arguments)])
    out, err = capfd.readouterr()
    assert "Traceback" not in out + err
    return result, out, err


def plugin(folder, text, name="my_ops.py"):
    """Write a plug-in file; returns its name."""
    (folder / name).write_text(text, encoding="utf-8")
    return name
