"""Planted bugs that every recurrence may have: in its resets, its first and last state, its groups.

A family plants them in its forms, and adds what only it can get wrong. Those of the forms by pieces
(packed sequences with states, states at places, reverse time) are all here:
`planted_in(RECURRENCE, dtype)` gives those of one recurrence, `of_groups(OPERATOR, dtype)` those of
arguments that a group of heads or channels shares.
"""

import re

import numpy as np

from refssm._declaration.operator import Operator
from refssm._declaration.recurrence import Recurrence
from refssm._numerics.broadcasting import unbroadcast
from refssm.conformance.planted import PlantedBug
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import Planting, of_result

BLOCK = 16  # steps that a kernel takes at once


def shifted(resets, by):
    """Each reset so many steps later; none comes in from outside."""
    moved = np.roll(resets, by, axis=-1)
    moved[..., slice(by) if by > 0 else slice(by, None)] = False
    return moved


def _at_blocks(resets):
    """Each reset moved to the start of its block."""
    k = np.arange(resets.shape[-1])
    starts = np.add.reduceat(resets, k[::BLOCK], axis=-1) > 0
    return np.where(k % BLOCK == 0, np.repeat(starts, BLOCK, axis=-1)[..., : k.size], False)


def _first_member(x, core):
    return np.broadcast_to(x[:1], x.shape) if x.ndim > core else x


def _on_multiples(n, seen):
    return lambda r: r & ((np.arange(r.shape[-1]) % n == 0) == seen)


_RESETS = [
    ("reset_ignored", "resets ignored: one sequence throughout", np.zeros_like),
    ("reset_late", "the state dropped one step late", lambda r: shifted(r, 1)),
    ("reset_early", "the state dropped one step early", lambda r: shifted(r, -1)),
    ("reset_turned", "the state dropped where a sequence goes on", np.logical_not),
    ("reset_first_only", "only the first reset taken", lambda r: r & (np.cumsum(r, axis=-1) <= 1)),
    ("reset_last_only", "only the last reset taken",
     lambda r: r & (np.cumsum(r[..., ::-1], axis=-1)[..., ::-1] <= 1)),
    ("reset_second_lost", "the second reset not seen",
     lambda r: r & (np.cumsum(r, axis=-1) != 2)),
    ("reset_within_64", "resets beyond the first chunk of 64 lost",
     lambda r: r & (np.arange(r.shape[-1]) < 64)),
    ("reset_at_last_step_lost", "a sequence of one step at the end joined to the one before",
     lambda r: r & (np.arange(r.shape[-1]) < r.shape[-1] - 1)),
    ("reset_beside_a_reset_lost", "of two resets in a row only the first taken",
     lambda r: r & ~shifted(r, 1)),
    ("reset_of_first_in_batch", "the first member's resets for all",
     lambda r: _first_member(r, 1)),
    ("reset_at_block", f"the state dropped at the beginning of the block of {BLOCK}", _at_blocks),
    *((f"reset_lost_at_{n}", f"resets at multiples of {n} ignored", _on_multiples(n, False))
      for n in (16, 64)),
    *((f"reset_on_grid_{n}", f"resets seen only at multiples of {n}", _on_multiples(n, True))
      for n in (16, 64)),
]  # fmt: skip
RESETS = [
    (name, what, {"resets": lambda resets, change=change: change(resets != 0)})
    for name, what, change in _RESETS
]


def starts(state: str, core: int) -> list:
    """Bugs of the first state, which is the argument `state` and has `core` axes of its own; of a
    state of several parts, of one of them.
    """

    def alone(x):
        return x * (x.ndim == core or x.shape[0] != 1)

    rows = [
        ("start_ignored", "the first state taken as zero", lambda x: 0 * x),
        ("start_ignored_in_batch_of_one", "the first state taken as zero where the batch is 1",
         alone),
        ("start_of_first_in_batch", "the first member's state for all",
         lambda x: _first_member(x, core)),
        ("start_in_float16", "the first state rounded to float16", float16),
        ("start_in_bfloat16", "the first state rounded to bfloat16", bfloat16),
    ]  # fmt: skip
    return [(name, what, {state: change}) for name, what, change in rows]


