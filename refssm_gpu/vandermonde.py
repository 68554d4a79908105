"""CuPy mirrors of refssm.vandermonde: two tables of powers in shared memory and their product.

`sums`, `moments` and those after them are for all kernels that are sums of powers. Coefficients and
exponents are brought to double precision, which costs little, for there are only n of them in a
row; the CUDA kernels round each table once to the precision of the result.
"""

from math import prod
from typing import Any

import numpy as np

from refssm.vandermonde import VANDERMONDE_KERNEL, VANDERMONDE_KERNEL_REAL
from refssm_gpu._algebra.parts import conj
from refssm_gpu._launching.arrays import (
    Array,
    blocks,
    common,
    contiguous,
    empty,
    expanded,
    namespace,
    real_type,
    unbroadcast_and_round,
)
from refssm_gpu._launching.checked import mirror
from refssm_gpu._launching.kernel import FIELDS, Kernel, record, target


@mirror(VANDERMONDE_KERNEL)
def vandermonde_kernel(v, x, *, l):
    """Tables are made in double precision, rounded once."""
    return sums(v, x, l=l, kind=common(v, x))


@mirror(VANDERMONDE_KERNEL)
def vandermonde_kernel_vjp(dk, v, x, *, l):
    del l  # dk has it
    return _gradients(dk, v, x)


def _gradients(dk, v, x):
    """dv and dx, rounded after the sum over broadcast axes."""
    first, second = moments(dk, x)
    return unbroadcast_and_round((first, conj(v) * second), (v, x))


@mirror(VANDERMONDE_KERNEL_REAL)
def vandermonde_kernel_real(v, x, *, l):
    """Sums no imaginary parts."""
    return sums(2 * v, x, l=l, kind=real_type(common(v, x)))


@mirror(VANDERMONDE_KERNEL_REAL)
def vandermonde_kernel_real_vjp(dk, v, x, *, l):
    del l  # dk has it
    real = namespace(dk).real(dk) if dk.dtype.kind == "c" else dk
    return tuple(2 * g for g in _gradients(real, v, x))


# Σ_n v_n e^{x_n k} and its transpose on the card


COLUMNS = 64  # of both tables' kernels, see vandermonde.cuh
ROWS = {"float32": 4, "complex64": 4, "float64": 2, "complex128": 2}  # of a thread; or 1
HEADS = 32  # times ROWS: rows of a block
RESIDENT = 2  # blocks for each multiprocessor, below which blocks are made smaller
# times of a block
PIECE = {"float32": 4096, "complex64": 4096, "float64": 2048, "complex128": 2048}
_PART = {"complex64": "float32", "complex128": "float64"}
_COMPLEX = {"float32": "complex64", "float64": "complex128"}

_SUMS = Kernel(
    "vandermonde/vandermonde.cuh",
    "vandermonde",
    tuple(
        (kind, part, rows)
        for kind in FIELDS
        for part in ((0, 1) if kind in _PART else (0,))
        for rows in (1, ROWS[kind])
    ),
    block=256,
    registers=128,
    double_inside=True,
    bound="flops",
)
_MOMENTS = Kernel(
    "vandermonde/vandermonde_moments.cuh",
    "vandermonde_moments",
    tuple((kind, d) for kind in FIELDS for d in dict.fromkeys((kind, _PART.get(kind, kind)))),
    block=128,
    registers=168,
    double_inside=True,
    bound="flops",
)
_SIZES = record("l", "n", "tiles", "backwards")
_MOMENT_SIZES = record("l", "n", "pieces", "stride", "skip", "backwards")


