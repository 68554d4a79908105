"""Rows of matrices as vectors whose entries are adjacent in memory.

A gufunc's arrays may have any stride, so its loops over `x[k, n]` are compiled to gathers and
scatters, or one entry at a time where they are complex. A loop over a row from `row` uses SIMD.
"""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# (Numba and llvmlite make many attributes when they are imported; pyright does not see them)

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def row(typing, matrix, k):
    """Row k, a vector that does not keep the matrix alive; only where `by_rows(matrix)`."""
    vector = types.Array(matrix.dtype, 1, "C")

    def generate(context, builder, signature, arguments):
        given = context.make_array(matrix)(context, builder, arguments[0])
        place = context.cast(builder, arguments[1], signature.args[1], types.intp)
        offset = builder.mul(place, cgutils.unpack_tuple(builder, given.strides)[0])
        result = context.make_array(vector)(context, builder)
        context.populate_array(
            result,
            data=cgutils.pointer_add(builder, given.data, offset),
            shape=cgutils.pack_array(builder, [cgutils.unpack_tuple(builder, given.shape)[1]]),
            strides=cgutils.pack_array(builder, [given.itemsize]),
            itemsize=given.itemsize,
            meminfo=None,
        )
        return result._getvalue()

    return vector(matrix, k), generate


@intrinsic
def adjacent(typing, vector):
    """The same vector for SIMD; it does not keep the memory alive; for adjacent entries only."""
    same = types.Array(vector.dtype, 1, "C")

    def generate(context, builder, signature, arguments):
        given = context.make_array(vector)(context, builder, arguments[0])
        result = context.make_array(same)(context, builder)
        context.populate_array(
            result,
            data=given.data,
            shape=given.shape,
            strides=given.strides,
            itemsize=given.itemsize,
            meminfo=None,
        )
        return result._getvalue()

    return same(vector), generate


SHORT = 128  # bytes; for shorter rows the loop over one entry after another is faster


@njit
def by_rows(matrix):
    """True if entries of a row are adjacent and rows are long enough for SIMD."""
    adjacent = matrix.strides[1] == matrix.itemsize
    return adjacent and matrix.shape[1] * matrix.itemsize >= SHORT