def complex_starts(state: str) -> list:
    """Bugs of the first state that only complex numbers show."""
    return [
        ("start_conjugate", "the first state conjugated", {state: np.conj}),
        ("start_real", "the imaginary part of the first state dropped", {state: _real}),
    ]


def _real(x):
    return x.real.astype(x.dtype)


def _ending(change):
    return of_result(lambda y, x, *others: (y, change(x).copy(), *others))


def lasts(core: int) -> list:
    """Bugs of the last state, the second result; of several parts, of the first one."""
    return [
        ("last_zero", "zeros for the last state", _ending(lambda x: 0 * x)),
        ("last_in_bfloat16", "the last state rounded to bfloat16", _ending(bfloat16)),
        ("last_in_float16", "the last state rounded to float16", _ending(float16)),
        ("last_reversed", "the entries of the last state the other way round",
         _ending(lambda x: x[..., ::-1])),
        ("last_of_first_in_batch", "the first member's last state for all",
         _ending(lambda x: _first_member(x, core))),
    ]  # fmt: skip


COMPLEX_LASTS = [
    ("last_conjugate", "the last state conjugated", _ending(np.conj)),
    ("last_real", "the real part of the last state", _ending(_real)),
]


def planted_in(recurrence: Recurrence, dtype: str) -> list[PlantedBug]:
    """The bugs of every form by pieces that the recurrence has."""
    bugs: list[PlantedBug] = []
    for op in recurrence.operators:
        for ending, plant in FORMS.items():
            if op.name.endswith(ending) and op.name.startswith(recurrence.name):
                planting = Planting(op, dtype)
                planting.usual()
                plant(planting, recurrence)
                bugs += planting.bugs
    return bugs


def _length(op: Operator, args) -> int:
    """The number of steps in the arguments of a call, of the function or its VJP."""
    given = zip(op.input_dims, args[-len(op.inputs) :], strict=True)
    return next(x.shape[dims.index("l") - len(dims)] for dims, x in given if "l" in dims)


def _marks(op: Operator, change):
    """The right program, with its last argument (ends or places) changed by (marks, l)."""

    def program(right, *args, **statics):
        moved = np.sort(np.clip(change(args[-1], _length(op, args)), 0, _length(op, args)))
        if "ends" in op.inputs:
            moved[-1:] = _length(op, args)
        return right(*args[:-1], moved, **statics)

    return program


def _along(change, axis: int):
    """A change of an array along one axis that is counted from the end."""
    return lambda x: np.moveaxis(change(np.moveaxis(x, axis, 0)), 0, axis).astype(x.dtype)


def _without_empty(axes):
    """Sequences without steps do not count when states are handed out."""

    def program(right, *args, **statics):
        others, states, ends = args[: -len(axes) - 1], args[-len(axes) - 1 : -1], args[-1]
        lengths = np.diff(ends, prepend=0)
        number = np.clip(np.cumsum(lengths > 0) - 1, 0, None)
        pairs = zip(states, axes, strict=True)
        return right(*others, *(np.take(x, number, axis=a) for x, a in pairs), ends, **statics)

    return program


def _zero_if_empty(axes):
    """Zeros for the last state of a sequence without steps, as a buffer that nobody wrote to."""

    def program(right, *args, **statics):
        y, *states = right(*args, **statics)
        some = np.diff(args[-1], prepend=0) > 0
        pairs = zip(states, axes, strict=True)
        return y, *(x * some.reshape(-1, *(1,) * (-a - 1)) for x, a in pairs)

    return program


def _of_all(states, axes, change) -> dict:
    """The same change of each part of the states along the axis of their numbers."""
    return {s: _along(change, axis) for s, axis in zip(states, axes, strict=True)}


