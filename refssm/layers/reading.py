"""Language models of Mamba blocks, read from a local safetensors file with transformers' names.

    x = E[tokens],   x ← x + mamba(rms_norm(x)) in every block,   logits = rms_norm(x) H

E is the embedding and H the head; a file without a head ties it to the embedding: H = Eᵀ. Nothing
in such a file is executed. Its linear maps are stored as (outputs, inputs), here they are (inputs,
outputs); its convolution weights begin with the oldest input, ours with the newest.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize

from refssm.layers import mamba
from refssm.layers._frame import Ops, State
from refssm.layers.mamba import Mamba
from refssm.norms import rms_norm

BLOCK = re.compile(r"(?:backbone\.)?layers\.(\d+)\.(.+)")
OUTSIDE = {  # names of published files, with and without the prefix of the inner model
    "embeddings.weight": "embedding",
    "embedding.weight": "embedding",
    "norm_f.weight": "scale",
    "lm_head.weight": "head",
}
INSIDE = (
    "norm.weight", "mixer.in_proj.weight", "mixer.conv1d.weight", "mixer.x_proj.weight",
    "mixer.dt_proj.weight", "mixer.dt_proj.bias", "mixer.A_log", "mixer.D", "mixer.out_proj.weight",
)  # fmt: skip
KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}  # bytes in a file, by its name
MAYBE = ("mixer.conv1d.bias",)  # absent if the model was made without it: then zeros


@dataclass(frozen=True)
class MambaModel:
    """Embedding (v, h), blocks of a scale and a layer, the last scale, and the head (h, v)."""

    embedding: np.ndarray
    blocks: tuple[tuple[np.ndarray, Mamba], ...]
    scale: np.ndarray
    head: np.ndarray

    def forward(self, ops: Ops, tokens: np.ndarray) -> np.ndarray:
        """The logits (…, l, v) of tokens (…, l)."""
        x = self.embedding[tokens]
        for scale, p in self.blocks:
            x = x + mamba.forward(ops, p, rms_norm(x, scale))
        return rms_norm(x, self.scale) @ self.head

    def rest(self, batch=()) -> tuple[State, ...]:
        """The states of the blocks before the first token."""
        return tuple(mamba.MAMBA_LAYER.rest(p, batch) for _, p in self.blocks)

    def stateful(self, ops: Ops, tokens: np.ndarray, states: tuple[State, ...]):
        """The logits of a piece from these states, and the next states."""
        x, after = self.embedding[tokens], []
        for (scale, p), state in zip(self.blocks, states, strict=True):
            y, state = mamba.stateful(ops, p, rms_norm(x, scale), state)
            x = x + y
            after.append(state)
        return rms_norm(x, self.scale) @ self.head, tuple(after)


def from_safetensors(path: str | Path) -> MambaModel:
    """The language model in a local file with the names of `transformers`; nothing is executed.

    Embedding, blocks of RMSNorm, `refssm.layers.mamba` and a residual, a last RMSNorm and a head.
    ValueError says in one sentence what the file lacks or has besides.
    """
    outside, inside = _sorted(path, _arrays(path))
    for name in ("embedding", "scale"):
        if name not in outside:
            raise ValueError(f"{path}: not a Mamba model: no tensor for the {name}")
    if sorted(inside) != [*range(len(inside))] or not inside:
        raise ValueError(f"{path}: blocks must be numbered from 0, got {sorted(inside)}")
    blocks = tuple(_block(path, i, inside[i]) for i in range(len(inside)))
    embedding = outside["embedding"]
    head = np.ascontiguousarray(outside.get("head", embedding).T)
    return MambaModel(embedding, blocks, outside["scale"], head)


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
        if block and block[2] in (*INSIDE, *MAYBE):
            inside.setdefault(int(block[1]), {})[block[2]] = array
        elif role and not block:
            outside[role] = array
        else:
            raise ValueError(f"{path}: `{name}` has no place in the blocks of refssm.layers.mamba")
    return outside, inside


def _block(path, i: int, found: Mapping[str, np.ndarray]) -> tuple[np.ndarray, Mamba]:
    """The scale and the layer of block i."""
    for name in INSIDE:
        if name not in found:
            raise ValueError(f"{path}: block {i} has no `{name}`")
    _check_shapes(path, i, found)
    t = {name.removeprefix("mixer."): np.ascontiguousarray(a.T) for name, a in found.items()}
    r, n = len(t["dt_proj.weight"]), len(t["A_log"])
    W_low, W_B, W_C = np.split(t["x_proj.weight"], [r, r + n], axis=-1)
    taps = found["mixer.conv1d.weight"][:, 0, ::-1]
    bias = t.get("conv1d.bias", np.zeros(len(taps), taps.dtype))
    return found["norm.weight"], Mamba(
        W_in=t["in_proj.weight"],
        k=np.ascontiguousarray(taps),
        k_bias=bias,
        W_low=np.ascontiguousarray(W_low),
        W_B=np.ascontiguousarray(W_B),
        W_C=np.ascontiguousarray(W_C),
        W_dt=t["dt_proj.weight"],
        dt_bias=t["dt_proj.bias"],
        log_rate=found["mixer.A_log"],
        D=t["D"],
        W_out=t["out_proj.weight"],
    )


def _check_shapes(path, i: int, found: Mapping[str, np.ndarray]) -> None:
    """ValueError if the shapes of a block do not fit each other; names the first that differs."""
    e, n = (*found["mixer.A_log"].shape, 0, 0)[:2]
    h, t = len(found["norm.weight"]), found["mixer.conv1d.weight"].shape[-1]
    r = found["mixer.dt_proj.weight"].shape[-1]
    wanted = {
        "norm.weight": (h,), "mixer.in_proj.weight": (2 * e, h), "mixer.conv1d.weight": (e, 1, t),
        "mixer.conv1d.bias": (e,), "mixer.x_proj.weight": (r + 2 * n, e),
        "mixer.dt_proj.weight": (e, r), "mixer.dt_proj.bias": (e,), "mixer.A_log": (e, n),
        "mixer.D": (e,), "mixer.out_proj.weight": (h, e),
    }  # fmt: skip
    for name, array in found.items():
        if array.shape != wanted[name]:
            sizes = f"wanted {wanted[name]}, got {array.shape}"
            raise ValueError(f"{path}: block {i}: `{name}` does not fit the others: {sizes}")
