"""Four neighbouring taps of a convolution, or one, over a part of the signal: the loops as LLVM's.

A register of inputs is loaded once for each tap, and the sums of products stay in registers. All
signals have adjacent entries; the taps need not.
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportOptionalCall=false
# pyright: reportArgumentType=false
# (Numba and llvmlite make attributes when they are imported; an intrinsic is called without its
# first parameter)

from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic

from refssm.jit._vectors.entries import Entries, bit


def _array(context, builder, signature, values, i):
    """Argument i: the address of its entries, and its strides in bytes."""
    kind = signature.args[i]
    array = context.make_array(kind)(context, builder, values[i])
    return array.data, cgutils.unpack_tuple(builder, array.strides, kind.ndim)


def _taps(kind, data, strides, j, count):
    """Taps j, j + 1, …"""
    k = kind.row(data, strides[0])
    return [kind.load(k, kind.further(j, p), 1) for p in range(count)]


def _over(builder, kind, first, end):
    """Where loops begin and end, and how many entries they take at once: registers, then one."""
    length = builder.sub(end, first)
    border = builder.add(first, builder.and_(length, length.type(-kind.wide)))
    return (first, border, kind.wide), (border, end, 1)


def _push(count):
    """The intrinsic for this number of taps."""

    def write(context, builder, signature, values):
        kind = Entries(context, builder, signature.args[0].dtype)
        (y, _), (x, _), k = (_array(context, builder, signature, values, i) for i in (0, 1, 4))
        y, x, (first, end), j = kind.row(y), kind.row(x), values[2:4], values[5]
        taps, fresh = _taps(kind, *k, j, count), bit(context, builder, values[6])
        for begin, stop, width in _over(builder, kind, first, end):
            factors = [tap.repeated(width) for tap in taps]
            with cgutils.for_range_slice(builder, begin, stop, first.type(width)) as (i, _):
                total, place = kind.load(y, i, width).unless(fresh), builder.sub(i, j)
                for p, factor in enumerate(factors):
                    total += factor * kind.load(x, kind.further(place, -p), width)
                kind.store(total, y, i)
        return context.get_dummy_value()

    @intrinsic
    def push(typingctx, y, x, first, end, k, j, fresh):
        """y_i = Σ_p k_{j+p} x_{i−j−p}, added to y_i unless `fresh`, for i from `first` to `end`."""
        place = types.intp
        return types.void(y, x, place, place, k, place, types.boolean), write

    return push


def _pull_back(count):
    """The intrinsic for this number of taps."""

    def write(context, builder, signature, values):
        kind = Entries(context, builder, signature.args[0].dtype)
        (du, _), (x, _), (dy, _), k, (terms, steps) = (
            _array(context, builder, signature, values, i) for i in (0, 1, 2, 6, 8)
        )
        du, x, dy = kind.row(du), kind.row(x), kind.row(dy)
        (first, end, shift), j, (row, column) = values[3:6], values[7], values[9:11]
        taps = [tap.conj() for tap in _taps(kind, *k, j, count)]
        fresh = bit(context, builder, values[11])
        sums = [kind.zero(kind.wide) for _ in taps]
        for begin, stop, width in _over(builder, kind, first, end):
            factors = [tap.repeated(width) for tap in taps]
            kept = [cgutils.alloca_once_value(builder, s.value) for s in sums]
            with cgutils.for_range_slice(builder, begin, stop, first.type(width)) as (m, _):
                own, place = kind.load(x, m, width).conj(), builder.add(m, shift)
                total = kind.load(du, m, width).unless(fresh)
                for p, factor in enumerate(factors):
                    later = kind.load(dy, kind.further(place, p), width)
                    total += factor * later
                    builder.store((kind.of(builder.load(kept[p])) + own * later).value, kept[p])
                kind.store(total, du, m)
            sums = [kind.of(builder.load(s)).total() for s in kept]
        for p, entry in enumerate(sums):
            start = builder.mul(kind.further(row, p), steps[0])
            kind.store(entry, kind.moved(kind.row(terms), start), column)
        return context.get_dummy_value()

    @intrinsic
    def pull_back(typingctx, du, x, dy, first, end, shift, k, j, terms, row, column, fresh):
        """du_m = Σ_p k_{j+p}* dy_{m+shift+p}, added to du_m unless `fresh`, and
        terms[row + p, column] = Σ_m x_m* dy_{m+shift+p}, for m from `first` to `end`."""
        place = types.intp
        return types.void(
            du, x, dy, place, place, place, k, place, terms, place, place, types.boolean
        ), write

    return pull_back


push_four, push_one = _push(4), _push(1)
pull_back_four, pull_back_one = _pull_back(4), _pull_back(1)
