from dataclasses import dataclass
from itertools import product
from math import ceil, log2

import numpy as np
import pytest
from mpmath import mp

from refssm.conformance import tracked_rules
from refssm.conformance.tracked import FUNCTIONS, UFUNCS, Tracked, lifted, tracing

U, U_DOUBLE = 2.0**-24, 2.0**-53
FLOOR = float(np.finfo(np.float32).tiny)
COUNT = 400
REAL, COMPLEX = (("float32",),), (("float32",), ("complex64",))
PAIRS = tuple(product(("float32", "complex64"), repeat=2))


def charged(real, complex_):
    """Roundings of the result: the documented charge of its kind."""
    return lambda z, *_: (complex_ if np.iscomplexobj(z) else real) * size(z)


def size(z):
    return np.maximum(np.abs(z), FLOOR)


def tree(n):
    """Roundings of a balanced sum of n terms, as documented."""
    return 1 + ceil(log2(n)) if n > 1 else 0


def many(values):
    """Charge of one product: 3 where two factors are complex."""
    return 3 if sum(map(np.iscomplexobj, values)) > 1 else 1


def divided(z, x, y):
    """1, by a complex number 7, and there an underflow of the numerator over |y|²."""
    if not np.iscomplexobj(y):
        return size(z)
    scale = 1 / np.abs(y)
    return 7 * (size(z) + FLOOR * np.maximum(scale, scale**2))


def summed(axes):
    """A balanced sum: its depth times every term."""

    def bound(z, x):
        n = np.prod([x.shape[a] for a in axes], dtype=int)
        return tree(int(n)) * np.sum(size(x), axis=axes).reshape(z.shape)

    return bound


def contracted(subscripts, n):
    """A balanced sum of n products."""

    def bound(z, *values):
        depth = tree(n) + many(values) * (len(values) - 1)
        terms = np.einsum(subscripts, *map(np.abs, values))
        return depth * np.maximum(terms, FLOOR * n)

    return bound


@dataclass(frozen=True)
class Rule:
    """An operation, where its operands come from, and what its documented charge allows."""

    function: object
    bound: object
    keys: tuple = ()
    shapes: tuple = ((COUNT,),)
    types: tuple = COMPLEX
    exact: object = None  # in mpmath; otherwise the operation itself in long double
    positive: bool = False
    small: bool = True  # subnormal operands make sense

    def operands(self, seed, dtypes, subnormal=False):
        rng = np.random.default_rng(seed)
        for i, (shape, dtype) in enumerate(zip(self.shapes, dtypes, strict=True)):
            low, high = (-149, -120) if subnormal and i == 0 else (-1, 1) if subnormal else (-9, 3)
            modulus = 2.0 ** rng.uniform(low, high, shape)
            turns = rng.random(shape) if dtype == "complex64" else rng.integers(0, 2, shape) / 2
            phase = 1.0 if self.positive and dtype == "float32" else np.exp(2j * np.pi * turns)
            x = modulus * phase
            yield x if dtype == "complex64" else np.real(x)


def library(function, exact, charge=(4, 6), **fields):
    return Rule(function, charged(*charge), (function,), exact=exact, **fields)


def pair(function, bound, types=PAIRS, shapes=((COUNT,), (COUNT,)), **fields):
    return Rule(function, bound, (function,), shapes, types, **fields)


def power(k, roundings):
    return Rule(
        lambda x: x**k, charged(roundings, 3 * roundings), (np.power,), small=k > 0,
        exact=lambda x: x**k,
    )  # fmt: skip


def contraction(subscripts, n, *shapes):
    types = ("float32", "complex64")
    return Rule(
        lambda *xs: np.einsum(subscripts, *xs), contracted(subscripts, n), (np.einsum,), shapes,
        tuple(product(types, repeat=len(shapes))),
    )  # fmt: skip


