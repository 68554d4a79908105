# pyright: reportMissingImports=false
"""Triton's kernels on the CPU: import this before them.

Triton's interpreter runs them with NumPy, and nothing is timed: a kernel that has several
configurations gets the one with the smallest blocks. What they ask of a card is answered here.
"""

import os
from contextlib import nullcontext
from math import prod
from types import SimpleNamespace

os.environ["TRITON_INTERPRET"] = "1"

import torch
from triton.runtime import autotuner, interpreter

_theirs = autotuner.Autotuner.__init__
_their_splat = interpreter.InterpreterBuilder.create_splat


def _with_one_configuration(self, fn, arg_names, configs, key, *rest, **named):
    """The initialisation of a kernel with one configuration, which needs no key."""
    smallest = min(configs, key=lambda c: prod(c.kwargs.values()))
    _theirs(self, fn, arg_names, [smallest], [], *rest, **named)


def _spread(self, ret_ty, arg):
    """One value for a whole block: truth values stay truth values, which Triton 3.9 forgets."""
    block = _their_splat(self, ret_ty, arg)
    if arg.data.dtype == bool:
        block.data = block.data.astype(bool)
    return block


autotuner.Autotuner.__init__ = _with_one_configuration
interpreter.InterpreterBuilder.create_splat = _spread
if not torch.cuda.is_available():
    torch.cuda.device = nullcontext
    torch.cuda.get_device_properties = lambda _: SimpleNamespace(multi_processor_count=1)


class _Blocks:
    """A kernel that is launched with `constants`, in place of the defaults that it declares."""

    def __init__(self, kernel, constants):
        self.kernel, self.constants = kernel, constants

    def __getitem__(self, grid):
        return lambda *args, **named: self.kernel[grid](*args, **named, **self.constants)


def in_blocks(module, *kernels: str, **constants: int) -> None:
    """Launch kernels of a module with other constants than the defaults that they declare."""
    for name in kernels:
        setattr(module, name, _Blocks(getattr(module, name), constants))


def tensors_in_loops(module) -> None:
    """Let kernels call methods of a loop's numbers, which are Python's integers here."""
    module.range = lambda *ends: map(interpreter._implicit_cvt, range(*ends))


def few(axes: dict[str, str], **sizes: int):
    """An `only` that cuts axes to these sizes, for arguments with these axes: it is slow."""

    def cut(x):
        there = {name: of.split() for name, of in axes.items() if name in x}
        return {
            **x,
            **{k: x[k][..., *(slice(sizes.get(a)) for a in of)] for k, of in there.items()},
        }

    return cut


SSD = {
    "x": "b g h l p",
    "log_a": "b g h l",
    "dt": "b g h l",
    "A": "g h",
    "B": "b g 1 l n",
    "C": "b g 1 l n",
    "S0": "b g h p n",
}
SELECTIVE = {
    "u": "b d l",
    "dt": "b d l",
    "z": "b d l",
    "B": "b 1 l n",
    "C": "b 1 l n",
    "x0": "b d n",
    "A": "d n",
    "D": "d",
    "dt_bias": "d",
}
SCAN = {"a": "b l n", "b": "b l n"}