def _from(states, axes) -> list:
    """Bugs of the states before the sequences."""
    return [
        ("starts_ignored", "every sequence from rest", _of_all(states, axes, lambda x: 0 * x)),
        ("start_of_first_sequence", "the first sequence's state for all",
         _of_all(states, axes, lambda x: np.broadcast_to(x[:1], x.shape))),
        ("start_of_the_one_before", "each sequence from the state of the one before",
         _of_all(states, axes, lambda x: np.roll(x, 1, 0))),
        ("starts_in_reverse", "the states in reverse order",
         _of_all(states, axes, lambda x: x[::-1])),
        ("start_of_first_only", "only the first sequence has a state", _of_all(states, axes,
            lambda x: x * (np.arange(len(x)) == 0).reshape(-1, *(1,) * (x.ndim - 1)))),
        ("starts_without_empty_sequences", "sequences without steps skipped in the list of states",
         _without_empty(axes)),
        ("starts_in_bfloat16", "the first states rounded to bfloat16", {states[0]: bfloat16}),
    ]  # fmt: skip


def _lasts(axes) -> list:
    """Bugs of the returned states; what changes numbers, not their places, of the first part."""

    def ending(change, parts):
        def changed(y, *states):
            made = [change(x, axis) for x, axis in zip(states, axes[:parts], strict=False)]
            kept = (np.ascontiguousarray(a).astype(x.dtype)
                    for a, x in zip(made, states, strict=False))  # fmt: skip
            return y, *kept, *states[parts:]

        return of_result(changed)

    def along(change):
        return ending(lambda x, axis: _along(change, axis)(x), len(axes))

    return [
        ("last_states_zero", "zeros for the returned states", along(lambda x: 0 * x)),
        ("last_states_in_reverse", "the returned states in reverse order",
         along(lambda x: x[::-1])),
        ("last_state_of_all", "the last of the returned states for all",
         along(lambda x: np.broadcast_to(x[-1:], x.shape))),
        ("last_states_shifted", "each returned state is that of the one before",
         along(lambda x: np.roll(x, 1, 0))),
        ("last_states_in_float16", "the returned states rounded to float16",
         ending(lambda x, axis: float16(x), 1)),
    ]  # fmt: skip


