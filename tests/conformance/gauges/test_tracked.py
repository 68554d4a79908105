import numpy as np
import pytest
from mpmath import mp
from operations import FLOOR, PAIRS, RULES

from refssm.conformance.gauges import rules as tracked_rules
from refssm.conformance.gauges.tracked import FUNCTIONS, UFUNCS, Tracked, tracing

U, U_DOUBLE = 2.0**-24, 2.0**-53


def each_rule(**where):
    """A case for every rule in every combination of types."""
    cases = [
        pytest.param(name, types, id=f"{name}, {', '.join(types)}")
        for name, rule in RULES.items()
        for types in rule.types
        if all(getattr(rule, key) == value for key, value in where.items())
    ]
    return pytest.mark.parametrize(("name", "types"), cases)


def truth(rule, arrays):
    """The exact value: mpmath for library functions, long double for arithmetic."""
    if rule.exact is None:
        return rule.function(*(x.astype(np.result_type(x, np.longdouble)) for x in arrays))
    (x,) = arrays
    with mp.workdps(40):
        exact = [rule.exact(mp.mpmathify(y)) for y in x.ravel().tolist()]
    return np.array([complex(y) if np.iscomplexobj(x) else float(y) for y in exact])


def traced(rule, arrays, k1=False):
    """Value and error bound of one run in double precision; inputs exact or rounded once."""
    start = [np.abs(x) if k1 else np.zeros(x.shape) for x in arrays]
    errors = [np.stack([np.zeros(s.shape), s], axis=-1) for s in start]
    with tracing(unit=U, floor=FLOOR):
        y = rule.function(*map(Tracked, arrays, errors))
    return y.value, y.errors[..., int(k1)]


def single(arrays, dtypes):
    """Round to the types and turn -0 into 0, which decides the side of a branch cut."""
    return [np.asarray(x).astype(t) + np.zeros((), t) for x, t in zip(arrays, dtypes, strict=True)]


def double(arrays):
    return [x.astype(np.result_type(x, np.float64)) for x in arrays]


def contained(rule, types, seed, subnormal=False):
    """True if float32 is within u·K0 of the truth for exact inputs."""
    x = single(rule.operands(seed, types, subnormal), types)
    _, k0 = traced(rule, double(x))
    with np.errstate(all="ignore"):
        y = rule.function(*x)
        return np.abs(y - truth(rule, double(x))) <= U * k0


@each_rule()
def test_single_precision_stays_within_k0(name, types):
    assert contained(RULES[name], types, seed=1).all()


@each_rule(small=True)
def test_single_precision_stays_within_k0_among_subnormals(name, types):
    assert contained(RULES[name], types, seed=2, subnormal=True).all()


@each_rule()
def test_single_precision_of_rounded_inputs_stays_within_k1(name, types):
    rule = RULES[name]
    exact = list(rule.operands(3, types))
    _, k1 = traced(rule, exact, k1=True)
    y = rule.function(*single(exact, types))
    assert (np.abs(y - truth(rule, exact)) <= U * k1).all()


@each_rule()
def test_k0_is_what_the_documented_charge_says_and_k1_is_no_less(name, types):
    rule = RULES[name]
    x = double(single(rule.operands(4, types), types))
    z, k0 = traced(rule, x)
    _, k1 = traced(rule, x, k1=True)
    documented = np.broadcast_to(rule.bound(z, *x), z.shape)
    assert (k0 <= documented * (1 + 8 * np.finfo(float).eps)).all()
    assert (k1 >= k0).all()


@each_rule()
def test_the_value_is_that_of_double_precision_up_to_the_order_of_its_operations(name, types):
    rule = RULES[name]
    x = double(single(rule.operands(5, types), types))
    value, k0 = traced(rule, x)
    assert (np.abs(value - rule.function(*x)) <= 2 * U_DOUBLE * k0).all()


def without(charge):
    """The rule of multiplication without its charge, or without the operands' errors."""

    def rule(x, y):
        carried = tracked_rules.scaled(x, abs(y.value)) + tracked_rules.scaled(y, abs(x.value))
        z = x.value * y.value
        return Tracked(z, carried) if charge else tracked_rules.rounded(z, 3, 0 * carried)

    return rule


@pytest.mark.parametrize("types", PAIRS, ids=str)
def test_a_dropped_charge_is_noticed(types, monkeypatch):
    monkeypatch.setitem(UFUNCS, np.multiply, without(charge=True))
    assert not contained(RULES["multiply"], types, seed=1).all()


def test_dropped_errors_of_operands_are_noticed(monkeypatch):
    monkeypatch.setitem(UFUNCS, np.multiply, without(charge=False))
    rule, types = RULES["multiply"], ("float32", "float32")
    exact = list(rule.operands(3, types))
    _, k1 = traced(rule, exact, k1=True)
    y = rule.function(*(x.astype(np.float32) * np.float32(1 + 4 * U) for x in exact))
    assert not (np.abs(y - truth(rule, exact)) <= U * k1).all()


COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)
PREDICATES = (np.isnan, np.isfinite, np.isinf, np.sign, np.signbit, np.logical_not)


def test_comparisons_and_predicates_look_at_the_values_alone():
    x, y = np.array([-1.0, 0.0, np.nan, np.inf]), np.array([0.0, 0.0, 1.0, 2.0])
    for function in COMPARISONS:
        assert np.array_equal(function(Tracked(x), Tracked(y)), function(x, y))
    for function in PREDICATES:
        assert np.array_equal(function(Tracked(x)), function(x), equal_nan=True)


def test_every_rule_of_a_ufunc_is_tested():
    tested = {key for rule in RULES.values() for key in rule.keys}
    ufuncs = {key for key in tested if isinstance(key, np.ufunc)}
    assert ufuncs | {*COMPARISONS, *PREDICATES} == set(UFUNCS)
    assert tested - ufuncs <= set(FUNCTIONS)


def test_an_error_of_the_other_operand_is_enough_at_a_tie():
    one, off = Tracked(np.ones(1)), Tracked(np.ones(1), np.full((1, 2), 5.0))
    for function in (np.maximum, np.minimum):
        assert function(off, one).errors.tolist() == [[5.0, 5.0]]


@pytest.mark.parametrize("function", [np.maximum, np.minimum], ids=lambda f: f.__name__)
def test_at_a_tie_the_larger_error_counts(function):
    one, off = Tracked(np.ones(1)), Tracked(np.ones(1), np.full((1, 2), 5.0))
    assert function(one, off).errors.tolist() == [[5.0, 5.0]]


@pytest.mark.parametrize("function", [np.maximum, np.minimum], ids=lambda f: f.__name__)
def test_nan_goes_through_the_extremes(function):
    assert np.isnan(function(Tracked(np.full(1, np.nan)), np.ones(1)).value).all()
