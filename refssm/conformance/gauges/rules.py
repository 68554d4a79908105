"""Error rules of NumPy's functions on tracked arrays: each adds c·|z| (`docs/judge_rules.md`).

c: x±y 1; x·y 1, complex by complex 3; 1/x 1, complex 4; x/y 1, by a complex y 7; sqrt 1, complex 4;
library functions 4, complex 6 (NumPy's float32 exp errs by up to 3.3 u, log by 4.2 u); each term of
a sum of n terms 1 + ⌈log2 n⌉. Importing this module registers the rules.
"""

from functools import lru_cache
from math import ceil, log2, prod

import numpy as np

from refssm._numerics.contraction import einsum
from refssm.conformance.gauges.tracked import (
    FUNCTIONS,
    UFUNCS,
    Tracked,
    jumped,
    largest_parts,
    least_rounding,
    lifted,
    met,
    modulus,
    moved,
    multiplied,
    rounded,
    scaled,
    spread,
    summed,
    without_digits,
)


def rule(table, *keys):
    """Decorator: register one rule for several functions in `table`."""

    def register(function):
        table.update(dict.fromkeys(keys, function))
        return function

    return register


def product_charge(*values):
    """Roundings of one product: 3 for complex times complex, else 1."""
    return 3 if sum(v.dtype.kind == "c" for v in values) > 1 else 1


def tree(n):
    """Roundings on the longest path of a balanced sum of n terms: 1 + ⌈log2 n⌉, or 0 if n ≤ 1."""
    return 1 + ceil(log2(n)) if n > 1 else 0


def _sum_of_two(function):
    """The rule of x ± y."""
    return lambda x, y: summed(rounded(function(x.value, y.value), 1, x.errors + y.errors), x, y)


UFUNCS[np.add], UFUNCS[np.subtract] = _sum_of_two(np.add), _sum_of_two(np.subtract)
UFUNCS[np.negative] = lambda x: Tracked(-x.value, x.errors, x.parts)
UFUNCS[np.positive] = lambda x: x
UFUNCS[np.conjugate] = lambda x: x.conj()


@rule(UFUNCS, np.absolute)
def _absolute(x):
    return rounded(abs(x.value), 4 if np.iscomplexobj(x.value) else 0, x.errors)


@rule(UFUNCS, np.multiply)
def _multiply(x, y):
    # The term u·kx·ky stays: if both factors cancel to zero, it is the whole error of the product.
    carried = x.errors * spread(y) + scaled(y, abs(x.value))
    charge = product_charge(x.value, y.value)
    return multiplied(rounded(x.value * y.value, charge, carried), x, y, charge)


@rule(UFUNCS, np.true_divide)
def _divide(x, y):
    z, scale = x.value / y.value, 1 / abs(y.value)
    carried = scaled(x, scale) + scaled(y, abs(z) * scale)
    if not np.iscomplexobj(y.value):  # NumPy multiplies a complex x by 1/y
        return without_digits(y, rounded(z, 2 if np.iscomplexobj(x.value) else 1, carried))
    # x y*/|y|² and Smith's form: a numerator that underflows is then divided by |y|².
    # If |y|² underflows too, only Smith's form works; it divides by |y|.
    floor = modulus(np.zeros(()))
    square = np.where(floor * scale**2 <= 1, scale**2, scale)
    underflow = 7 * floor * np.maximum(scale, square)
    return without_digits(y, rounded(z, 7, carried + underflow[..., None]))


@rule(UFUNCS, np.power, np.float_power)
def _power(x, y):
    if not np.all(y.value == np.round(np.real(y.value))) or y.errors.any():
        raise TypeError("no error rule for numpy.power but with constant integer exponents")
    z = x.value**y.value
    ratio = z / np.where(x.value == 0, 1, x.value)
    slope = abs(y.value * np.where(x.value == 0, y.value == 1, ratio))
    squarings = np.maximum(1, 2 * np.ceil(np.log2(np.maximum(1, abs(y.value)))))
    result = rounded(z, product_charge(x.value, x.value) * squarings, scaled(x, slope))
    return without_digits(x, result) if np.any(y.value < 0) else result


def pointwise(function, derivative, charge=(4, 6), singular=False):
    """The rule of a library function; `charge` is its error in u for (real, complex) results."""

    def apply(x):
        z = function(x.value)
        slope = abs(derivative(x.value, z))[..., None]
        carried = np.where(x.errors == 0, 0, slope * x.errors)  # avoids 0·∞
        result = rounded(z, charge[np.iscomplexobj(z)], carried)
        return without_digits(x, result) if singular else result

    return apply


