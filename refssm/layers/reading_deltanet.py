"""Language models of Gated DeltaNet, with the names that `transformers` gives Qwen3-Next.

    x = E[tokens],   logits = rms_norm(x) H, and in every block
    x ← x + layer(rms_norm(x)),   x ← x + (silu(x' W_gate) ∘ (x' W_up)) W_down,   x' = rms_norm(x)

Such a file stores scales of norms as their distance from 1; that of the gated norm inside the layer
is stored itself. All norms have the ε of the config. Queries, keys, values and gates of a head of
keys lie beside each other, and the heads of values that share its keys get copies of them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from refssm.activations import silu
from refssm.layers._frame import Ops, State
from refssm.layers.attention.gated_deltanet import GATED_DELTANET_LAYER, GatedDeltaNet

PREFIX = "model.layers."
BLOCK = re.compile(r"model\.layers\.(\d+)\.(.+)")
OUTSIDE = ("model.embed_tokens.weight", "model.norm.weight", "lm_head.weight")
LAYER = ("in_proj_qkvz.weight", "in_proj_ba.weight", "conv1d.weight", "dt_bias", "A_log",
         "norm.weight", "out_proj.weight")  # fmt: skip
NAMES = (
    "input_layernorm.weight", *(f"linear_attn.{name}" for name in LAYER),
    "post_attention_layernorm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
    "mlp.down_proj.weight",
)  # fmt: skip
HEADS, EPSILON = "linear_num_key_heads", "rms_norm_eps"


class DeltaNetBlock(NamedTuple):
    """Scales (h), the layer's parameters, and the maps (h, f), (h, f) and (f, h) after it."""

    scale: np.ndarray
    layer: GatedDeltaNet
    second_scale: np.ndarray
    gate: np.ndarray
    up: np.ndarray
    down: np.ndarray


@dataclass(frozen=True)
class DeltaNetModel:
    """Embedding (v, h), blocks, last scale, head (h, v), and ε of all norms."""

    embedding: np.ndarray
    blocks: tuple[DeltaNetBlock, ...]
    scale: np.ndarray
    head: np.ndarray
    eps: float

    def normal(self, x, scale):
        """scale x/√(mean of x² + ε)."""
        return scale * (x / np.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(self.eps)))

    def mixed(self, block: DeltaNetBlock, x):
        """What the maps after the layer add."""
        x = self.normal(x, block.second_scale)
        return (silu(x @ block.gate) * (x @ block.up)) @ block.down

    def forward(self, ops: Ops, tokens: np.ndarray) -> np.ndarray:
        """The logits (…, l, v) of tokens (…, l)."""
        x, ops = self.embedding[tokens], OfEpsilon(ops, self.eps)
        for block in self.blocks:
            x = x + GATED_DELTANET_LAYER.forward(ops, block.layer, self.normal(x, block.scale))
            x = x + self.mixed(block, x)
        return self.normal(x, self.scale) @ self.head

    def rest(self, batch=()) -> tuple[State, ...]:
        """The states of the blocks before the first token."""
        return tuple(GATED_DELTANET_LAYER.rest(block.layer, batch) for block in self.blocks)

    def stateful(self, ops: Ops, tokens: np.ndarray, states: tuple[State, ...]):
        """The logits of a piece from these states, and the next states."""
        x, ops, after = self.embedding[tokens], OfEpsilon(ops, self.eps), []
        for block, state in zip(self.blocks, states, strict=True):
            inner = self.normal(x, block.scale)
            y, state = GATED_DELTANET_LAYER.stateful(ops, block.layer, inner, state)
            x = x + y
            x = x + self.mixed(block, x)
            after.append(state)
        return self.normal(x, self.scale) @ self.head, tuple(after)


class OfEpsilon:
    """The operators of a namespace, the gated norm and its VJP with this ε."""

    def __init__(self, ops: Ops, eps: float):
        self._ops, self._eps = ops, eps

    def __getattr__(self, name: str):
        found = getattr(self._ops, name)
        return partial(found, eps=self._eps) if name.startswith("rms_norm_gated") else found