LOW = (20, 1, 4)  # broadcast against HIGH, another rank
HIGH = (5, 4)
RULES = {
    "add": pair(np.add, charged(1, 1)),
    "subtract": pair(np.subtract, charged(1, 1)),
    "multiply": pair(np.multiply, lambda z, x, y: many((x, y)) * size(z)),
    "divide": pair(np.true_divide, divided),
    "add of unequal ranks": pair(np.add, charged(1, 1), shapes=(LOW, HIGH)),
    "multiply of unequal ranks": pair(
        np.multiply, lambda z, x, y: many((x, y)) * size(z), shapes=(HIGH, LOW)
    ),
    "divide of unequal ranks": pair(np.true_divide, divided, shapes=(LOW, HIGH)),
    "divide by a number": pair(np.true_divide, divided, shapes=((COUNT,), ())),
    "negative": Rule(np.negative, charged(0, 0), (np.negative,)),
    "positive": Rule(np.positive, charged(0, 0), (np.positive,)),
    "conjugate": Rule(np.conjugate, charged(0, 0), (np.conjugate,)),
    "absolute": Rule(np.absolute, lambda z, x: 4 * np.iscomplexobj(x) * size(z), (np.absolute,)),
    "maximum": pair(np.maximum, charged(0, 0), types=(("float32",) * 2,)),
    "minimum": pair(np.minimum, charged(0, 0), types=(("float32",) * 2,), shapes=(LOW, HIGH)),
    "exp": library(np.exp, mp.exp),
    "expm1": library(np.expm1, mp.expm1),
    "square": library(np.square, lambda x: x * x),
    "tanh": library(np.tanh, mp.tanh),
    "arctan": library(np.arctan, mp.atan),
    "sin": library(np.sin, mp.sin),
    "cos": library(np.cos, mp.cos),
    "sinh": library(np.sinh, mp.sinh),
    "cosh": library(np.cosh, mp.cosh),
    "log": library(np.log, mp.log, positive=True),
    "log2": library(np.log2, lambda x: mp.log(x) / mp.log(2), positive=True),
    "log1p": library(np.log1p, mp.log1p, positive=True),
    "sqrt": library(np.sqrt, mp.sqrt, (1, 4), positive=True),
    "reciprocal": library(np.reciprocal, lambda x: 1 / x, (1, 4), small=False),
    "power 0": power(0, 1),
    "power 1": power(1, 1),
    "power 2": power(2, 2),
    "power 3": power(3, 4),
    "power 5": power(5, 6),
    "power -1": power(-1, 1),
    "power -2": power(-2, 2),
    "float_power": Rule(
        lambda x: np.float_power(x, 3), charged(4, 12), (np.float_power,), exact=lambda x: x**3
    ),
    "sum of all": Rule(np.sum, summed((0, 1)), (np.sum,), ((20, 20),)),
    "sum of rows": Rule(lambda x: np.sum(x, axis=-1), summed((1,)), (), ((200, 13),)),
    "sum of columns": Rule(
        lambda x: x.sum(axis=-2, keepdims=True), summed((0,)), (), ((8, 50),)
    ),
    "sum of two axes": Rule(lambda x: np.sum(x, axis=(0, -1)), summed((0, 2)), (), ((4, 30, 5),)),
    "cumsum": Rule(
        lambda x: np.cumsum(x, axis=-2), lambda z, x: np.cumsum(size(z), axis=-2), (np.cumsum,),
        ((30, 12),),
    ),
    "inner product": contraction("...n,...n->...", 9, (40, 9), (9,)),
    "outer product": contraction("i,j->ij", 1, (20,), (20,)),
    "three factors": contraction("...l,ln,n->...n", 6, (30, 6), (6, 5), (5,)),
    "trace": contraction("...ii->...", 7, (40, 7, 7)),
    "matmul": Rule(
        np.matmul, contracted("...ij,...jk->...ik", 7), (np.matmul,), ((4, 5, 7), (7, 8)), PAIRS
    ),
}  # fmt: skip
MIXED = ("complex64", "float32"), ("float32", "complex64")
SMITH = "complex by real is Smith's division in NumPy: 1/y, then a product; the rule charges 1"
FLOORED = "both parts of complex by real may underflow: sqrt 2 of the floor, the rule charges 1"
LOG1P = "NumPy's complex log1p is log|1 + x|: it has no digits for small x, the rule charges 6"