SMOOTH = {
    np.exp: lambda x, z: z,
    np.expm1: lambda x, z: z + 1,
    np.square: lambda x, z: 2 * x,
    np.tanh: lambda x, z: 1 - z * z,
    np.arctan: lambda x, z: 1 / (1 + x * x),
    np.sin: lambda x, z: np.cos(x),
    np.cos: lambda x, z: np.sin(x),
    np.sinh: lambda x, z: np.cosh(x),
    np.cosh: lambda x, z: np.sinh(x),
}
SINGULAR = {  # infinite or with infinite slope at 0
    np.log: (lambda x, z: 1 / x, (4, 6)),
    np.log2: (lambda x, z: 1 / x / np.log(2), (4, 6)),
    np.sqrt: (lambda x, z: 0.5 / z, (1, 4)),
    np.reciprocal: (lambda x, z: z * z, (1, 4)),
}
for _f, _d in SMOOTH.items():
    UFUNCS[_f] = pointwise(_f, _d)
for _f, (_d, _c) in SINGULAR.items():
    UFUNCS[_f] = pointwise(_f, _d, _c, singular=True)


@rule(UFUNCS, np.log1p)
def _log1p(x):
    if np.iscomplexobj(x.value):
        raise TypeError("no error rule for numpy.log1p of complex numbers: it has no digits near 0")
    result = pointwise(np.log1p, lambda v, z: 1 / (1 + v))(x)
    return without_digits(Tracked(1 + x.value, x.errors), result)


@rule(UFUNCS, np.arctanh)
def _arctanh(x):
    # Infinite at ±1. NumPy's complex arctanh errs by at most 4.1 u (docs/operators/diagonal.md).
    result = pointwise(np.arctanh, lambda v, z: 1 / (1 - v * v))(x)
    return without_digits(Tracked(1 - x.value * x.value, scaled(x, 2 * abs(x.value))), result)


def extreme(function):
    """The rule of maximum and minimum: the error of the chosen operand, the larger at a tie.

    The other operand, which its error may carry beyond the chosen one, counts by how far beyond.
    """

    def apply(x, y):
        z = function(x.value, y.value)
        gap = jumped(np.abs(x.value - y.value))[..., None]
        mine, theirs = ((z == v.value)[..., None] for v in (x, y))
        errors = [
            np.where(chosen, v.errors, np.where(gap > 0, np.fmax(v.errors - gap, 0), 0))
            for chosen, v in ((mine, x), (theirs, y))
        ]
        return Tracked(z, np.maximum(*errors))

    return apply


UFUNCS[np.maximum], UFUNCS[np.minimum] = extreme(np.maximum), extreme(np.minimum)
for _f in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal):
    UFUNCS[_f] = lambda x, y, f=_f: f(x.value, y.value)
for _f in (np.isnan, np.isfinite, np.isinf, np.sign, np.signbit, np.logical_not):
    UFUNCS[_f] = lambda x, f=_f: f(x.value)


@rule(FUNCTIONS, np.sum)
def _sum(x, axis=None, keepdims=False):
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis)
    axes = tuple(int(a) % x.ndim for a in axes)
    charge = tree(prod(x.shape[a] for a in axes))
    errors = x.errors + (charge * modulus(x.value))[..., None]
    z = np.sum(x.value, axis=axes, keepdims=keepdims)
    met(np.abs(z))
    return Tracked(z, np.sum(errors, axis=axes, keepdims=keepdims))


@rule(FUNCTIONS, np.einsum)
def _einsum(subscripts, *operands, optimize=False):
    del optimize  # it only changes the order of the sums
    operands = [lifted(x) for x in operands]
    values = [x.value for x in operands]
    summed = _summed(subscripts, *(v.shape for v in values))
    charge = tree(summed) + product_charge(*values) * (len(values) - 1)
    z = einsum(subscripts, *values)
    met(np.abs(z))
    moduli = [np.abs(v) for v in values]
    spreads = [spread(x) for x in operands[:-1]]
    size = np.maximum(einsum(subscripts, *moduli), least_rounding(z.dtype) * max(1, summed))
    if len(operands) == 2:  # each product has one factor with errors, K0 and K1 at once
        first, second = _with_errors(subscripts)
        x, y = operands
        errors = einsum(first, x.errors, moduli[1]) + einsum(second, spreads[0], y.errors)
        return Tracked(z, (charge * size)[..., None] + errors)
    errors = np.empty((*z.shape, 2), size.dtype)
    for k in (0, 1):
        before = [s[..., k] for s in spreads]
        total = charge * size
        for i, x in enumerate(operands):
            total += einsum(subscripts, *before[:i], x.errors[..., k], *moduli[i + 1 :])
        errors[..., k] = total
    return Tracked(z, errors)


