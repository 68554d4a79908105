"""Small helpers on arrays of the card, of NumPy in the host build, and of any array namespace."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from refssm_gpu._launching.kernel import on_host, target
from refssm_gpu._launching.missing import require_card

HALVES = ("float16", "bfloat16")
ALIGNED = 16  # bytes of one load of a thread
Array = Any  # cupy.ndarray or numpy.ndarray


def namespace(*arrays: Array) -> Any:
    """The functions of the arrays' library, by the names of the array API standard."""
    return array_namespace(*arrays)


def empty(shape: Sequence[int], dtype, like: Array) -> Array:
    """New memory, contiguous, beside `like`; the kernel writes every entry."""
    return namespace(like).empty(tuple(shape), dtype=dtype)


def made_here() -> Array:
    """An empty array of the current device, or of NumPy in the host build."""
    return target().array(0)


def placed(x: np.ndarray) -> Array:
    """The array on the current card; in the host build the same array. NoCard says what lacks."""
    if not on_host():
        require_card("a model with the operators of the role gpu")
    return namespace(made_here()).asarray(x)


def fetched(x: Array) -> np.ndarray:
    """A copy in the processor's memory; an array of NumPy as it is."""
    return x if isinstance(x, np.ndarray) else x.get()


def contiguous(x: Array, dtype=None) -> Array:
    """`x` of this type in one piece of memory, last axis fastest, at an address of 16 bytes."""
    x = np.asarray(x) if isinstance(x, np.generic) else x  # NumPy's results without axes
    dtype = x.dtype if dtype is None else np.dtype(dtype)
    if x.dtype == dtype and x.flags.c_contiguous and address(x) % ALIGNED == 0:
        return x
    return x.astype(dtype, order="C", copy=True)


def expanded(x: Array, shape: Sequence[int], dtype=None) -> Array:
    """`x` broadcast to this shape, in one piece of memory and of this type."""
    return contiguous(namespace(x).broadcast_to(x, tuple(shape)), dtype)


def address(x: Array) -> int:
    """The address of the first entry, on the card or in NumPy's memory."""
    return x.ctypes.data if isinstance(x, np.ndarray) else x.data.ptr


def common(*arrays: Array | None) -> np.dtype:
    """The type to which these arrays promote; absent ones are None."""
    return np.result_type(*(x.dtype for x in arrays if x is not None))


def real_type(kind: Any, xp: Any = np) -> Any:
    """The real type of the same precision; `xp` is the library whose type `kind` is."""
    if isinstance(kind, np.dtype):  # with bfloat16, which `isdtype` refuses
        compound = kind.kind == "c"
    else:
        compound = xp.isdtype(kind, "complex floating")
    return xp.finfo(kind).dtype if compound else kind


def transposed(M: Array) -> Array:
    """The last two axes exchanged, without a copy."""
    return namespace(M).matrix_transpose(M)


def is_complex(x: Array) -> bool:
    """Whether the numbers are complex; some libraries' types have no `kind`, bfloat16 only that."""
    kind = getattr(x.dtype, "kind", "")
    return kind == "c" if kind else namespace(x).isdtype(x.dtype, "complex floating")


def folded(cotangent: Array, shape: Sequence[int]) -> Array:
    """Sum `cotangent` over the axes along which an array of this shape was broadcast."""
    extra = cotangent.ndim - len(shape)
    stretched = (i for i, n in enumerate(shape) if n == 1 != cotangent.shape[extra + i])
    axes = (*range(extra), *(extra + i for i in stretched))
    whole = summed(cotangent, axes) if axes else cotangent
    return namespace(whole).reshape(whole, tuple(shape))


def unbroadcast(cotangent: Array, primal: Array) -> Array:
    """Sum `cotangent` over the broadcast axes of `primal`; real for a real `primal`."""
    own = folded(cotangent, primal.shape)
    if is_complex(primal):
        return own if is_complex(own) else own + 0j
    return namespace(own).real(own) if is_complex(own) else own


def summed(x: Array, axes: tuple[int, ...]) -> Array:
    """The sum over these axes, which stay with length 1; halves are added in single precision."""
    xp = namespace(x)
    if str(x.dtype) not in HALVES:
        return xp.sum(x, axis=axes, keepdims=True)
    return xp.sum(x.astype(np.float32), axis=axes, keepdims=True).astype(x.dtype)


def unbroadcast_each(cotangents: Sequence[Array], primals: Sequence[Array]) -> tuple[Array, ...]:
    """`unbroadcast` each cotangent to the shape of its argument."""
    return tuple(unbroadcast(g, x) for g, x in zip(cotangents, primals, strict=True))


def unbroadcast_and_round(
    cotangents: Sequence[Array], primals: Sequence[Array]
) -> tuple[Array, ...]:
    """`unbroadcast` each cotangent, and round it to the type of its argument only then."""
    xp = namespace(*primals)
    pairs = zip(unbroadcast_each(cotangents, primals), primals, strict=True)
    return tuple(xp.astype(xp.asarray(g), x.dtype, copy=False) for g, x in pairs)


def widened(*arrays: Array) -> tuple[Array, ...]:
    """The arrays in double precision, each real or complex as it is."""
    xp = namespace(*arrays)
    kinds = ((x, xp.complex128 if is_complex(x) else xp.float64) for x in arrays)
    return tuple(xp.astype(x, kind, copy=False) for x, kind in kinds)


def in_type_of(x: Array, *made_of: Array) -> Array:
    """`x` in the type to which these promote: its real part if all that it is made of is real."""
    kind = common(*made_of)
    return contiguous(namespace(x).real(x) if is_complex(x) and kind.kind != "c" else x, kind)


def accumulated(kind: np.dtype) -> np.dtype:
    """The type in which a kernel computes."""
    return np.dtype(np.float32) if kind.name in HALVES else kind


def blocks(count: int, block: int) -> int:
    """How many blocks of this size are needed for `count` things."""
    return -(-count // block)


def rows(shape: Sequence[int], core: int) -> int:
    """How many members a batch has: the product of all axes but the last `core`."""
    return prod(shape[: len(shape) - core])
