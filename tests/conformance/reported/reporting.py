"""Judge a program as `refssm verify` does, and read the first line of its report."""

import numpy as np

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.judging.expected import remembering
from refssm.conformance.report.verdict import verdict_of
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.testing import Declaration


def results(name, function, *checks, vjp=None, types=(), seed=0, shrink=False, **declared):
    """The results of the default profile, with the likely causes of failures."""
    found = Found(operator_named(name), function, vjp, declared=Declaration(name, **declared))
    how = {"types": types, "only_checks": checks, "seed": seed, "shrink": shrink, "diagnose": True}
    with remembering():
        return list(results_of(Session(InProcess([found]), "here", Settings(folder=None, **how))))


def first_line(name, function, *checks, **how):
    """Verdict and sentence of the report's first line, without operator and file."""
    verdict = verdict_of(results(name, function, *checks, **how))
    return f"{verdict.word}: {verdict.sentence.partition(': ')[2]}"


def causes(name, function, *checks, **how):
    """The causes that the report names, one for each failing check and type."""
    return {r.id.partition("/")[2]: r.cause for r in results(name, function, *checks, **how)
            if r.failed}  # fmt: skip


def refused(name, function, *checks, **how):
    """The failing results."""
    return [r for r in results(name, function, *checks, **how) if r.failed]


def rounded_to_8_bits(x):
    """bfloat16's digits, with the type as it is."""
    m, e = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(m, 8)), e - 8).astype(x.dtype)