def model_of(path, arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]) -> DeltaNetModel:
    """The model of all tensors of a file; ValueError says in one sentence what it lacks."""
    inside: dict[int, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        block = BLOCK.fullmatch(name)
        if block and block[2] in NAMES:
            inside.setdefault(int(block[1]), {})[block[2]] = array
        elif name not in OUTSIDE:
            raise ValueError(f"{path}: `{name}` has no place in blocks of Gated DeltaNet")
    for name in OUTSIDE[:2]:
        if name not in arrays:
            raise ValueError(f"{path}: not a model of Gated DeltaNet: no `{name}`")
    for name in (HEADS, EPSILON):
        if name not in config:
            raise ValueError(
                f"{path}: tensors do not show `{name}`, wanted in a config.json beside"
            )
    if sorted(inside) != [*range(len(inside))] or not inside:
        raise ValueError(f"{path}: blocks must be numbered from 0, got {sorted(inside)}")
    blocks = tuple(_block(path, i, inside[i], int(config[HEADS])) for i in range(len(inside)))
    embedding, scale = (arrays[name] for name in OUTSIDE[:2])
    head = np.ascontiguousarray(arrays.get(OUTSIDE[2], embedding).T)
    return DeltaNetModel(embedding, blocks, 1 + scale, head, float(config[EPSILON]))


def _block(path, i: int, found: Mapping[str, np.ndarray], heads: int) -> DeltaNetBlock:
    for name in NAMES:
        if name not in found:
            raise ValueError(f"{path}: block {i} has no `{name}`")
    wanted = _shapes(found, heads)
    for name, array in found.items():
        if array.shape != wanted[name]:
            sizes = f"wanted {wanted[name]}, got {array.shape}"
            raise ValueError(f"{path}: block {i}: `{name}` does not fit the others: {sizes}")
    first, second = (1 + found[f"{name}_layernorm.weight"] for name in ("input", "post_attention"))
    maps = (np.ascontiguousarray(found[f"mlp.{name}_proj.weight"].T)
            for name in ("gate", "up", "down"))  # fmt: skip
    layer = {name: found[f"linear_attn.{name}"] for name in LAYER}
    return DeltaNetBlock(first, _parameters(layer, heads), second, *maps)


def _sizes(found: Mapping[str, np.ndarray], heads: int) -> tuple[int, int, int, int]:
    """h, n keys and p values of a head, and g heads of values."""
    g, p = len(found["linear_attn.A_log"]), len(found["linear_attn.norm.weight"])
    n = (len(found["linear_attn.conv1d.weight"]) - g * p) // max(1, 2 * heads)
    return len(found["input_layernorm.weight"]), n, p, g


def _shapes(found: Mapping[str, np.ndarray], heads: int) -> dict[str, tuple[int, ...]]:
    h, n, p, g = _sizes(found, heads)
    g -= g % max(1, heads)  # as many for each head of keys
    c, t = 2 * heads * n + g * p, found["linear_attn.conv1d.weight"].shape[-1]
    f = len(found["mlp.gate_proj.weight"])
    of_layer = ((c + g * p, h), (2 * g, h), (c, 1, t), (g,), (g,), (p,), (h, g * p))
    rest = ((h,), (f, h), (f, h), (h, f))
    return dict(zip(NAMES, ((h,), *of_layer, *rest), strict=True))


def _parameters(found: Mapping[str, np.ndarray], heads: int) -> GatedDeltaNet:
    """Queries, keys, values and gates of each head, from rows that lie by heads of keys."""
    g, p, h = len(found["A_log"]), len(found["norm.weight"]), len(found["out_proj.weight"])
    each = g // heads
    n = (len(found["conv1d.weight"]) - g * p) // (2 * heads)
    rows = found["in_proj_qkvz.weight"].reshape(heads, -1, h)
    W_q, W_k, W_v, W_z = np.split(rows, np.cumsum([n, n, each * p]), axis=1)
    taps = found["conv1d.weight"][:, 0, ::-1]
    k_q, k_k, k_v = np.split(taps, [heads * n, 2 * heads * n])
    b, a = np.split(found["in_proj_ba.weight"].reshape(heads, -1, h), 2, axis=1)
    shared = [np.repeat(x.reshape(heads, n, -1), each, axis=0) for x in (W_q, W_k, k_q, k_k)]
    W_q, W_k, k_q, k_k = shared
    W_v, W_z = (x.reshape(g, p, h) for x in (W_v, W_z))
    turned = (np.ascontiguousarray(x.swapaxes(1, 2)) for x in (W_q, W_k, W_v, W_z))
    W_q, W_k, W_v, W_z = turned
    a, b = (np.ascontiguousarray(x.reshape(g, h).T) for x in (a, b))
    out = np.ascontiguousarray(found["out_proj.weight"].T).reshape(g, p, h)
    return GatedDeltaNet(
        W_q, W_k, W_v, k_q, k_k, np.ascontiguousarray(k_v.reshape(g, p, -1)), a, b,
        found["dt_bias"], found["A_log"], W_z, found["norm.weight"], out,
    )  # fmt: skip
