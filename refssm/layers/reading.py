"""Language models of Mamba or Mamba-2, read from a local safetensors file with transformers' names.

    x = E[tokens],   x ← x + layer(rms_norm(x)) in every block,   logits = rms_norm(x) H

E is the embedding and H the head; a file without a head ties it to the embedding: H = Eᵀ. Nothing
in such a file is executed. Its linear maps are stored as (outputs, inputs), here they are (inputs,
outputs); its convolution weights begin with the oldest input, ours with the newest. The layer is
the one whose names the first block has. A `config.json` beside the file is asked for what tensors
do not show.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize

from refssm.layers import reading_deltanet
from refssm.layers._frame import Layer, Ops, Parameters, State
from refssm.layers.attention.mamba2 import MAMBA2_LAYER, Mamba2
from refssm.layers.mamba import MAMBA_LAYER, Mamba
from refssm.norms import rms_norm

BLOCK = re.compile(r"(?:backbone\.)?layers\.(\d+)\.(.+)")
OUTSIDE = {  # names of published files, with and without the prefix of the inner model
    "embeddings.weight": "embedding",
    "embedding.weight": "embedding",
    "norm_f.weight": "scale",
    "lm_head.weight": "head",
}
KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}  # bytes in a file, by its name
MAYBE = ("mixer.conv1d.bias",)  # absent if the model was made without it: then zeros


# what a model is made with, if its config says nothing else; other values are refused
USUAL = {"layer_norm_epsilon": 1e-5, "hidden_act": "silu", "n_groups": 1, "use_bias": False}


@dataclass(frozen=True)
class LanguageModel:
    """Embedding (v, h), blocks of a scale and a layer's parameters, last scale, and head (h, v)."""

    layer: Layer
    embedding: np.ndarray
    blocks: tuple[tuple[np.ndarray, Parameters], ...]
    scale: np.ndarray
    head: np.ndarray

    def forward(self, ops: Ops, tokens: np.ndarray) -> np.ndarray:
        """The logits (…, l, v) of tokens (…, l)."""
        x = self.embedding[tokens]
        for scale, p in self.blocks:
            x = x + self.layer.forward(ops, p, rms_norm(x, scale))
        return rms_norm(x, self.scale) @ self.head

    def rest(self, batch=()) -> tuple[State, ...]:
        """The states of the blocks before the first token."""
        return tuple(self.layer.rest(p, batch) for _, p in self.blocks)

    def stateful(self, ops: Ops, tokens: np.ndarray, states: tuple[State, ...]):
        """The logits of a piece from these states, and the next states."""
        x, after = self.embedding[tokens], []
        for (scale, p), state in zip(self.blocks, states, strict=True):
            y, state = self.layer.stateful(ops, p, rms_norm(x, scale), state)
            x = x + y
            after.append(state)
        return rms_norm(x, self.scale) @ self.head, tuple(after)


def from_safetensors(path: str | Path) -> Any:  # which of two models, the file says
    """The language model in a local file with the names of `transformers`; nothing is executed.

    Embedding, blocks of RMSNorm, `refssm.layers.mamba` or `refssm.layers.attention.mamba2` and a
    residual, a last RMSNorm and a head: a `LanguageModel`. Of Qwen3-Next without softmax attention
    and experts it is a `refssm.layers.reading_deltanet.DeltaNetModel`. ValueError says in one
    sentence what the file lacks or has besides.
    """
    arrays = _arrays(path)
    if any(name.startswith(reading_deltanet.PREFIX) for name in arrays):
        config = _config(Path(path).with_name("config.json"))
        return reading_deltanet.model_of(path, arrays, config)
    outside, inside = _sorted(path, arrays)
    for name in ("embedding", "scale"):
        if name not in outside:
            raise ValueError(f"{path}: not a Mamba model: no tensor for the {name}")
    if sorted(inside) != [*range(len(inside))] or not inside:
        raise ValueError(f"{path}: blocks must be numbered from 0, got {sorted(inside)}")
    kind = SECOND if "mixer.norm.weight" in inside[0] else FIRST
    _check_config(Path(path).with_name("config.json"))
    blocks = tuple(_block(path, kind, i, inside[i]) for i in range(len(inside)))
    embedding = outside["embedding"]
    head = np.ascontiguousarray(outside.get("head", embedding).T)
    return LanguageModel(kind.layer, embedding, blocks, outside["scale"], head)


