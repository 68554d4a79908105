"""PyTorch: tensors, their memory layouts, and autograd.

autograd's gradient of a complex tensor is ∂L/∂Re + i ∂L/∂Im, as in refssm, so no conjugate is
needed.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch

from refssm.conformance.calling.adapters import cuda
from refssm.conformance.calling.adapters.numpy_arrays import (
    NoDevice,
    Numpy,
    Unusable,
    carried,
    repeated,
)
from refssm.conformance.number_types import NumberType


class Torch(Numpy):
    """Tensors on the CPU or on a device such as "cuda" or "cuda:1"."""

    name = "torch"

    def __init__(self, device: str = ""):
        try:
            one = torch.zeros(1, device=torch.device(device or "cpu"))
            one.cpu()
            self.device = one.device  # with its number: cuda:0 for cuda
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            reason = str(error).splitlines()[0]
            raise NoDevice(f"torch has no device {device!r} here: {reason}") from None
        self.views = dict(VIEWS)
        self.streams = self.device.type == "cuda"
        self.faults = (RuntimeError,) if self.streams else ()

    @property
    def tf32(self) -> str:
        """The settings that are on, if there is a CUDA device to follow them."""
        if not self.streams:
            return ""
        on = _allowed()
        named = ("torch.backends.cuda.matmul.allow_tf32", "torch.backends.cudnn.allow_tf32")
        return " and ".join(name for name, flag in zip(named, on, strict=True) if flag)

    def about(self) -> str:
        tiny = torch.tensor([torch.finfo(torch.float32).tiny], device=self.device)
        flushed = "yes" if float((tiny * 0.5)[0]) == 0 else "no"
        told = f"torch {torch.__version__}, device {self.device}"
        if not self.streams:
            return f"{told}, flush to zero: {flushed}"
        card = torch.cuda.get_device_properties(self.device)
        told += f" ({card.name}, compute capability {card.major}.{card.minor})"
        told += f", {_versions()}, flush to zero: {flushed}"
        products, convolutions = map(cuda.yes, _allowed())
        told += f", TF32 in products: {products}, in convolutions: {convolutions}"
        only = torch.are_deterministic_algorithms_enabled()
        return told + ", deterministic algorithms only" * only

    def inside(self, kind: NumberType) -> AbstractContextManager:
        """The device is the current one, whichever an earlier call left behind."""
        del kind
        return torch.cuda.device(self.device) if self.streams else nullcontext()

    def finish(self) -> None:
        if self.streams:
            torch.cuda.synchronize(self.device)

    @contextmanager
    def behind(self, given: Sequence) -> Iterator[Sequence]:
        late = [
            torch.full_like(x, 0 if x.dtype in (torch.bool, torch.int64) else torch.nan)
            for x in given
        ]
        busy = torch.zeros(cuda.BUSY, device=self.device)
        self.finish()
        with torch.cuda.stream(torch.cuda.Stream(self.device)):
            for _ in range(cuda.ROUNDS):
                busy += 1
            for x, ready in zip(late, given, strict=True):
                x.copy_(ready)
            yield late

    def ran_out(self, error: BaseException | None) -> bool:
        if not isinstance(error, torch.cuda.OutOfMemoryError):
            return False
        torch.cuda.empty_cache()
        return True

    def give(self, a: np.ndarray, kind: NumberType, view: str = "") -> Any:
        x = torch.from_numpy(np.array(a, order="C"))
        if kind.half and x.is_floating_point():
            wide = x.dtype is torch.float64  # a wider result, given back: see `cast`
            x = x.to(torch.float32 if wide else getattr(torch, kind.name))
        return self.views[view](x.to(self.device))

    def take(self, y: Any, kind: NumberType) -> np.ndarray | Unusable:
        if not isinstance(y, torch.Tensor):
            on_host = isinstance(y, np.ndarray) and self.streams
            told = cuda.elsewhere("a NumPy array", "the host", str(self.device)) if on_host else ""
            return Unusable(type(y).__name__, told)
        if y.device != self.device:
            told = cuda.elsewhere("a tensor", str(y.device), str(self.device))
            return Unusable("Tensor", told)
        name = str(y.dtype).removeprefix("torch.")
        y = y.detach().resolve_conj().resolve_neg().cpu()
        if name == "bfloat16":
            y = y.float()
        try:
            y = np.array(y.numpy(), order="C")
        except TypeError:  # sparse, or of a type that NumPy lacks
            return Unusable(f"tensor of {name}, {y.layout}")
        return carried(y, name, kind)

    def copied(self, x: Any) -> Any:
        return x.clone(memory_format=torch.contiguous_format)

    def refill(self, x: Any, y: Any) -> None:
        x.copy_(y)

    def share(self, x: Any, y: Any) -> bool:
        if not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)):
            return False
        if x.layout is not torch.strided or y.layout is not torch.strided:
            return False
        mine, theirs = x.untyped_storage(), y.untyped_storage()
        return x.numel() > 0 and y.numel() > 0 and mine.data_ptr() == theirs.data_ptr()

    def same(self, x: Any, y: Any) -> bool:
        return x.shape == y.shape and bool(((x == y) | ((x != x) & (y != y))).all())

    def pullback(self, function, cotangents, primals, statics) -> tuple:
        given = [x if x.dtype is torch.bool else x.detach().requires_grad_() for x in primals]
        leaves = [x for x in given if x.requires_grad]
        try:
            y = function(*given, **statics)
        except RuntimeError as error:
            if "leaf Variable" not in str(error):
                raise
            # a step that writes the new state over the old one: in a model the state is no leaf
            y = function(*(x.clone() if x.requires_grad else x for x in given), **statics)
        outputs = y if isinstance(y, tuple | list) else (y,)
        pairs = zip(cotangents, outputs, strict=True)
        cotangents = [c if c.dtype == out.dtype else c.to(out.dtype) for c, out in pairs]
        gradients = torch.autograd.grad(tuple(outputs), leaves, cotangents, allow_unused=True)
        found = iter(gradients)
        pulled = [(next(found) if x.requires_grad else None, x) for x in given]
        return tuple(torch.zeros_like(x) if g is None else g for g, x in pulled)


def _allowed() -> tuple[bool, bool]:
    """Whether TF32 is on in products and in convolutions.

    `allow_tf32` raises where a program uses the newer settings.
    """
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    if hasattr(convolutions, "conv"):
        precisions = products.fp32_precision, convolutions.conv.fp32_precision
        return precisions[0] == "tf32", precisions[1] == "tf32"
    return bool(products.allow_tf32), bool(convolutions.allow_tf32)


def _versions() -> str:
    """The driver's and the runtime's version of CUDA; a build for other cards has neither."""
    driver = getattr(torch._C, "_cuda_getDriverVersion", None)
    told = f"driver for CUDA {cuda.version(driver())}, " if driver else ""
    return f"{told}runtime CUDA {torch.version.cuda}"


def _outside(x) -> float:
    """What stands beside a view in memory: NaN, or a number that no offset may be."""
    return -1 if x.dtype is torch.int64 else float("nan")


def _strided(x):
    """Every second entry of a wider tensor, along the last axis."""
    if not x.ndim:
        return x
    wide = torch.full((*x.shape[:-1], 2 * x.shape[-1]), _outside(x), dtype=x.dtype)
    wide = wide.to(x.device)
    wide[..., ::2] = x
    return wide[..., ::2]


def _transposed(x):
    """Column-major memory."""
    order = tuple(reversed(range(x.ndim)))
    return x.permute(order).contiguous().permute(order)


def _padded(x):
    """A slice of a tensor that is one longer along every axis but the first."""
    return _within((*x.shape[:1], *(n + 1 for n in x.shape[1:])), x)


def _halved(x):
    """The first half of a tensor along its second axis, as `chunk(2, dim=1)` gives it."""
    return _within((*x.shape[:1], *(2 * n for n in x.shape[1:2]), *x.shape[2:]), x)


def _within(shape: tuple[int, ...], x):
    """A view of a tensor of this shape, with NaN outside of the view."""
    wide = torch.full(shape, _outside(x), dtype=x.dtype, device=x.device)
    inside = tuple(map(slice, x.shape))
    wide[inside] = x
    return wide[inside]


def _with_offset(x):
    """A contiguous copy that starts one element into a larger buffer, after a NaN."""
    buffer = torch.full((x.numel() + 1,), _outside(x), dtype=x.dtype, device=x.device)
    buffer[1:] = x.reshape(-1)
    return buffer[1:].reshape(x.shape)


def _expanded(x):
    """Stride 0 along every axis on which the tensor is constant."""
    held = x.float() if x.dtype is torch.bfloat16 else x  # NumPy has no bfloat16
    same = repeated(held.numpy(force=True))
    index = tuple(slice(0, 1) if one else slice(None) for one in same)
    return x[index].expand(x.shape)


VIEWS = {
    "": lambda x: x,
    "every other entry": _strided,
    "column-major": _transposed,
    "padded rows": _padded,
    "half of an array": _halved,
    "offset in a buffer": _with_offset,
    "expanded": _expanded,
}
ADAPTER = Torch