def _moved(op: Operator) -> list:
    """Bugs of the places where something begins or is kept."""
    return [
        ("marks_late", "one step late", _marks(op, lambda k, l: k + 1)),
        ("marks_early", "one step early", _marks(op, lambda k, l: k - 1)),
        ("marks_at_blocks", f"at the next multiple of {BLOCK}",
         _marks(op, lambda k, l: -(-k // BLOCK) * BLOCK)),
        ("marks_at_blocks_before", f"at the multiple of {BLOCK} before",
         _marks(op, lambda k, l: k // BLOCK * BLOCK)),
        ("marks_within_64", "nothing beyond step 64", _marks(op, lambda k, l: np.minimum(k, 64))),
    ]  # fmt: skip


def _gradients(op: Operator, states, axes) -> list:
    """Bugs of the VJP."""
    state, axis = states[0], axes[0]
    rows = [
        ("start_missing", "no gradient for the first state", {state: lambda g: 0 * g}),
        ("start_negative", "the first state's gradient with the other sign", {state: np.negative}),
        ("marks_late", "one step late", _marks(op, lambda k, l: k + 1)),
        ("cotangent_in_float16", "the outputs' cotangent rounded to float16",
         {f"d{op.outputs[0]}": float16}),
    ]  # fmt: skip
    if len(op.outputs) > 1:
        last = f"d{op.outputs[1]}"
        rows += [
            ("states_dropped", "the cotangents of the returned states dropped",
             {last: lambda g: 0 * g}),
            ("states_in_reverse", "the cotangents of the returned states in reverse order",
             {last: _along(lambda g: g[::-1], axis)}),
        ]  # fmt: skip
    return rows


def _packed(planting: Planting, recurrence: Recurrence) -> None:
    op, (states, axes) = planting.op, _states(recurrence)
    planting.plant(
        *_from(states, axes),
        *_moved(op),
        ("one_sequence", "all steps are one sequence", _marks(op, lambda k, l: 0 * k + l)),
        ("second_end_lost", "the second end not seen",
         _marks(op, lambda k, l: np.where(np.arange(k.size) == 1, [*k, l, l, l][2], k))),
    )  # fmt: skip
    if len(op.outputs) > 1:
        planting.plant(
            *_lasts(axes),
            ("last_zero_if_empty", "zeros for the last state of a sequence without steps",
             _zero_if_empty(axes)),
        )  # fmt: skip
    planting.plant(*_gradients(op, states, axes), by="gradient")


def _at_places(planting: Planting, recurrence: Recurrence) -> None:
    op, (states, axes) = planting.op, _states(recurrence)
    planting.plant(
        ("start_ignored", "from rest", _of_all(states, axes, lambda x: 0 * x)),
        ("start_of_first_in_batch", "the first member's state for all", {
            s: lambda x, n=-1 - a: _first_member(x, n) for s, a in zip(states, axes, strict=True)}),
        ("start_in_bfloat16", "the first state rounded to bfloat16", {states[0]: bfloat16}),
        *_moved(op),
        ("place_0_lost", "the state after one step for that after none",
         _marks(op, lambda k, l: np.maximum(k, 1))),
        ("place_l_lost", "the state before the last step for the last",
         _marks(op, lambda k, l: np.minimum(k, l - 1))),
        *_lasts(axes),
    )  # fmt: skip
    planting.plant(*_gradients(op, states, axes), by="gradient")


def _reversed(planting: Planting, recurrence: Recurrence) -> None:
    op = planting.op
    axes = [dims.index("l") - len(dims) if "l" in dims else 0 for dims in op.input_dims]
    out = op.output_dims[0].index("l") - len(op.output_dims[0])

    def turned(x, axis):
        return np.flip(x, axis).copy() if axis else x

    def forward(right, *args, **statics):
        """The recurrence from the first step to the last."""
        given = (turned(x, axis) for x, axis in zip(args, axes, strict=True))
        return turned(right(*given, **statics), out)

    def within(size):
        """Blocks that do not go on from one another."""

        def program(right, *args, **statics):
            l = _length(op, args)
            windows = [slice(k, k + size) for k in range(0, l, size)] or [slice(0)]
            cut = [[np.moveaxis(np.moveaxis(x, axis, 0)[w], 0, axis) if axis else x
                    for x, axis in zip(args, axes, strict=True)] for w in windows]  # fmt: skip
            return np.concatenate([right(*piece, **statics) for piece in cut], axis=out)

        return program

    def shifted(by):
        return of_result(_along(lambda y: np.concatenate([y[by:], 0 * y[:by]]), out))

    planting.plant(
        ("forward", "from the first step to the last", forward),
        ("not_turned_back", "the outputs in reverse order", of_result(lambda y: turned(y, out))),
        *((f"{name}_not_turned", f"{name} in forward order",
           {name: lambda x, axis=axis: turned(x, axis)})
          for name, axis in zip(op.inputs, axes, strict=True) if axis),
        *((f"carry_lost_{n}", f"blocks of {n} that do not go on", within(n))
          for n in (16, 64, 256)),
        ("one_late", "the output of the next step", shifted(1)),
        ("output_in_bfloat16", "the output rounded to bfloat16", of_result(bfloat16)),
        ("output_in_float16", "the output rounded to float16", of_result(float16)),
    )  # fmt: skip
    cotangent = f"d{op.outputs[0]}"
    planting.plant(
        ("forward", "the cotangent in forward order", {cotangent: lambda g: turned(g, out)}),
        ("in_float16", "the cotangent rounded to float16", {cotangent: float16}),
        *((f"{name}_turned", f"the gradient of {name} in reverse order",
           {name: lambda g, axis=axis: turned(g, axis)})
          for name, axis in zip(op.inputs, axes, strict=True) if axis),
        by="gradient",
    )  # fmt: skip


def _states(recurrence: Recurrence) -> tuple[list[str], list[int]]:
    """The arguments of the state's parts, and the axis of each that counts several states."""
    parts = recurrence.states
    axes = [-1 - len(re.findall(r"\w+", part.dims)) for part in parts]
    return [f"{part.letter}0" for part in parts], axes


# Groups: the batch ends with g and h (or d), and a shared argument has length 1 for h: members of a
# group are neighbours.


def tiled(x, batch, core=2):
    """A shared argument for each member, where member k of all reads group k mod G, not k // H."""
    if len(batch) < 3 or x.ndim != len(batch) + core:
        return x
    g, h = batch[-2:]
    axis = -core - 1
    which = np.arange(g * h).reshape(g, h) % x.shape[axis - 1]
    return np.take(np.take(x, 0, axis), which, axis)


def _first_group(x, batch, core):
    """The first group's for all."""
    if x.ndim < core + 2:
        return x
    return np.broadcast_to(np.take(x, [0], -core - 2), x.shape)


def _reading(op: Operator, names, change):
    """The right program of shared arguments that are changed by (x, batch, core axes)."""

    def program(right, *args, **statics):
        batch = op.batch_shape(*args)
        given = zip(op.inputs, args, op.input_dims, strict=True)
        own = (change(x, batch, len(dims)) if n in names else x for n, x, dims in given)
        return right(*own, **statics)

    return program


def _gathering(op: Operator, name: str, gather):
    """The right VJP, with the gradient of one shared argument gathered from its members by
    gather(gradient of each, axis of the members)."""
    place = [*op.inputs].index(name)
    core = len(op.input_dims[place])

    def program(right, *args, **statics):
        count = len(args) - len(op.inputs)
        x, batch = args[count + place], op.batch_shape(*args[count:])
        own = np.broadcast_to(x, (*batch, *x.shape[x.ndim - core :]))
        gradients = [*right(*args[: count + place], own, *args[count + place + 1 :], **statics)]
        of_each = gradients[place]
        of_each = of_each if len(batch) < 2 else gather(of_each, -core - 1)
        gradients[place] = unbroadcast(of_each, x)
        return tuple(gradients)

    return program


def _of_first(g, axis):
    """The first member's alone."""
    return np.take(g, [0], axis)


def _over_all(g, axis):
    """The sum over all groups in each."""
    return np.broadcast_to(g.sum(axis - 1, keepdims=True), g.shape)


def _to_tiled(g, axis):
    """The sum over the members k of each k mod G."""
    groups, members = g.shape[axis - 1], g.shape[axis]
    turned = (*g.shape[: axis - 1], members, groups, *g.shape[axis + 1 :])
    return np.moveaxis(g.reshape(turned), axis - 1, axis).sum(axis, keepdims=True)


def of_groups(op: Operator, dtype: str) -> list[PlantedBug]:
    """The bugs of an operator that has groups, in what a group's members share."""
    one = {"h": "head", "d": "channel"}[op.batch_names[-1]]
    shared = [n for n, own in zip(op.inputs, op.batch_axes, strict=True) if own[-2:] == ("g", "1")]
    both = " and ".join(shared)
    tiles = f"{one} k of all {one}s reads {both} of the group k mod G, not k // (all/G)"
    first = f"{both} of the first group for all"
    planting = Planting(op, dtype)
    planting.plant(
        ("groups_tiled", tiles, _reading(op, shared, tiled)),
        ("first_group", first, _reading(op, shared, _first_group)),
        *((f"{name}_tiled", f"{name} of the group k mod G for {one} k of all, the others of k // "
           "(all/G)", _reading(op, [name], tiled)) for name in shared),
    )  # fmt: skip
    planting.plant(("first_group_by_law", first, _reading(op, shared, _first_group)), by="group")
    for name in shared:
        planting.plant(
            (f"{name}_of_first_{one}", f"d{name} of a group's first {one}, not of their sum",
             _gathering(op, name, _of_first)),
            (f"{name}_over_all_groups", f"d{name} summed over the {one}s of all groups",
             _gathering(op, name, _over_all)),
            (f"{name}_of_tiled_groups", f"d{name} of {one} k of all added to the group k mod G",
             _gathering(op, name, _to_tiled)),
            by="gradient",
        )  # fmt: skip
    return planting.bugs


FORMS = {
    "_packed_stateful": _packed,
    "_packed_from": _packed,
    "_states": _at_places,
    "_reversed": _reversed,
}
