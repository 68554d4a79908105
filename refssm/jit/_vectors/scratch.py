"""Memory of a kernel in registers, and entries of its arrays, as plain addresses.

An array that Numba passes to a function is nine values, and a slice of one a hundred instructions,
so kernels of many slices compile for seconds. `LaneRows` are one address, of lanes (`lanes.py`):

    work = scratch(2 * n, y)  # memory for so many registers of numbers like y's, all zero
    rates, state = work, after(work, n)
    store(state, m, load(rates, m) * load(state, m))
    release(work)  # nothing else does

No index is checked, and none may be negative.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic, models, register_model

from refssm.jit._vectors.formula import REGISTER, Lanes
from refssm.jit._vectors.lanes import columns_of

SIZE = REGISTER // 8  # bytes
WORD = ir.IntType(64)
BYTES = ir.IntType(8).as_pointer()


class LaneRows(types.Type):
    """The type of the address of lanes, with more behind it."""

    def __init__(self, dtype: types.Float):
        self.dtype, self.lanes = dtype, Lanes(dtype)
        super().__init__(f"LaneRows({dtype})")


@register_model(LaneRows)
class _ScratchModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, manager.lookup(kind.lanes).get_value_type().as_pointer())


def _moved(builder, address, count, size: int):
    """The address so many times `size` bytes behind this one."""
    offset = builder.mul(count, WORD(size))
    place = builder.gep(builder.bitcast(address, BYTES), [offset])
    return builder.bitcast(place, address.type)


@intrinsic
def scratch(typingctx, count, like):
    """Memory for so many registers of the numbers of this array, all zero."""

    def write(context, builder, signature, values):
        bytes_ = builder.mul(values[0], WORD(SIZE))
        given = context.nrt.allocate(builder, builder.add(bytes_, WORD(SIZE)))
        end = builder.add(builder.ptrtoint(given, WORD), WORD(SIZE))
        place = builder.inttoptr(builder.and_(end, WORD(-SIZE)), BYTES)
        behind = builder.gep(builder.bitcast(place, BYTES.as_pointer()), [WORD(-1)])
        builder.store(given, behind)  # for `release`
        cgutils.memset(builder, place, bytes_, 0)
        return builder.bitcast(place, context.get_value_type(signature.return_type))

    return LaneRows(like.dtype)(types.intp, like), write


@intrinsic
def release(typingctx, rows):
    """Give memory of `scratch` back."""

    def write(context, builder, signature, values):
        behind = builder.gep(builder.bitcast(values[0], BYTES.as_pointer()), [WORD(-1)])
        context.nrt.free(builder, builder.load(behind))
        return context.get_dummy_value()

    return types.void(rows), write


@intrinsic
def after(typingctx, rows, count):
    """The rows behind the first `count`."""

    def write(context, builder, signature, values):
        return _moved(builder, *values, SIZE)

    return rows(rows, types.intp), write


@intrinsic
def width_of(typingctx, rows):
    """How many lanes a row has."""
    return types.intp(rows), lambda context, *_: context.get_constant(types.intp, rows.lanes.count)


@intrinsic
def zero_of(typingctx, rows):
    """0 as a number of these rows."""
    return rows.dtype(rows), lambda context, *_: context.get_constant(rows.dtype, 0)


@intrinsic
def load(typingctx, rows, k):
    """Row k."""

    def write(context, builder, signature, values):
        return builder.load(_moved(builder, *values, SIZE), align=SIZE)

    return rows.lanes(rows, types.intp), write


@intrinsic
def store(typingctx, rows, k, lanes):
    """Row k becomes these lanes."""

    def write(context, builder, signature, values):
        builder.store(values[2], _moved(builder, *values[:2], SIZE), align=SIZE)
        return context.get_dummy_value()

    return types.void(rows, types.intp, rows.lanes), write


def _number(builder, rows, i):
    """The address of the i-th number of all rows."""
    kind = rows.type.pointee.element
    return builder.gep(builder.bitcast(rows, kind.as_pointer()), [i])


@intrinsic
def number(typingctx, rows, i):
    """The i-th number of all rows."""

    def write(context, builder, signature, values):
        return builder.load(_number(builder, *values))

    return rows.dtype(rows, types.intp), write


@intrinsic
def put(typingctx, rows, i, x):
    """The i-th number of all rows becomes x."""

    def write(context, builder, signature, values):
        builder.store(values[2], _number(builder, *values[:2]))
        return context.get_dummy_value()

    return types.void(rows, types.intp, rows.dtype), write


def _entry(context, builder, kind, array, i, j):
    """The address of array[i, j], and the step from one i to the next."""
    model = context.data_model_manager[kind]
    data, strides = (model.get(builder, array, name) for name in ("data", "strides"))
    step, stride = (builder.extract_value(strides, axis) for axis in (0, 1))
    offset = builder.add(builder.mul(i, step), builder.mul(j, stride))
    place = builder.gep(builder.bitcast(data, BYTES), [offset])
    return builder.bitcast(place, data.type), step


@intrinsic
def at(typingctx, array, i, j):
    """array[i, j]."""

    def write(context, builder, signature, values):
        kind = signature.args[0]
        place, _ = _entry(context, builder, kind, *values)
        return context.unpack_value(builder, kind.dtype, place)

    return array.dtype(array, types.intp, types.intp), write


@intrinsic
def assign(typingctx, array, i, j, x):
    """array[i, j] = x."""

    def write(context, builder, signature, values):
        kind = signature.args[0]
        place, _ = _entry(context, builder, kind, *values[:3])
        context.pack_value(builder, kind.dtype, values[3], place)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, array.dtype), write


@intrinsic
def columns(typingctx, array, i, j, rows):
    """Lane a of row b is array[i + a, j + b], for as many rows as lanes; the array's last axis is
    contiguous."""

    def write(context, builder, signature, values):
        *entry, rows = values
        place, step = _entry(context, builder, signature.args[0], *entry)
        _transpose(builder, rows.type.pointee, place, step, rows, WORD(SIZE))
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, rows), write


@intrinsic
def set_columns(typingctx, array, i, j, rows):
    """The inverse of `columns`: array[i + a, j + b] becomes lane a of row b."""

    def write(context, builder, signature, values):
        *entry, rows = values
        place, step = _entry(context, builder, signature.args[0], *entry)
        _transpose(builder, rows.type.pointee, rows, WORD(SIZE), place, step)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, rows), write


def _transpose(builder, kind, source, step, target, target_step):
    """Registers from `source` on, so many bytes apart, as columns of those at `target`."""
    size = SIZE // kind.count
    rows = []
    for place in _places(builder, kind, source, step):
        rows.append(builder.load(place, align=size))
    places = _places(builder, kind, target, target_step)
    for row, place in zip(columns_of(builder, rows), places, strict=True):
        builder.store(row, place, align=size)


def _places(builder, kind, address, step):
    """The addresses of as many registers as one has lanes."""
    address = builder.bitcast(address, BYTES)
    for r in range(kind.count):
        yield builder.bitcast(address, kind.as_pointer())
        if r + 1 < kind.count:
            address = builder.gep(address, [step])
