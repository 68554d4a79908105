"""Kernels over channels: one batch axis is the channels, which share B and C; the others stay.

A kernel computes one piece of the channels. Gradients of B and C are sums over channels: within a
piece by the kernel, over pieces here, in order. Pieces do not depend on the number of threads, so
neither do results.
"""

import re
from itertools import pairwise, product
from math import prod

import numpy as np

from refssm.jit._compiling.gufunc import GufuncKernel, types_of
from refssm.jit._compiling.threads import SMALL, over_threads, threads

PIECE = 128  # channels: a multiple of the number of lanes
PARTS = 4  # for each thread: one that the system holds up leaves its parts to the others


class OverChannels:
    """A kernel of real arrays. In its signature `d` are the channels of a piece, `r` is `d` or 1;
    an array without them is shared by all channels, and as an output has the sum of a piece."""

    def __init__(self, function, signature: str):
        cores = [core.split(",") for core in re.findall(r"\(([^)]*)\)", signature)]
        count = signature.partition("->")[0].count("(")
        self.inputs, self.outputs = cores[:count], cores[count:]
        self.flag = next(i for i, core in enumerate(cores) if core[0] == "r")
        self.kernel = GufuncKernel(
            function, types_of(signature, self.flag, ("f4", "f8")), signature
        )

    def __call__(self, *arrays) -> list[np.ndarray]:
        """The outputs with all batch axes; sums have length 1 along the channels."""
        kind = np.result_type(*(a for i, a in enumerate(arrays) if i != self.flag))
        layout, sizes = _Layout(self.inputs, arrays), self._sizes(arrays)
        if 0 in layout.shape_given:
            cores = [[sizes[i] for i in core if i != "d"] for core in self.outputs]
            return [np.zeros((*layout.shape_given, *core), kind) for core in cores]
        views = [layout.view(a, core[0]) for a, core in zip(arrays, self.inputs, strict=True)]
        made = [
            np.empty((*layout.shape(core[0]), *(sizes[i] for i in core if i != "d")), kind)
            for core in self.outputs
        ]
        into = [layout.view(y, c[0], True) for y, c in zip(made, self.outputs, strict=True)]
        gufunc = self.kernel.of(tuple(a.dtype for a in arrays))

        def compute(place):
            given = [layout.cut(a, c[0], place) for a, c in zip(views, self.inputs, strict=True)]
            out = [
                layout.cut(y, c[0], place, True) for y, c in zip(into, self.outputs, strict=True)
            ]
            gufunc(*given, out=tuple(out))

        over_threads(compute, layout.places(prod(sizes.values())))
        return [layout.summed(y, c[0]) for y, c in zip(made, self.outputs, strict=True)]

    def _sizes(self, arrays) -> dict[str, int]:
        """The core sizes but those of the channels."""
        sizes = {}
        for a, core in zip(arrays, self.inputs, strict=True):
            sizes.update(zip(core[::-1], a.shape[::-1], strict=False))
        return {name: sizes[name] for name in sizes if name not in "dr"}


class _Layout:
    """The batch axes of a call."""

    def __init__(self, cores, arrays):
        leading = [a.shape[: a.ndim - _own(core[0])] for a, core in zip(arrays, cores, strict=True)]
        self.shape_given = np.broadcast_shapes(*leading)
        shared = [np.ones(len(self.shape_given), int)]
        for shape, core in zip(leading, cores, strict=True):
            if core[0] not in "dr":
                shared.append(np.append(shared[0][len(shape) :], shape).astype(int))
        alike = np.flatnonzero(np.max(shared, axis=0) == 1) if self.shape_given else []
        self.alone = len(alike) == 0  # every channel has B and C of its own
        self.batch = (*self.shape_given, 1) if self.alone else self.shape_given
        self.axis = len(self.shape_given) if self.alone else max(alike, key=self.batch.__getitem__)
        channels = self.batch[self.axis]
        self.pieces = [
            slice(i, min(i + PIECE, channels)) for i in range(0, max(channels, 1), PIECE)
        ]

    def shape(self, first: str) -> tuple[int, ...]:
        """The leading axes of an output."""
        if first == "d":
            return self.shape_given
        return len(self.pieces), *np.delete(self.batch, self.axis)

    def view(self, a, first: str, output=False):
        """This array with the axis of channels last among the batch axes, or without it."""
        core = _own(first)
        if output and first != "d":
            return a
        a = a.reshape(*(1,) * (len(self.shape_given) + core - a.ndim), *a.shape)
        a = np.expand_dims(a, len(self.shape_given)) if self.alone else a
        wanted = list(self.batch)
        wanted[self.axis] = a.shape[self.axis] if first != "d" else wanted[self.axis]
        if not output:
            a = np.broadcast_to(a, (*wanted, *a.shape[len(self.batch) :]))
        a = np.moveaxis(a, self.axis, len(self.batch) - 1)
        return a if first in "dr" else a[..., 0, :, :]

    def places(self, work: int) -> list:
        """A piece and a part of the other batch axes for each call of a kernel."""
        own = [int(n) for n in np.delete(self.batch, self.axis)]
        most = prod(self.batch) * work // SMALL
        longest = max(range(len(own)), key=own.__getitem__, default=None)
        parts = [(slice(None),) * len(own)]
        if longest is not None and own[longest]:
            wanted = -(-min(PARTS * threads(), most) // len(self.pieces))
            count = max(1, min(wanted, own[longest]))
            borders = [own[longest] * i // count for i in range(count + 1)]
            parts = [
                (*parts[0][:longest], slice(*w), *parts[0][longest + 1 :])
                for w in pairwise(borders)
            ]
        return [*product(range(len(self.pieces)), parts)]

    def cut(self, a, first: str, place, output=False):
        """The part of a view that one call computes with."""
        piece, part = place
        if first not in "dr":
            return a[piece, *part] if output else a[part]
        along = slice(None) if first == "r" and a.shape[len(part)] == 1 else self.pieces[piece]
        return a[*part, along]

    def summed(self, y, first: str):
        """Sums over pieces, with an axis of length 1 for the channels."""
        if first == "d":
            return y
        y = y.sum(0) if len(self.pieces) > 1 else y[0]
        return y if self.alone else np.expand_dims(y, self.axis)


def _own(first: str) -> int:
    """The core axes of an array: those behind the channels, or all."""
    return 1 if first in "dr" else 2


def over_channels(signature: str):
    """`OverChannels` for the decorated function."""
    return lambda function: OverChannels(function, signature)