@lru_cache(4096)
def _with_errors(subscripts: str) -> tuple[str, str]:
    """The sum of products of two, with errors in the first or in both; Z is their axis."""
    given, out = subscripts.replace(" ", "").split("->")
    x, y = given.split(",")
    return f"{x}Z,{y}->{out}Z", f"{x}Z,{y}Z->{out}Z"


@lru_cache(4096)
def _summed(subscripts, *shapes):
    """The number of terms of each sum."""
    if "->" not in subscripts:
        raise TypeError("no error rule for numpy.einsum without '->'")
    terms, out = subscripts.replace(" ", "").split("->")
    sizes = {}
    for term, shape in zip(terms.split(","), shapes, strict=True):
        for letter, n in zip(reversed(term.replace("...", "")), reversed(shape), strict=False):
            sizes[letter] = max(n, sizes.get(letter, 1))
    return prod(n for letter, n in sizes.items() if letter not in out)


@rule(UFUNCS, np.matmul)
def _matmul(x, y):
    if min(x.ndim, y.ndim) < 2:
        raise TypeError("no error rule for numpy.matmul of vectors: write an einsum")
    return np.einsum("...ij,...jk->...ik", x, y)


@rule(FUNCTIONS, np.cumsum)
def _cumsum(x, axis=None, dtype=None):
    if axis is None:
        raise TypeError("no error rule for numpy.cumsum without an axis")
    axis = axis % x.ndim
    z = np.cumsum(x.value, axis=axis, dtype=dtype)
    return Tracked(z, np.cumsum(x.errors + modulus(z)[..., None], axis=axis))


def structural(function):
    """The rule of a function that only moves entries, of one array or a sequence of arrays."""

    def apply(first, *args, **kwargs):
        if isinstance(first, list | tuple):
            xs = [lifted(x) for x in first]
            value = function([x.value for x in xs], *args, **kwargs)
            gauges = [function([x.errors[..., k] for x in xs], *args, **kwargs) for k in (0, 1)]
            parts = None
            if any(x.parts is not None for x in xs):
                parts = function([largest_parts(x) for x in xs], *args, **kwargs)
            return Tracked(value, np.stack(gauges, axis=-1), parts)
        return moved(lambda a: function(a, *args, **kwargs), lifted(first))

    return apply


for _f in (
    np.stack, np.concatenate, np.moveaxis, np.swapaxes, np.transpose, np.broadcast_to, np.reshape,
    np.expand_dims, np.squeeze, np.flip, np.repeat, np.tile, np.roll, np.tril, np.triu,
    np.diagonal, np.copy, np.take, np.take_along_axis,
):  # fmt: skip
    FUNCTIONS[_f] = structural(_f)


@rule(FUNCTIONS, np.argmax)
def _argmax(x, axis=None):
    return np.argmax(x.value, axis=axis)  # an index has no error; used to choose pivots


def _like(make):
    """The rule of empty_like and zeros_like: exact zeros, because unwritten memory has no error."""

    def apply(x, dtype=None, shape=None):
        return Tracked(make(lifted(x).value, dtype=dtype, shape=shape))

    return apply


def _where(condition, x, y):
    x, y = lifted(x), lifted(y)
    value = np.where(condition, x.value, y.value)
    chosen = np.expand_dims(np.broadcast_to(condition, value.shape), -1)
    parts = None
    if x.parts is not None or y.parts is not None:
        parts = np.where(condition, largest_parts(x), largest_parts(y))
    return Tracked(value, np.where(chosen, x.errors, y.errors), parts)


def _broadcast_arrays(*xs):
    shape = np.broadcast_shapes(*(np.shape(x) for x in xs))
    return tuple(np.broadcast_to(lifted(x), shape) for x in xs)


FUNCTIONS |= {
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.size,
    np.iscomplexobj: lambda x: np.iscomplexobj(x.value),
    np.result_type: lambda *xs: np.result_type(
        *(x.dtype if isinstance(x, Tracked) else x for x in xs)
    ),
    np.real: lambda x: x.real,
    np.imag: lambda x: x.imag,
    np.empty_like: _like(np.zeros_like),
    np.zeros_like: _like(np.zeros_like),
    np.broadcast_arrays: _broadcast_arrays,
    np.where: _where,
}
