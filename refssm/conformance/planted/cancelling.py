"""Planted bugs that grade N must not hide: in gradients that cancel, and in one small channel.

For each operator with a cumulated form: a carry detached between chunks, a dropped term, a missing
conjugate, each also in the smallest channel alone, maybe 1e-6 of the others. They change the
gradients of the decays; a dropped term also changes the outputs.
"""

import numpy as np

from refssm._declaration.arguments import several
from refssm._declaration.operator import Operator
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.checks.checks import types_of
from refssm.conformance.gauges.cumulated import FORMS
from refssm.conformance.planted import PlantedBug
from refssm.conformance.planted.planting import Planting

CHUNK = 64
SIGNALS = ("b", "u", "x")
TIMED_DECAYS, COMPLEX_DECAYS = ("a", "log_a", "dt"), ("a", "log_a", "A")


def beside_forms(family: str) -> list[PlantedBug]:
    """The bugs of a family's operators that have a cumulated form."""
    found = (op for op in map(operator_named, FORMS) if op.family == family and _in_one_piece(op))
    return [bug for op in found for bug in _planted(op).bugs]


def _in_one_piece(op: Operator) -> bool:
    """True if its first step in time is the first one, and the only one without a step before."""
    return not op.offsets and "anticausal" not in op.traits


def _planted(op: Operator) -> Planting:
    planting = Planting(op, "float32")
    decay, turned = _first_of(TIMED_DECAYS, op), _first_of(COMPLEX_DECAYS, op)
    told = "in the smallest channel only"
    rows = (
        ("detached", f"no gradient passes the borders of chunks of {CHUNK}", _detached(op)),
        ("detached_in_smallest", f"the same {told}", _if_smallest(op, decay, _detached(op))),
        ("decay_term_dropped", f"the decay of each chunk of {CHUNK} steps has no gradient",
         _without_borders(op, decay)),
        ("decay_term_dropped_in_smallest", f"the same {told}",
         _if_smallest(op, decay, _without_borders(op, decay))),
    )  # fmt: skip
    planting.plant(*rows, by="gradient")
    conjugated = _conjugated(op, turned)
    rows = (
        ("decay_unconjugated", "the conjugate of the decay's gradient", conjugated),
        ("decay_unconjugated_in_smallest", f"the same {told}",
         _if_smallest(op, turned, conjugated)),
    )  # fmt: skip
    if "complex64" in types_of(op):
        planting.plant(*rows, by="gradient[complex64]")
    dropped = _inputs_dropped(op)
    planting.plant(
        ("carry_without_last", f"the last input of each chunk of {CHUNK} not carried", dropped),
        ("carry_without_last_in_smallest", f"the same {told}", _outputs_if_smallest(op, dropped)),
    )
    return planting


def _first_of(names, op: Operator) -> str:
    return next(name for name in names if name in op.inputs)


def _time(op: Operator, i: int) -> int | None:
    """The axis of time of argument i, from the end; None if it has none."""
    dims = op.input_dims[i]
    return dims.index(op.leading) - len(dims) if op.leading in dims else None


def _along(a, axis: int, length: int):
    """A vector along `axis` of an array of this rank."""
    return np.reshape(a, (length, *(1,) * (-axis - 1)))


def _detached(op: Operator):
    """Gradients at the steps of a chunk from the cotangents of this chunk alone.

    A VJP is linear in its cotangents, so any right VJP gives them, chunk by chunk.
    """
    count, rank = len(op.outputs), len(op.output_dims[0])

    def program(right, *args, **statics):
        dy, *rest = args
        l = dy.shape[-rank]
        number = np.arange(l) // CHUNK
        gradients = [*right(*args, **statics)]
        for k in range(1 + number.max(initial=0)):
            inside = number == k
            last = k == number.max(initial=0)
            others = [d if last else np.zeros_like(d) for d in rest[: count - 1]]
            told = right(dy * _along(inside, -rank, l), *others, *rest[count - 1 :], **statics)
            for i, g in enumerate(told):
                if g is not None and (axis := _time(op, i)) is not None:
                    gradients[i] = np.where(_along(inside, axis, l), g, gradients[i])
        return tuple(gradients)

    return program


def _without_borders(op: Operator, name: str):
    """The gradient of `name` without its entries at the first step of each later chunk."""
    i = [*op.inputs].index(name)

    def program(right, *args, **statics):
        gradients = [*right(*args, **statics)]
        axis = _time(op, i)
        l = gradients[i].shape[axis]
        border = (np.arange(l) % CHUNK == 0) & (np.arange(l) > 0)
        gradients[i] = np.where(_along(border, axis, l), 0, gradients[i])
        return tuple(gradients)

    return program


def _conjugated(op: Operator, name: str):
    i = [*op.inputs].index(name)

    def program(right, *args, **statics):
        gradients = [*right(*args, **statics)]
        gradients[i] = gradients[i].conj()
        return tuple(gradients)

    return program


def _inputs_dropped(op: Operator):
    """Outputs as if the last input of each chunk were 0, but for its own step."""
    i = [*op.inputs].index(_first_of(SIGNALS, op))
    rank, own = len(op.output_dims[0]), len(op.input_dims[i])

    def program(right, *args, **statics):
        l = args[i].shape[_time(op, i)]
        border = np.arange(l) % CHUNK == CHUNK - 1
        signal = np.where(_along(border, -own, l), 0, args[i])
        y, *states = several(right(*args, **statics))
        late, *_ = several(right(*args[:i], signal, *args[i + 1 :], **statics))
        late = np.where(_along(border, -rank, l), y, late)
        return (late, *states) if states else late

    return program


def _smallest(op: Operator, args, axes) -> np.ndarray:
    """True for the channel with the smallest signal, in an array with these axes."""
    i = [*op.inputs].index(_first_of(SIGNALS, op))
    signal = np.abs(args[len(args) - len(op.inputs) + i])
    names = (*op.batch_axes[i], *op.input_dims[i])[-signal.ndim :]
    gone = tuple(k for k, name in enumerate(names) if name not in axes or name == op.leading)
    size = signal.max(axis=gone, initial=0)
    kept = [name for k, name in enumerate(names) if k not in gone]
    shape = [size.shape[kept.index(name)] if name in kept else 1 for name in axes]
    return (np.arange(size.size) == np.argmin(size)).reshape(shape)


def _if_smallest(op: Operator, name: str, wrong):
    """The wrong gradient of `name` in the smallest channel, else the right one."""
    i = [*op.inputs].index(name)
    axes = (*op.batch_axes[i], *op.input_dims[i])

    def program(right, *args, **statics):
        gradients, others = [*right(*args, **statics)], wrong(right, *args, **statics)
        small = _smallest(op, args, axes[-gradients[i].ndim :])
        gradients[i] = np.where(small, others[i], gradients[i])
        return tuple(gradients)

    return program


def _outputs_if_smallest(op: Operator, wrong):
    """The wrong outputs in the smallest channel, else the right ones."""
    axes = (*op.batch_names, *op.output_dims[0])

    def program(right, *args, **statics):
        y, *states = several(right(*args, **statics))
        other, *_ = several(wrong(right, *args, **statics))
        y = np.where(_smallest(op, args, axes[-y.ndim :]), other, y)
        return (y, *states) if states else y

    return program
