"""What the mirrors share: gufuncs that are compiled once per machine, and where a scan begins."""

import re
import threading
from collections.abc import Callable

import numpy as np
from numba import guvectorize

from refssm.jit._cache import kept
from refssm.jit._threads import Threaded
from refssm.scan.blocks import windows

KINDS = ("f4", "f8", "c8", "c16")


def gufunc(signature, flag=None, kinds=KINDS):
    """`compiled` with this signature: every array of the same kind, except that the one at `flag`
    is boolean. NumPy casts others: real arrays among complex ones, kinds not compiled."""
    return compiled([_types(signature, kind, flag) for kind in kinds], signature)


def compiled(types, signature):
    """`guvectorize` of these types, loaded from disk where this machine has compiled it before;
    a large batch is shared by threads."""

    def decorate(function):
        assert function.__closure__ is None, "Numba finds no compiled function with a closure again"

        def build(cache):
            return guvectorize(types, signature, nopython=True, cache=cache)(function)

        return Threaded(kept(build, f"{function.__module__}.{function.__name__}"), signature)

    return decorate


ON_DEMAND: list["OnDemand"] = []  # of the modules imported so far
_compiling = threading.Lock()  # Numba's cache folder is one for the whole process


class OnDemand:
    """A gufunc for each kind, compiled when it is first asked for: a kernel in four kinds would
    make every first call wait for those that it does not need."""

    def __init__(self, function: Callable, signature: str, flag: int | None, kinds):
        self.function, self.signature, self.flag, self.kinds = function, signature, flag, kinds
        self._ready = {}
        ON_DEMAND.append(self)

    def __call__(self, *arrays):
        """The outputs in the common kind of the arrays."""
        numbers = (a for i, a in enumerate(arrays) if i != self.flag)
        return self.of(np.result_type(*numbers).str[1:])(*arrays)

    def of(self, kind: str) -> Threaded:
        """The gufunc of this kind; all arrays have it, except the one at `flag`."""
        if kind not in self._ready:
            with _compiling:
                types, name = [_types(self.signature, kind, self.flag)], self.function.__name__

                def build(cache):
                    decorate = guvectorize(types, self.signature, nopython=True, cache=cache)
                    return decorate(self.function)

                gufunc = kept(build, f"{self.function.__module__}.{name}.{kind}")
                self._ready[kind] = Threaded(gufunc, self.signature)
        return self._ready[kind]

    def compile(self) -> None:
        """All kinds now."""
        for kind in self.kinds:
            self.of(kind)


def on_demand(signature, flag=None, kinds=KINDS):
    """`OnDemand` for the decorated function."""
    return lambda function: OnDemand(function, signature, flag, kinds)


def _types(signature, kind, flag) -> str:
    """ "(l,n),(l)->(n)" in f4 with flag 1: "(f4[:,:], b1[:], f4[:])"."""
    ranks = [core.count(",") + 1 for core in re.findall(r"\(([^)]*)\)", signature)]
    colons = [",".join(":" * rank) for rank in ranks]
    kinds = ["b1" if i == flag else kind for i in range(len(ranks))]
    return f"({', '.join(f'{k}[{c}]' for k, c in zip(kinds, colons, strict=True))})"


def begun(l: int) -> np.ndarray:
    """A reset at the first step, as every scan from rest has: nothing before it counts."""
    return np.arange(l) == 0


def in_kind_of(x, *arguments):
    """The real part of x where all it is made of is real: the other outputs may be complex."""
    real = x.dtype.kind == "c" and not any(np.iscomplexobj(a) for a in arguments)
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
