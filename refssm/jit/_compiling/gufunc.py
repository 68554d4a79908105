"""What the mirrors share: gufuncs that are compiled once per machine, and where a scan begins."""

import re
from functools import cache
from threading import Lock

import numpy as np

from refssm.jit._compiling import parts
from refssm.jit._compiling.cache import kept
from refssm.jit._compiling.threads import Threaded
from refssm.scan.blocks import windows

KINDS = ("f4", "f8", "c8", "c16")


def gufunc(signature, flag=None, kinds=KINDS):
    """`compiled` with this signature: every array of the same kind, except that the one at `flag`
    is boolean. NumPy casts others: real arrays among complex ones, kinds not compiled."""
    return compiled(types_of(signature, flag, kinds), signature)


def compiled(types, signature):
    """A gufunc of these types; each is compiled when a call first needs it, or loaded from disk
    where this machine has compiled it before. A large batch is shared by threads."""

    def decorate(function):
        assert function.__closure__ is None, "Numba finds no compiled function with a closure again"
        return Threaded(GufuncKernel(function, types, signature), signature)

    return decorate


class GufuncKernel:
    """A function as a gufunc of several types, each compiled when it is first needed: a program
    that uses one function in single precision waits for that one only."""

    def __init__(self, function, types, signature: str):
        self.function, self.signature = function, signature
        self.types = {
            tuple(np.dtype(t) for t in re.findall(r"\w+\d", text)): text for text in types
        }
        self.of = cache(self._of)

    def __call__(self, *arrays, **out):
        """The outputs, computed by one thread."""
        return self.of(tuple(array.dtype for array in arrays))(*arrays, **out)

    def _of(self, given):
        """The gufunc for arguments of these types: the first that converts no precision away."""
        count = len(given)
        fits = (t for t in self.types if all(map(np.can_cast, given, t[:count])))
        chosen = next(fits, None)
        assert chosen, f"{self.function.__name__} has no form for {[str(t) for t in given]}"
        return self.compiled(chosen)

    def compiled(self, chosen):
        """The gufunc of one entry of `types`."""
        with ONE_AT_A_TIME:  # what two threads need is compiled once
            return _loaded(self.function, self.types[chosen], self.signature)


ONE_AT_A_TIME = Lock()


@cache
def _loaded(function, types: str, signature: str):
    """The gufunc of one combination of types, from disk if it is there."""

    asked = function, types, signature
    kinds = "".join(re.findall(r"\w+\d", types))
    return kept(
        lambda: parts.compiled(*asked),
        lambda state: parts.loaded(state, *asked),
        f"{function.__module__}.{function.__name__}.{kinds}",
    )


def types_of(signature, flag, kinds) -> list[str]:
    """ "(l,n),(l)->(n)" in f4 with flag 1: "(f4[:,:], b1[:], f4[:])"; and so on for each kind."""
    return [_types(signature, kind, flag) for kind in kinds]


def _types(signature, kind, flag) -> str:
    ranks = [core.count(",") + 1 for core in re.findall(r"\(([^)]*)\)", signature)]
    colons = [",".join(":" * rank) for rank in ranks]
    kinds = ["b1" if i == flag else kind for i in range(len(ranks))]
    return f"({', '.join(f'{k}[{c}]' for k, c in zip(kinds, colons, strict=True))})"


def begun(l: int) -> np.ndarray:
    """A reset at the first step, as every scan from rest has: nothing before it counts."""
    return np.arange(l) == 0


def started(rest, state, resets, l: int):
    """The state and the resets of a scan over l steps, where None means rest, or one sequence."""
    if state is None:
        return rest, begun(l) if resets is None else resets | begun(l)
    return state, np.zeros(l, bool) if resets is None else resets


def in_kind_of(x, *arguments):
    """The real part of x where all it is made of is real: the other outputs may be complex."""
    real = x.dtype.kind == "c" and not any(a is not None and np.iscomplexobj(a) for a in arguments)
    return x.real.copy() if real else x


def blocks(run, state, l: int) -> list:
    """Windows of √l steps, the last first, each with the state before it: `run(window, state)` is
    the state after it. One empty window where l is 0."""
    pairs = []
    for window in windows(l) or [slice(0, 0)]:
        pairs.append((window, state))
        state = run(window, state) if window.stop < l else state
    return pairs[::-1]


def joined(pieces, axis: int) -> list:
    """Each output of all blocks, last first, as one array along time."""
    return [np.concatenate(parts[::-1], axis=axis) for parts in zip(*pieces, strict=True)]
