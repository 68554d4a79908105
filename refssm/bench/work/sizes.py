"""The sizes at which operators are timed.

A size gives every batch axis and every core dimension by its letter, and the other parameters by
name. An operator that is not in a table gets the usual size of each of its letters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from refssm._declaration.contract import TRACED
from refssm._declaration.operator import Operator
from refssm.catalog import OPERATORS
from refssm.conformance.cases.case import simplest
from refssm.conformance.cases.sizes import core_dims, of_matrices
from refssm.conformance.checks.checks import types_of

SIZES = ("small", "paper", "large", "one")
LARGER = 8  # `large` is `paper` with so many times the batch


@dataclass(frozen=True)
class Size:
    """The batch axes, core dimensions and parameters of one call, and its type."""

    batch: Mapping[str, int]
    core: Mapping[str, int]
    parameters: Mapping[str, int | float]
    dtype: str

    def __str__(self):
        return " ".join(f"{k}={v}" for k, v in self.letters.items())

    @property
    def letters(self) -> dict[str, int | float]:
        """All of them by name, in this order."""
        return {**self.batch, **self.core, **self.given}

    @property
    def given(self) -> dict[str, int | float]:
        """The parameters that are not the size of a dimension."""
        return {k: v for k, v in self.parameters.items() if k not in self.core}


@dataclass(frozen=True)
class _Row:
    """One row of the table: letters, type and parameters."""

    letters: Mapping[str, int]
    dtype: str = ""
    parameters: Mapping[str, int | float] = field(default_factory=dict)


_SCAN = _Row({"b": 2, "d": 512, "l": 2048, "n": 16})
_ROOTS = {"d": 64, "n": 64, "l": 16384}
_HEADS = {"b": 1, "g": 1, "h": 24, "l": 4096, "p": 64, "n": 128}
_KEYS = {"b": 1, "g": 1, "h": 8, "l": 4096, "n": 128, "p": 128}
_CHUNKS = {"b": 1, "h": 8, "c": 64, "m": 64, "l": 64, "n": 128, "p": 128}
_LINEAR_ATTENTION = "gated_linear_recurrence", "delta_rule", "gated_delta_rule", "kimi_delta_rule"
_ITS_STEPS = "gated_linear_step", "delta_step", "gated_delta_step", "kimi_delta_step"
_FINCH = {"b": 1, "g": 32, "h": 1, "l": 4096, "n": 64, "p": 64}
_TOKENS = {"b": 64}  # the steps of a decoder
_KERNEL = _Row({"d": 256, "n": 32, "l": 16384}, "complex64")
_PAPER = {
    "vandermonde_kernel_real": _KERNEL,
    "resolvent_at_roots": _Row(_ROOTS, "complex64"),
    "cauchy_kernel": _Row(_ROOTS, "complex64"),
    "dplr_kernel": _Row({**_ROOTS, "r": 1}, "complex64"),
    "linear_scan": _Row({"b": 8, "l": 4096, "n": 256}, "complex64"),
    "selective_scan": _SCAN,
    "mamba_scan": _SCAN,
    "ssd_chunked": _Row(_HEADS, parameters={"chunk": 64}),
    "short_convolution": _Row({"b": 4, "d": 1024, "l": 4096, "t": 4}),
    "causal_convolution": _Row({"b": 1, "d": 256, "l": 16384}),
    "hope_transfer": _Row({"d": 256, "n": 64, "l": 16384}),
}
USUALLY = tuple(_PAPER)  # timed where no operator is named
_PAPER |= {
    "vandermonde_kernel": _KERNEL,
    "dplr_kernel_aliased": _PAPER["dplr_kernel"],
    "ssd_recurrent": _Row(_HEADS),
    "causal_conv1d": _PAPER["short_convolution"],
    "rms_norm_gated": _Row({"n": 128}),
    "gated_rms_norm": _Row({"l": 1024, "n": 2048}, parameters={"group": 256}),
    "l2_norm": _Row({"n": 128}),
    "mamba2_scan": _Row(_HEADS),
    "mamba2_step": _Row(_HEADS | _TOKENS),
    **dict.fromkeys(_LINEAR_ATTENTION, _Row(_KEYS)),
    **dict.fromkeys(_ITS_STEPS, _Row(_KEYS | _TOKENS)),
    "delta_dplr": _Row(_KEYS),
    "delta_dplr_chunked": _Row(_KEYS, parameters={"chunk": 64}),
    "delta_dplr_step": _Row(_KEYS | _TOKENS),
    **dict.fromkeys(
        (f"{name}_chunked" for name in _LINEAR_ATTENTION), _Row(_KEYS, parameters={"chunk": 64})
    ),
    "rwkv6": _Row(_FINCH),
    "rwkv6_chunked": _Row(_FINCH, parameters={"chunk": 64}),
    "rwkv6_step": _Row(_FINCH | _TOKENS),
    **dict.fromkeys((op.name for op in OPERATORS if op.name.startswith("chunk_")), _Row(_CHUNKS)),
}

# every letter of the catalog; `matrix` for dimensions in which the work is cubic
_USUAL = {
    "paper": {"b": 2, "d": 64, "g": 1, "h": 8, "l": 4096, "n": 64, "m": 64, "p": 64, "t": 4}
    | {"r": 1, "k": 24, "matrix": 64},
    "small": {"b": 2, "d": 8, "g": 1, "h": 2, "l": 256, "n": 16, "m": 8, "p": 16, "t": 4}
    | {"r": 1, "k": 8, "matrix": 16},
}
_FEW = {"paper": 1024, "small": 128}  # lengths where the work is quadratic in the length
_CHUNK = {"paper": 64, "small": 16}
_CHUNKS_OF = {"paper": 64, "small": 4}  # the axis c, which is no letter of `_USUAL`: a keyword is c
QUADRATIC = (
    "causal_convolution_direct",
    "chunk_inverse",
    "chunk_outputs",
    "chunk_outputs_keyed",
    "chunk_products",
    "chunk_products_keyed",
    "chunk_states",  # l is the length of a chunk here, as in the others
    "chunk_states_keyed",
    "chunk_writes",
    "chunk_writes_keyed",
    "hankel_matrix",
    "ssd_quadratic",
)


def size_of(op: Operator, which: str, dtype: str = "") -> Size:
    """The size of an operator: one of SIZES; `dtype` replaces the usual type."""
    if which == "large":
        return _larger(size_of(op, "paper", dtype))
    if which == "one":
        return alone(size_of(op, "paper", dtype))
    row = _PAPER.get(op.name, _Row({})) if which == "paper" else _Row({})
    usual = _usual(op, which) | dict(row.letters)
    parameters = simplest(op) | {n: usual[n] for n in op.parameters if n in usual}
    parameters |= {"chunk": _CHUNK[which]} if "chunk" in op.parameters else {}
    parameters |= dict(row.parameters)
    dtype = dtype or _PAPER.get(op.name, row).dtype or types_of(op)[0]
    letters = {"c": _CHUNKS_OF[which]} | usual
    batch = {axis: letters[axis] for axis in op.batch_names}
    core = {dim: usual[dim] for dim in core_dims(op)}
    return Size(batch, core, op.fitted(parameters, core), dtype)


def _usual(op: Operator, which: str) -> dict[str, int]:
    """The usual size of each letter of an operator."""
    usual = dict(_USUAL[which])
    cubic = op.contract is not TRACED and max(len(d) for d in (*op.input_dims, ())) > 1
    for dim in core_dims(op):
        if dim == "n" and (of_matrices(op, dim) or cubic):
            usual[dim] = usual["matrix"]
    if op.name in QUADRATIC:
        usual |= {d: _FEW[which] for d in ("l", "n") if d == op.leading}
    return usual


def _larger(size: Size) -> Size:
    """The same with eight times the outermost batch axis, or the length if there is none."""
    if size.batch:
        first = next(iter(size.batch))
        return replace(size, batch={**size.batch, first: LARGER * size.batch[first]})
    grown = {"l": LARGER * size.core["l"]} if "l" in size.core else {}
    return replace(size, core={**size.core, **grown})


def alone(size: Size) -> Size:
    """The same with one member of each batch axis."""
    return replace(size, batch=dict.fromkeys(size.batch, 1))


def of_length(op: Operator, l: int) -> Size:
    """A size with one member of each batch axis, few states, and this length."""
    size = size_of(op, "small")
    batch = dict.fromkeys(size.batch, 1)
    return replace(size, batch=batch, core={**size.core, "l": l})


def default_operators(which: str, device: str = "") -> list[Operator]:
    """The operators of a run that names none; with a device those that it has."""
    if device:
        there = [op for op in OPERATORS if "gpu" not in op.lacks]
        # scans first, whose bars are shares of bandwidth: a lent machine may be taken away
        there.sort(key=lambda op: "scan" not in op.name)
        return there if which == "small" else [op for op in there if op.name in USUALLY]
    if which == "small":
        return [op for op in OPERATORS if "jit" not in op.lacks]
    return [op for op in OPERATORS if op.name in USUALLY]