def known(name, types, test):
    """Why refssm fails here, or ""."""
    if name == "log1p" and types == ("complex64",) and test != "charge":
        return LOG1P
    if name.startswith("divide") and types == MIXED[0]:
        return {"k0": SMITH, "subnormal": FLOORED}.get(test, "")
    products = name.startswith("multiply") or name == "outer product"
    return FLOORED if products and types in MIXED and test == "subnormal" else ""


def each_rule(test):
    """A case for every rule in every combination of types."""
    cases = []
    for name, rule in RULES.items():
        for types in rule.types if rule.small or test != "subnormal" else ():
            reason = known(name, types, test)
            marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
            label = f"{name}, {', '.join(types)}"
            cases.append(pytest.param(name, types, marks=marks, id=label))
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
    """Value and error bound of one run in double precision; inputs exact, or off by a rounding."""
    start = [np.abs(x) if k1 else np.zeros(x.shape) for x in arrays]
    errors = [np.stack([np.zeros(s.shape), s], axis=-1) for s in start]
    with tracing(unit=U, floor=FLOOR):
        y = rule.function(*map(Tracked, arrays, errors))
    return y.value, y.errors[..., int(k1)]


def single(arrays, dtypes):
    """Rounded, and no -0: mpmath has none, and it decides the side of a branch cut."""
    return [np.asarray(x).astype(t) + np.zeros((), t) for x, t in zip(arrays, dtypes, strict=True)]


def double(arrays):
    return [x.astype(np.result_type(x, np.float64)) for x in arrays]


def contained(rule, types, seed, subnormal=False):
    """Whether float32 is within u·K0 of the truth, for exact inputs."""
    x = single(rule.operands(seed, types, subnormal), types)
    _, k0 = traced(rule, double(x))
    with np.errstate(all="ignore"):
        y = rule.function(*x)
        return np.abs(y - truth(rule, double(x))) <= U * k0


@each_rule("k0")
def test_single_precision_stays_within_k0(name, types):
    assert contained(RULES[name], types, seed=1).all()


@each_rule("subnormal")
def test_single_precision_stays_within_k0_among_subnormals(name, types):
    assert contained(RULES[name], types, seed=2, subnormal=True).all()


@each_rule("k1")
def test_single_precision_of_rounded_inputs_stays_within_k1(name, types):
    rule = RULES[name]
    exact = list(rule.operands(3, types))
    _, k1 = traced(rule, exact, k1=True)
    y = rule.function(*single(exact, types))
    assert (np.abs(y - truth(rule, exact)) <= U * k1).all()


@each_rule("charge")
def test_k0_is_what_the_documented_charge_says_and_k1_is_no_less(name, types):
    rule = RULES[name]
    x = double(single(rule.operands(4, types), types))
    z, k0 = traced(rule, x)
    _, k1 = traced(rule, x, k1=True)
    documented = np.broadcast_to(rule.bound(z, *x), z.shape)
    assert (k0 <= documented * (1 + 8 * np.finfo(float).eps)).all()
    assert (k1 >= k0).all()


@each_rule("charge")
def test_the_value_is_that_of_double_precision_up_to_the_order_of_its_operations(name, types):
    rule = RULES[name]
    x = double(single(rule.operands(5, types), types))
    value, k0 = traced(rule, x)
    assert (np.abs(value - rule.function(*x)) <= 2 * U_DOUBLE * k0).all()


def without(charge):
    """The rule of multiplication with a charge dropped, or with the operands' errors."""

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
    assert lifted(Tracked(1.0)).value == 1