def _check_config(path: Path) -> None:
    """ValueError if a config says that the model is made in another way."""
    config = _config(path)
    for name, usual in USUAL.items():
        if config.get(name, usual) != usual:
            raise ValueError(f"{path}: `{name}` is {config[name]!r}, wanted {usual!r}")


def _config(path: Path) -> dict[str, Any]:
    """What a config says; nothing if there is none."""
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def _arrays(path: str | Path) -> dict[str, np.ndarray]:
    try:
        stored = dict(deserialize(Path(path).read_bytes()))
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from None
    return {name: _array(path, name, tensor) for name, tensor in stored.items()}


def _array(path, name: str, stored: Mapping[str, Any]) -> np.ndarray:
    """A tensor; half precision and bfloat16 as single precision, which has all their numbers:
    operators need that."""
    kind = stored["dtype"]
    if kind not in KINDS:
        wanted = f"wanted one of {', '.join(KINDS)}, got {kind}"
        raise ValueError(f"{path}: `{name}` has a type that is not read: {wanted}")
    array = np.frombuffer(stored["data"], KINDS[kind]).reshape(stored["shape"])
    if kind == "BF16":  # the upper half of a number of single precision
        return (array.astype(np.uint32) << 16).view(np.float32)
    return (
        array.astype(np.float32) if kind == "F16" else array.astype(array.dtype.newbyteorder("="))
    )


