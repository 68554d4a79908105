"""JAX: immutable arrays without strides; double precision is switched on only where it is judged.

`jax.vjp` multiplies by the transposed Jacobian without a conjugate, so `jax.grad` of a real loss is
∂L/∂Re − i ∂L/∂Im. refssm uses the conjugate: g = conj(vjp(conj(dy))).
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from refssm.conformance.calling.adapters.numpy_arrays import NoDevice, Numpy, Unusable, carried
from refssm.conformance.number_types import NumberType, number_type

PROGRAMS = 100  # calls between clearings of JAX's cache, which grows with each new shape


class Jax(Numpy):
    """Arrays on the default device, or on "cpu", "gpu", "tpu" or "gpu:1"."""

    name = "jax"
    immutable = True

    def __init__(self, device: str = ""):
        platform, _, number = device.partition(":")
        try:
            self.device = jax.devices(platform or None)[int(number or 0)]
        except (RuntimeError, IndexError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise NoDevice(f"jax has no device {device!r} here: {reason}") from None
        self.views, self.calls = {"": lambda x: x}, 0

    def about(self) -> str:
        smallest = np.full(1, np.finfo(np.float32).tiny, np.float32)
        tiny = self.give(smallest, number_type("float32"))
        flushed = "yes" if float((tiny * 0.5)[0]) == 0 else "no"
        kind, precision = self.device.device_kind, jax.config.jax_default_matmul_precision  # pyright: ignore
        told = f"jax {jax.__version__}, device {self.device} ({kind}), flush to zero: {flushed}"
        return told + (f", precision of products: {precision}" if precision else "")

    def inside(self, kind: NumberType) -> AbstractContextManager:
        self.calls += 1
        if self.calls % PROGRAMS == 0:
            jax.clear_caches()
        return jax.enable_x64(kind.name in ("float64", "complex128"))

    def give(self, a: np.ndarray, kind: NumberType, view: str = "") -> Any:
        half = kind.half and a.dtype.kind not in "bi"
        name = "float32" if a.dtype == np.float64 else kind.name  # float64: see `cast`
        own = a.astype(getattr(jnp, name)) if half else np.array(a)
        return jax.device_put(self.views[view](own), self.device)

    def take(self, y: Any, kind: NumberType) -> np.ndarray | Unusable:
        if not isinstance(y, jax.Array | np.ndarray):
            return Unusable(type(y).__name__)
        name = y.dtype.name
        if name == "bfloat16":
            return carried(np.asarray(y).astype(np.float32), name, kind)
        if jnp.issubdtype(y.dtype, jax.dtypes.extended):  # random keys
            return Unusable(f"array of {name}")
        return carried(np.array(y, order="C"), name, kind)

    def part(self, x: Any, place: tuple) -> Any:
        """Taken by NumPy: JAX compiles a program for each shape and each place."""
        return jax.device_put(np.asarray(x)[place], self.device)

    def copied(self, x: Any) -> Any:
        return x

    def share(self, x: Any, y: Any) -> bool:
        del x, y
        return False

    def same(self, x: Any, y: Any) -> bool:
        """JAX arrays are immutable, so this is False only for an array whose buffer was donated."""
        del y
        return not x.is_deleted()

    def pullback(self, function, cotangents, primals, statics) -> tuple:
        y, pull = jax.vjp(lambda *x: function(*x, **statics), *primals)
        outputs, form = jax.tree.flatten(y)
        pairs = zip(cotangents, outputs, strict=True)
        pushed = [self._conj(c, out.dtype) for c, out in pairs]
        gradients = pull(jax.tree.unflatten(form, pushed))
        pairs = zip(gradients, primals, strict=True)  # for flags the type is float0
        return tuple(x if x.dtype == bool else self._conj(g, g.dtype) for g, x in pairs)

    def _conj(self, x: Any, kind) -> Any:
        """x* in a type, by NumPy for the same reason as a part; by JAX while JAX compiles."""
        if isinstance(x, jax.core.Tracer):
            return jnp.conj(x).astype(kind)
        return jax.device_put(np.conj(np.asarray(x)).astype(kind), self.device)


ADAPTER = Jax
