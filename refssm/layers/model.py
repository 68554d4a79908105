"""A model: encoder, blocks of norm, layer, dropout and residual, and a decoder.

The encoder is a linear map of real signals (…, l, inputs), or a table with a row for each symbol of
integer signals (…, l). The decoder reads the mean over time, the last time, or each time.

Parameters are arrays under names such as `encoder.W` or `blocks.0.layer.C`, in a fixed order: what
AdamW updates and a checkpoint holds. For the backward pass each block keeps its input, and what its
layer keeps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from refssm import initial
from refssm.layers._frame import Layer, Ops
from refssm.layers._parts import mixing
from refssm.layers._parts.norms import NORMS

Arrays = Mapping[str, np.ndarray]
NONE: Arrays = MappingProxyType({})


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
    read: str = "mean"  # what the decoder reads: mean, last or each
    symbols: bool = False  # signals are integers below `inputs`
    start: Mapping[str, Any] = field(default_factory=dict)  # options of the layer's `init`

    def init(self, rng, dtype: Any = np.float32) -> dict[str, np.ndarray]:
        """New parameters, drawn in double precision and rounded."""
        if self.symbols:  # as PyTorch's `Embedding`
            arrays = {"encoder.table": initial.normal(rng, (self.inputs, self.h))}
        else:
            W, b = initial.linear(rng, self.inputs, self.h)
            arrays = {"encoder.W": W, "encoder.b": b}
        for i in range(self.depth):
            own = {**self.layer.sizes, **self.sizes, **self.start}
            layer = self.layer.init(rng, h=self.h, **own)
            arrays |= under(f"blocks.{i}.norm.", NORMS[self.norm].init(self.h))
            arrays |= under(f"blocks.{i}.layer.", layer.arrays())
        W, b = initial.linear(rng, self.h, self.outputs)
        arrays |= {"decoder.W": W, "decoder.b": b}
        kinds = {"f": np.dtype(dtype), "c": np.result_type(dtype, np.complex64)}
        return {name: a.astype(kinds[a.dtype.kind]) for name, a in arrays.items()}

    def averages(self, dtype=np.float32) -> dict[str, np.ndarray]:
        """The running averages of all norms before the first step; most norms have none."""
        start = NORMS[self.norm].averages(self.h)
        names = [f"blocks.{i}.norm." for i in range(self.depth)]
        return {n + name: a.astype(dtype) for n in names for name, a in start.items()}

    def groups(self) -> dict[str, str]:
        """The group of every parameter in AdamW: weights, system, or plain (norms and biases)."""
        names = dict.fromkeys(self.init(np.random.default_rng(0)), "weights")
        plain = (".b", ".scale", ".shift", ".table")
        names |= {n: "plain" for n in names if n.endswith(plain)}
        for i in range(self.depth):
            kinds = self.layer.kind.groups()
            names |= {f"blocks.{i}.layer.{name}": kind for name, kind in kinds.items()}
        return names

    def alike(self) -> list[str]:
        """Parameters whose numbers are one number in training: steps that start as a scalar."""
        scalar = self.start.get("steps") == "scalar"
        return [name for name in self.groups() if scalar and ".layer.log_dt" in name]

    def times(self, u: np.ndarray) -> tuple[int, ...]:
        """(…, l) of signals."""
        return u.shape if self.symbols else u.shape[:-1]

    def beside(self, x: np.ndarray, gaps: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """What the layer reads beside its signal x: nothing, or the gaps (…, l) between samples,
        which are 1 if there are none."""
        if not self.layer.beside:
            return ()
        return (np.ones(x.shape[:-1], x.dtype, like=x) if gaps is None else gaps,)

    def forward(
        self, ops: Ops, p: Arrays, u: np.ndarray, averages: Arrays = NONE, gaps=None
    ) -> np.ndarray:
        """The outputs (…, outputs) for signals (…, l, inputs) after training: without dropout, and
        with running averages instead of those of the batch. If the decoder reads each time, they
        are (…, l, outputs). A layer that has no second input does not see the gaps (…, l)."""
        x = self._encoded(p, u)
        second = self.beside(x, gaps)
        for i in range(self.depth):
            norm, np_, lp = self._parts(part(p, f"blocks.{i}."))
            own = part(averages, f"blocks.{i}.norm.")
            if self.prenorm:
                x = x + self.layer.forward(ops, lp, norm.fixed(ops, np_, own, x), *second)
            else:
                x = norm.fixed(ops, np_, own, x + self.layer.forward(ops, lp, x, *second))
        return mixing.linear(self._read.of(x), p["decoder.W"], p["decoder.b"])

    @property
    def _read(self) -> mixing.Reading:
        return mixing.READINGS[self.read]

    def _encoded(self, p, u):
        if self.symbols:
            return mixing.embedding(u, p["encoder.table"])
        return mixing.linear(u, p["encoder.W"], p["encoder.b"])

    def _encoder_gradients(self, dx, p, u):
        if self.symbols:
            return {"encoder.table": mixing.embedding_vjp(dx, u, p["encoder.table"])}
        _, dW, db = mixing.linear_vjp(dx, u, p["encoder.W"])
        return {"encoder.W": dW, "encoder.b": db}

    def _parts(self, p):
        norm = NORMS[self.norm]
        return norm, part(p, "norm."), self.layer.kind(**part(p, "layer."))

    def _block(self, ops, p, q, x, mask, second):
        """x + mask · layer(norm(x)), or norm(x + mask · layer(x)); what the norm saw; and the
        function from the cotangent of the output to the gradients of the block, and of x."""
        norm, np_ = NORMS[self.norm], part(p, "norm.")
        if not self.prenorm:
            return self._post_norm(ops, p, q, x, mask, second)
        given, seen = norm.forward(ops, np_, x)
        y, layer_back = self.layer.run(ops, q, given, *second)

        def back(dy):
            dlayer, dgiven, *_ = layer_back(_masked(mask, dy))  # gaps are data
            dnorm, dx = norm.vjp(ops, dgiven, np_, x)
            return _block_gradients(dnorm, dlayer), mixing.plus(dx, dy)

        return x + _masked(mask, y), seen, back

    def _post_norm(self, ops, p, q, x, mask, second):
        norm, np_ = NORMS[self.norm], part(p, "norm.")
        y, layer_back = self.layer.run(ops, q, x, *second)
        before = x + _masked(mask, y)
        out, seen = norm.forward(ops, np_, before)

        def back(dy):
            dnorm, dy = norm.vjp(ops, dy, np_, before)
            dlayer, dx, *_ = layer_back(_masked(mask, dy))
            return _block_gradients(dnorm, dlayer), mixing.plus(dx, dy)

        return out, seen, back

    def masks(self, rng, shape, dtype) -> list | None:
        """Dropout masks of every block, or None without dropout."""
        if not self.dropout:
            return None
        return [mixing.dropout_mask(rng, shape, self.dropout, dtype) for _ in range(self.depth)]

    def gradients(self, ops: Ops, p: Arrays, u: np.ndarray, cotangent, masks=None, gaps=None):
        """The outputs in training, the gradients of every parameter, and what the norms saw.

        `cotangent(outputs)` is the gradient of the loss. Each block keeps what its layer keeps, and
        its input.
        """
        layers, back = self.prepared(ops, p, self.times(u)[-1])
        y, grads, seen = self.run(ops, p, layers, u, cotangent, masks, gaps)
        return y, back(grads), seen

    def prepared(self, ops: Ops, p: Arrays, l: int):
        """What the parameters of each layer decide for l steps; and the function from the gradients
        of `run`, which may be sums over parts of a batch, to those of all parameters."""
        places = [f"blocks.{i}.layer." for i in range(self.depth)]
        made = [self.layer.prepared(ops, self.layer.kind(**part(p, at)), l) for at in places]

        def back(grads: Arrays) -> dict[str, np.ndarray]:
            found = dict(grads)
            for at, (q, layer_back) in zip(places, made, strict=True):
                dq = type(q)(**part(grads, at))
                found |= under(at, layer_back(dq).arrays())
            return {name: found[name] for name in p}

        return [q for q, _ in made], back

    def run(self, ops: Ops, p: Arrays, layers, u: np.ndarray, cotangent, masks=None, gaps=None):
        """As `gradients`, for prepared layers; gradients are of what `prepared` gives."""
        x, seen, backs = self._encoded(p, u), {}, []
        second = self.beside(x, gaps)
        for i, q in enumerate(layers):
            own = part(p, f"blocks.{i}.")
            x, its, back = self._block(ops, own, q, x, masks and masks[i], second)
            backs.append(back)
            seen |= under(f"blocks.{i}.norm.", its)
        pooled = self._read.of(x)
        y = mixing.linear(pooled, p["decoder.W"], p["decoder.b"])
        dpooled, dW, db = mixing.linear_vjp(cotangent(y), pooled, p["decoder.W"])
        dx, grads = self._read.vjp(dpooled, x), {"decoder.W": dW, "decoder.b": db}
        del x, pooled
        for i in range(self.depth - 1, -1, -1):
            dblock, dx = backs.pop()(dx)
            grads |= under(f"blocks.{i}.", dblock)
        return y, {**self._encoder_gradients(dx, p, u), **grads}, seen


def _block_gradients(dnorm, dlayer):
    return {**under("norm.", dnorm), **under("layer.", dlayer.arrays())}


def _masked(mask, y):
    return y if mask is None else mask * y
