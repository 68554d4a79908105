"""Four neighbouring taps of a convolution, or one, over a part of the signal: the loops as LLVM's.

A register of inputs is loaded once for each tap, and the sums of products stay in registers.
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportOptionalCall=false
# pyright: reportArgumentType=false, reportIndexIssue=false
# (Numba and llvmlite make attributes when they are imported; an intrinsic is called without its
# first parameter)

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic

from refssm.jit._entries import Entries, bit


def _pull_back(taps):
    """The intrinsic for this number of taps."""

    @intrinsic
    def pull_back(typingctx, du, x, dy, first, end, shift, k, j, terms, row, column, fresh):
        """du_m = Σ_p k_{j+p}* dy_{m+shift+p}, added to du_m unless `fresh`, and
        terms[row + p, column] = Σ_m x_m* dy_{m+shift+p}, for m from `first` to `end`.

        du, x and dy have adjacent entries."""

        given = types.void(du, x, dy, *(types.intp,) * 3, k, types.intp, terms,
                           *(types.intp,) * 2, types.boolean)  # fmt: skip

        return given, _code_of(taps)

    return pull_back


def _code_of(taps):
    def write(context, builder, signature, values):
        kind = Entries(context, builder, signature.args[0].dtype)
        arrays = {i: context.make_array(signature.args[i])(context, builder, values[i])
                  for i in (0, 1, 2, 6, 8)}  # fmt: skip
        du, x, dy = (kind.row(arrays[i].data) for i in range(3))
        first, end, shift, j, row, column = (values[i] for i in (3, 4, 5, 7, 9, 10))
        step = cgutils.unpack_tuple(builder, arrays[6].strides, 1)[0]
        k = kind.row(arrays[6].data, step)
        wanted = [kind.load(k, builder.add(j, j.type(p)), 1).conj() for p in range(taps)]
        width = cgutils.unpack_tuple(builder, arrays[8].strides, 2)[0]
        sums = [cgutils.alloca_once_value(builder, kind.zero(kind.wide).value)
                for _ in range(taps)]  # fmt: skip

        def loop(begin, stop, count, sums):
            factors = [w.repeated(count) for w in wanted]
            with cgutils.for_range_slice(builder, begin, stop, first.type(count)) as (m, _):
                own, place = kind.load(x, m, count).conj(), builder.add(m, shift)
                total = kind.load(du, m, count).instead(fresh, kind.zero(count))
                for p in range(taps):
                    later = kind.load(dy, builder.add(place, place.type(p)), count)
                    total += factors[p] * later
                    term = kind.of(builder.load(sums[p])) + own * later
                    builder.store(term.value, sums[p])
                kind.store(total, du, m)

        fresh = bit(context, builder, values[11])
        length = builder.sub(end, first)
        border = builder.add(first, builder.and_(length, length.type(-kind.wide)))
        loop(first, border, kind.wide, sums)
        ends = [cgutils.alloca_once_value(builder, kind.of(builder.load(s)).total().value)
                for s in sums]  # fmt: skip
        loop(border, end, 1, ends)
        for p in range(taps):
            at = builder.mul(builder.add(row, row.type(p)), width)
            target = kind.row(builder.gep(kind.row(arrays[8].data).start, [at]))
            kind.store(kind.of(builder.load(ends[p])), target, column)
        return context.get_dummy_value()

    return write


pull_back_four, pull_back_one = _pull_back(4), _pull_back(1)