def _sorted(path, arrays: Mapping[str, np.ndarray]):
    """The tensors outside blocks by their role, and those inside by block and name."""
    outside: dict[str, np.ndarray] = {}
    inside: dict[int, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        block = BLOCK.fullmatch(name)
        role = OUTSIDE.get(name.removeprefix("backbone."))
        if block and block[2] in NAMES:
            inside.setdefault(int(block[1]), {})[block[2]] = array
        elif role and not block:
            outside[role] = array
        else:
            raise ValueError(f"{path}: `{name}` has no place in blocks of Mamba or Mamba-2")
    return outside, inside


Tensors = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Kind:
    """A layer, the names its tensors must have, their shapes, and its parameters from them."""

    layer: Layer
    names: tuple[str, ...]
    shapes: Callable[[Tensors], dict[str, tuple[int, ...]]]
    parameters: Callable[[Tensors], Parameters]


def _block(path, kind: Kind, i: int, found: Tensors) -> tuple[np.ndarray, Parameters]:
    """The scale and the parameters of block i."""
    for name in kind.names:
        if name not in found:
            raise ValueError(f"{path}: block {i} has no `{name}`")
    wanted = kind.shapes(found)
    for name, array in found.items():
        if name not in wanted:
            raise ValueError(f"{path}: block {i}: `{name}` has no place in {kind.layer}")
        if array.shape != wanted[name]:
            sizes = f"wanted {wanted[name]}, got {array.shape}"
            raise ValueError(f"{path}: block {i}: `{name}` does not fit the others: {sizes}")
    return found["norm.weight"], kind.parameters(found)


FIRST_NAMES = (
    "norm.weight", "mixer.in_proj.weight", "mixer.conv1d.weight", "mixer.x_proj.weight",
    "mixer.dt_proj.weight", "mixer.dt_proj.bias", "mixer.A_log", "mixer.D", "mixer.out_proj.weight",
)  # fmt: skip
SECOND_NAMES = (
    "norm.weight", "mixer.in_proj.weight", "mixer.conv1d.weight", "mixer.dt_bias", "mixer.A_log",
    "mixer.D", "mixer.norm.weight", "mixer.out_proj.weight",
)  # fmt: skip
# the bias is absent if the model was made without it: then zeros
NAMES = {*FIRST_NAMES, *SECOND_NAMES, "mixer.conv1d.bias"}


def _filter(found: Tensors) -> tuple[np.ndarray, np.ndarray]:
    """Taps (e, t), the newest input first, and biases (e)."""
    taps = np.ascontiguousarray(found["mixer.conv1d.weight"][:, 0, ::-1])
    return taps, found.get("mixer.conv1d.bias", np.zeros(len(taps), taps.dtype))


def _parted(W: np.ndarray, *ends: int) -> list[np.ndarray]:
    """Pieces of the last axis."""
    return [np.ascontiguousarray(piece) for piece in np.split(W, ends, axis=-1)]


def _first(found: Tensors) -> Mamba:
    t = {name.removeprefix("mixer."): np.ascontiguousarray(a.T) for name, a in found.items()}
    r, n = len(t["dt_proj.weight"]), len(t["A_log"])
    W_low, W_B, W_C = _parted(t["x_proj.weight"], r, r + n)
    k, k_bias = _filter(found)
    return Mamba(
        t["in_proj.weight"], k, k_bias, W_low, W_B, W_C, t["dt_proj.weight"], t["dt_proj.bias"],
        found["mixer.A_log"], t["D"], t["out_proj.weight"],
    )  # fmt: skip


def _first_shapes(found: Tensors) -> dict[str, tuple[int, ...]]:
    e, n = (*found["mixer.A_log"].shape, 0, 0)[:2]
    h, t = len(found["norm.weight"]), found["mixer.conv1d.weight"].shape[-1]
    r = found["mixer.dt_proj.weight"].shape[-1]
    return {
        "norm.weight": (h,), "mixer.in_proj.weight": (2 * e, h), "mixer.conv1d.weight": (e, 1, t),
        "mixer.conv1d.bias": (e,), "mixer.x_proj.weight": (r + 2 * n, e),
        "mixer.dt_proj.weight": (e, r), "mixer.dt_proj.bias": (e,), "mixer.A_log": (e, n),
        "mixer.D": (e,), "mixer.out_proj.weight": (h, e),
    }  # fmt: skip


def _second_sizes(found: Tensors) -> tuple[int, int, int, int]:
    """h, e = g p, g and n; heads share B and C, so that the filter has e + 2n channels."""
    h, e = len(found["norm.weight"]), len(found["mixer.norm.weight"])
    return h, e, len(found["mixer.A_log"]), (len(found["mixer.conv1d.weight"]) - e) // 2


def _second(found: Tensors) -> Mamba2:
    h, e, g, n = _second_sizes(found)
    p = e // max(1, g)
    W = np.ascontiguousarray(found["mixer.in_proj.weight"].T)
    W_z, W_x, W_B, W_C, W_dt = _parted(W, e, 2 * e, 2 * e + n, 2 * e + 2 * n)
    taps, bias = _filter(found)
    (k_x, k_B, k_C), (bias_x, bias_B, bias_C) = (_parted(a.T, e, e + n) for a in (taps, bias))
    W_z, W_x = (np.ascontiguousarray(W.reshape(h, g, p).swapaxes(0, 1)) for W in (W_z, W_x))
    out = np.ascontiguousarray(found["mixer.out_proj.weight"].T).reshape(g, p, h)
    return Mamba2(
        W_z, W_x, W_B, W_C, W_dt, k_x.T.reshape(g, p, -1), k_B.T.copy(), k_C.T.copy(),
        bias_x.reshape(g, p), bias_B, bias_C, found["mixer.dt_bias"], found["mixer.A_log"],
        found["mixer.D"], found["mixer.norm.weight"].reshape(g, p), out,
    )  # fmt: skip


def _second_shapes(found: Tensors) -> dict[str, tuple[int, ...]]:
    h, e, g, n = _second_sizes(found)
    c, t = e + 2 * n, found["mixer.conv1d.weight"].shape[-1]
    e -= e % max(1, g)  # heads of one size
    return {
        "norm.weight": (h,), "mixer.in_proj.weight": (e + c + g, h),
        "mixer.conv1d.weight": (c, 1, t), "mixer.conv1d.bias": (c,), "mixer.dt_bias": (g,),
        "mixer.A_log": (g,), "mixer.D": (g,), "mixer.norm.weight": (e,),
        "mixer.out_proj.weight": (h, e),
    }  # fmt: skip


FIRST = Kind(MAMBA_LAYER, FIRST_NAMES, _first_shapes, _first)
SECOND = Kind(MAMBA2_LAYER, SECOND_NAMES, _second_shapes, _second)
