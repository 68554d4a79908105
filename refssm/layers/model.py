"""A model: linear encoder, blocks of norm, layer, dropout and residual, mean over time, decoder.

Parameters are arrays under names such as `encoder.W` or `blocks.0.layer.C`, in a fixed order: what
AdamW updates and a checkpoint holds. The backward pass keeps the input of each block and computes
the rest of the block again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from refssm import initial
from refssm.layers import mixing
from refssm.layers._layer import Layer, Ops
from refssm.layers.norms import NORMS

Arrays = Mapping[str, np.ndarray]


def part(arrays: Arrays, prefix: str) -> dict[str, np.ndarray]:
    """The arrays whose names begin with this prefix, without it."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def under(prefix: str, arrays: Arrays) -> dict[str, np.ndarray]:
    """The arrays with this prefix before their names."""
    return {f"{prefix}{name}": a for name, a in arrays.items()}


@dataclass(frozen=True)
class Model:
    """A stack of equal layers between an encoder and a decoder."""

    layer: Layer
    inputs: int
    outputs: int
    h: int = 64
    depth: int = 4
    norm: str = "layer"
    prenorm: bool = True
    dropout: float = 0.0
    sizes: Mapping[str, int] = field(default_factory=dict)

    def init(self, rng, dtype=np.float32) -> dict[str, np.ndarray]:
        """New parameters, drawn in double precision and rounded."""
        W, b = initial.linear(rng, self.inputs, self.h)
        arrays = {"encoder.W": W, "encoder.b": b}
        for i in range(self.depth):
            layer = self.layer.init(rng, h=self.h, **{**self.layer.sizes, **self.sizes})
            arrays |= under(f"blocks.{i}.norm.", NORMS[self.norm].init(self.h))
            arrays |= under(f"blocks.{i}.layer.", layer.arrays())
        W, b = initial.linear(rng, self.h, self.outputs)
        arrays |= {"decoder.W": W, "decoder.b": b}
        kinds = {"f": np.dtype(dtype), "c": np.result_type(dtype, np.complex64)}
        return {name: a.astype(kinds[a.dtype.kind]) for name, a in arrays.items()}

    def groups(self) -> dict[str, str]:
        """The group of every parameter in AdamW: weights, system, or plain (norms and biases)."""
        names = dict.fromkeys(self.init(np.random.default_rng(0)), "weights")
        names |= {n: "plain" for n in names if n.endswith((".b", ".scale", ".shift"))}
        for i in range(self.depth):
            kinds = self.layer.kind.groups()
            names |= {f"blocks.{i}.layer.{name}": kind for name, kind in kinds.items()}
        return names

    def forward(self, ops: Ops, p: Arrays, u: np.ndarray) -> np.ndarray:
        """The outputs (…, outputs) for signals (…, l, inputs), without dropout."""
        return self._decoded(p, self._blocks(ops, p, u, None)[-1])

    def _blocks(self, ops, p, u, masks) -> list[np.ndarray]:
        """The signal before every block, and after the last one."""
        x = [mixing.linear(u, p["encoder.W"], p["encoder.b"])]
        for i in range(self.depth):
            x.append(self._block(ops, part(p, f"blocks.{i}."), x[-1], masks and masks[i]))
        return x

    def _decoded(self, p, x):
        return mixing.linear(mixing.mean_pool(x), p["decoder.W"], p["decoder.b"])

    def _parts(self, p):
        norm = NORMS[self.norm]
        return norm, part(p, "norm."), self.layer.kind(**part(p, "layer."))

    def _block(self, ops, p, x, mask):
        """x + mask · layer(norm(x)), or norm(x + mask · layer(x))."""
        norm, np_, lp = self._parts(p)
        y = self.layer.forward(ops, lp, norm.forward(np_, x) if self.prenorm else x)
        y = x + (y if mask is None else mask * y)
        return y if self.prenorm else norm.forward(np_, y)

    def _block_vjp(self, ops, dy, p, x, mask):
        """Gradients of the block's parameters, and of x."""
        norm, np_, lp = self._parts(p)
        given = norm.forward(np_, x) if self.prenorm else x
        if not self.prenorm:
            y = self.layer.forward(ops, lp, x)
            dnorm, dy = norm.vjp(dy, np_, x + (y if mask is None else mask * y))
        dlayer, dgiven = self.layer.vjp(ops, dy if mask is None else mask * dy, lp, given)
        if self.prenorm:
            dnorm, dgiven = norm.vjp(dgiven, np_, x)
        return {**under("norm.", dnorm), **under("layer.", dlayer.arrays())}, dy + dgiven

    def masks(self, rng, shape, dtype) -> list | None:
        """Dropout masks of every block, or None without dropout."""
        if not self.dropout:
            return None
        return [mixing.dropout_mask(rng, shape, self.dropout, dtype) for _ in range(self.depth)]

    def gradients(self, ops: Ops, p: Arrays, u: np.ndarray, cotangent, masks=None):
        """The outputs, and the gradients of `cotangent(outputs)` for every parameter."""
        x = self._blocks(ops, p, u, masks)
        y = self._decoded(p, x[-1])
        dpooled, dW, db = mixing.linear_vjp(cotangent(y), mixing.mean_pool(x[-1]), p["decoder.W"])
        dx, grads = mixing.mean_pool_vjp(dpooled, x[-1]), {"decoder.W": dW, "decoder.b": db}
        for i in range(self.depth - 1, -1, -1):
            x.pop()
            block = part(p, f"blocks.{i}.")
            dblock, dx = self._block_vjp(ops, dx, block, x[-1], masks and masks[i])
            grads |= under(f"blocks.{i}.", dblock)
        _, dW, db = mixing.linear_vjp(dx, u, p["encoder.W"])
        return y, {**grads, "encoder.W": dW, "encoder.b": db}