def sums(
    v: Array,
    x: Array,
    *,
    l: int,
    kind: Any,
    turned: Array | None = None,
    rising: Array | None = None,
) -> Array:
    """Σ_n v_n e^{x_n k}, k = 0 … l−1, of this type; of a real type: the real part.

    `v` and `x` may be in double precision for any `kind`. Where `turned` is true a mode is
    v_n (−e^{x_n})^k, and where `rising` is true v_n e^{x_n (l−1−k)}; both broadcast to `x`.
    """
    kind = np.dtype(kind)
    shape = np.broadcast_shapes(v.shape[:-1], x.shape[:-1])
    n, rows = x.shape[-1], prod(shape)
    compound = "c" in (kind.kind, v.dtype.kind, x.dtype.kind)
    element = _element(kind, compound)
    wide = np.dtype(np.complex128 if compound else np.float64)
    v, x = (expanded(a, (*shape, n), wide) for a in (v, x))
    turned, rising = (_flags(f, x) for f in (turned, rising))
    k = empty((*shape, l), kind, x)
    for backwards in (0,) if rising is None else (0, 1):
        height = _height(element, rows, l)
        tiles = blocks(l, height * HEADS * COLUMNS)
        size = np.array([(l, n, max(1, tiles), backwards)], _SIZES)
        instance = (element, int(compound and kind.kind != "c"), height)
        _SUMS(instance, (rows * tiles,), v, x, turned, rising, k, size)
    return k


def _element(kind: np.dtype, compound: bool) -> str:
    """The type of the tables: of this precision, complex if a number in them is."""
    name: str = kind.name
    return _COMPLEX[name] if compound and name in _COMPLEX else name


def _height(element: str, rows: int, l: int) -> int:
    """Rows of a thread: many if that still gives the card enough blocks."""
    tall = ROWS[element]
    plenty = rows * (l // (tall * HEADS * COLUMNS)) >= RESIDENT * target().multiprocessors
    return tall if plenty else 1


def moments(
    dk: Array,
    x: Array,
    *,
    turned: Array | None = None,
    rising: Array | None = None,
    skip: int = 0,
) -> tuple[Array, Array]:
    """Σ_k dk_k E_nk* and Σ_k k dk_k E_nk*, E_nk = e^{x_n k}, in double precision.

    `dk` has all batch axes, and its precision is that of the sums inside. Where `turned` is true
    E_nk is (−e^{x_n})^k. Where `rising` is true k counts from the last time to the first. The first
    `skip` times are left out: k = 0 is the one after them.
    """
    found = moment_sums(dk, x, turned=turned, rising=rising, skip=skip)
    return found[..., 0, :], found[..., 1, :]


def moment_sums(
    dk: Array,
    x: Array,
    *,
    turned: Array | None = None,
    rising: Array | None = None,
    skip: int = 0,
) -> Array:
    """Both sums of `moments` in one array (…, 2, n)."""
    xp = namespace(x)
    shape, l, n = dk.shape[:-1], dk.shape[-1], x.shape[-1]
    compound = "c" in (dk.dtype.kind, x.dtype.kind)
    element = _element(dk.dtype, compound)
    wide = np.dtype(np.complex128 if compound else np.float64)
    x = expanded(x, (*shape, n), wide)
    turned, rising = (_flags(f, x) for f in (turned, rising))
    times, rows = max(0, l - skip), prod(shape)
    pieces = blocks(times, PIECE[element])
    dk, found = contiguous(dk), []
    for backwards in (0,) if rising is None else (0, 1):
        made = empty((rows, pieces, 2, n), wide, x)
        size = np.array([(times, n, max(1, pieces), l, skip, backwards)], _MOMENT_SIZES)
        grid = (rows * pieces * bool(n),)
        wanted = rising if backwards else None
        _MOMENTS((element, dk.dtype.name), grid, dk, x, turned, wanted, made, size)
        found.append(xp.reshape(xp.sum(made, axis=1), (*shape, 2, n)))
    return found[0] if rising is None else xp.where(rising[..., None, :] != 0, found[1], found[0])


def later_sums(dk: Array, x: Array, turned: Array | None = None) -> tuple[Array, Array]:
    """`moment_sums` from time 1 on, and the cotangent of time 0, which is 0 if there is none.

    With Ā = ±e^x: Σ_k k dk_k (Ā^{k−1})* is the sum of both, also for Ā = 0, and Σ_k dk_k (Ā^k)* the
    cotangent of time 0 plus Ā* times the first.
    """
    found = moment_sums(dk, x, turned=turned, skip=1)
    return found, contiguous(namespace(dk).sum(dk[..., :1], axis=-1), found.dtype)


def _flags(given: Array | None, x: Array) -> Array | None:
    """Flags of each mode, as the kernels take them."""
    return None if given is None else expanded(given, x.shape, np.uint8)
