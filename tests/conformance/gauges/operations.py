"""Operations with an error rule: operands, exact value, and the charge from docs/judge_rules.md."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import ceil, log2

import numpy as np
from mpmath import mp
from scipy.special import erf

from refssm.activations import sigmoid

FLOOR = float(np.finfo(np.float32).tiny)
COUNT = 400
REAL = (("float32",),)
COMPLEX = (*REAL, ("complex64",))
PAIRS = tuple(product(("float32", "complex64"), repeat=2))


def charged(real, complex_):
    """Rounding errors of the result: the documented charge for real or complex."""
    return lambda z, *_: (complex_ if np.iscomplexobj(z) else real) * size(z)


def size(z):
    """|z|, at least the smallest normal number; for complex numbers both parts may underflow."""
    return np.maximum(np.abs(z), FLOOR * (1.5 if np.iscomplexobj(z) else 1))


def tree(n):
    """Documented number of roundings of a balanced sum of n terms."""
    return 1 + ceil(log2(n)) if n > 1 else 0


def many(values):
    """Charge of one product: 3 if two factors are complex."""
    return 3 if sum(map(np.iscomplexobj, values)) > 1 else 1


def divided(z, x, y):
    """1; complex by real 2; by complex 7, plus an underflow of the numerator over |y|²."""
    if not np.iscomplexobj(y):
        return (2 if np.iscomplexobj(x) else 1) * size(z)
    scale = 1 / np.abs(y)
    return 7 * (size(z) + FLOOR * np.maximum(scale, scale**2))


def summed(axes):
    """A balanced sum: its depth times the sum of all moduli."""

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
    """An operation, its operands, and the error that its documented charge allows."""

    function: Callable
    bound: Callable
    keys: tuple = ()
    shapes: tuple = ((COUNT,),)
    types: tuple = COMPLEX
    exact: Callable | None = None  # in mpmath; otherwise the operation in long double
    positive: bool = False
    highest: int = 3  # log2 of the largest modulus
    small: bool = True  # subnormal operands are useful

    def operands(self, seed, dtypes, subnormal=False):
        rng = np.random.default_rng(seed)
        for i, (shape, dtype) in enumerate(zip(self.shapes, dtypes, strict=True)):
            low, high = (
                (-149, -120)
                if subnormal and i == 0
                else (-1, 1)
                if subnormal
                else (-9, self.highest)
            )
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


LOW = (20, 1, 4)  # broadcasts against HIGH, with another rank
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
    "log1p": library(np.log1p, mp.log1p, positive=True, types=REAL),
    "arctanh": library(np.arctanh, mp.atanh, types=(("complex64",),)),
    "arctanh within 1": library(np.arctanh, mp.atanh, highest=0),
    "erf": library(erf, mp.erf, types=REAL),
    "logistic": library(sigmoid, lambda x: 1 / (1 + mp.exp(-x)), types=REAL),
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
