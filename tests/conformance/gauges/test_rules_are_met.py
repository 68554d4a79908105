"""A rule for a function that no reference calls any more is lost without a sound."""

import numpy as np
from scipy.special import erf, expit

from refssm.catalog import judged
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.cases.cotangents import cotangents_of
from refssm.conformance.checks.checks import types_of
from refssm.conformance.gauges import tracked
from refssm.conformance.gauges.contracts import bounds
from refssm.conformance.gauges.tracked import Tracked

TABLES = ("FUNCTIONS", "UFUNCS")


def not_of_numpy(functions):
    """Functions of refssm and of SciPy: NumPy's may be there for references that come."""
    return {f for f in functions if getattr(np, f.__name__, None) is not f and not in_numpy(f)}


def in_numpy(function):
    return str(getattr(function, "__module__", None)).startswith("numpy")


def recorded(monkeypatch):
    """The set of functions whose rules are met from now on."""
    met = set()

    def noting(function, rule):
        return lambda *args, **keywords: (met.add(function), rule(*args, **keywords))[1]

    for name in TABLES:
        for function, rule in list(getattr(tracked, name).items()):
            monkeypatch.setitem(getattr(tracked, name), function, noting(function, rule))
    return met


def derive_all_bounds(operators):
    """The derived bounds of each operator's outputs and gradients, on a small case."""
    for op in operators:
        case = ordinary_case(op, types_of(op)[0], sizes=(3, 2, 2, 2))
        arrays, how = case.arrays, {"unit": 2.0**-24, "floor": 0.0}
        found = bounds(op, arrays, case.statics, None, **how)
        if "vjp" not in op.lacks:
            cotangents, _ = cotangents_of(case, arrays, case.statics, ())
            found += bounds(op, [*cotangents, *arrays], case.statics, op.bare_vjp, **how)
        for gauge in found:
            gauge.derived()
            if gauge.cumulated:
                gauge.cumulated.whole()
                gauge.cumulated.of_terms()


def test_each_error_rule_for_a_function_of_ours_or_of_scipy_is_met(monkeypatch):
    met = recorded(monkeypatch)
    derive_all_bounds([op for op in judged() if op.inputs])
    rules = not_of_numpy([*tracked.FUNCTIONS, *tracked.UFUNCS])
    assert erf in rules
    assert sorted(f.__name__ for f in rules - met) == []


def test_a_rule_for_a_function_that_nobody_calls_is_seen(monkeypatch):
    monkeypatch.setitem(tracked.UFUNCS, expit, lambda x: Tracked(expit(x.value)))
    met = recorded(monkeypatch)
    derive_all_bounds([op for op in judged() if op.name in ("mamba_step", "lru_layer")])
    assert expit in not_of_numpy(tracked.UFUNCS)
    assert expit not in met
