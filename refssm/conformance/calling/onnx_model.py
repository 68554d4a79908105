"""An ONNX model of one node, LinearAttention or CausalConvWithState: what its file says.

A file that cannot be judged is one sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from refssm._declaration.names import did_you_mean
from refssm._declaration.onnx_nodes import (
    ATTENTION,
    CONVOLUTION,
    HEAD,
    INPUTS,
    KEY,
    OUTPUTS,
    RULES,
    STANDARD,
    UpdateRule,
)
from refssm.conformance.usage_error import UsageError

ENDING = ".onnx"
CONTRIBUTED = "com.microsoft"  # where onnxruntime had both operators before the standard
DOMAINS = ("", "ai.onnx", CONTRIBUTED)
TYPES = {1: "float32", 10: "float16", 16: "bfloat16"}  # by ONNX's numbers
WIDE = "float32"  # the type that the states of a model in 16 bits may have
ATTRIBUTES = {
    ATTENTION: ("q_num_heads", "kv_num_heads", "update_rule", "scale", "chunk_size"),
    CONVOLUTION: ("activation",),
}
ACTIVATIONS = ("none", "silu", "swish")
REQUIRED = {ATTENTION: ("query", "key", "value"), CONVOLUTION: ("input", "weight")}
CONSTANT = ("weight", "bias")  # the inputs that may be constants of the model
AXES = {
    ATTENTION: {"query": "B T q", "key": "B T k", "value": "B T v", "past_state": "B H n p",
                "decay": "B T d", "beta": "B T r"},
    CONVOLUTION: {"input": "B D T", "weight": "D 1 t", "bias": "D", "past_state": "B D s"},
}  # fmt: skip
LONGEST = 300  # characters of onnx's own text in a sentence


def onnx() -> Any:
    """The module; UsageError without it."""
    try:
        return import_module("onnx")
    except ImportError:
        raise UsageError(
            "this needs the package onnx, 1.23 or later: pip install 'refssm[onnx]'"
        ) from None


def one_line(error: BaseException | str) -> str:
    """An error's text in one line, cut."""
    text = " ".join(f"{error}".split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


@dataclass(frozen=True)
class Node:
    """The node of a model: what it computes, and what the model fixes."""

    path: str
    model: Any
    operator: str
    domain: str
    attributes: Mapping[str, Any]
    names: Mapping[str, str]  # of the graph's inputs, by the operator's
    outputs: Mapping[str, str]
    dtype: str
    state_dtype: str
    sizes: Mapping[str, int]  # by the letters of AXES, where they are no free axis
    constants: Mapping[str, np.ndarray]

    @property
    def stateful(self) -> bool:
        """Whether it starts from a state."""
        return "past_state" in self.names

    @property
    def given(self) -> set[str]:
        """The operator's inputs that the node has."""
        return {*self.names, *self.constants}

    @property
    def heads(self) -> int:
        """How many keys and values there are."""
        return self.attributes["kv_num_heads"]

    @property
    def readers(self) -> int:
        """How many queries there are for each key."""
        return self.attributes["q_num_heads"] // self.heads

    @property
    def shares_rates(self) -> bool:
        """Whether all heads have one rate β: its last axis has length 1."""
        return "beta" in self.given and self.heads > 1 and self.sizes.get("r") == 1

    @property
    def keys(self) -> int | None:
        """The number of keys of a head; None if it is free."""
        whole = {"q": self.heads * self.readers, "k": self.heads, "n": 1}
        return self._per_head(whole)

    @property
    def values(self) -> int | None:
        """The number of values of a head; None if it is free."""
        return self._per_head({"v": self.heads, "p": 1})

    def _per_head(self, parts: Mapping[str, int]) -> int | None:
        found = {self.sizes[axis] // n for axis, n in parts.items() if axis in self.sizes}
        uneven = [a for a, n in parts.items() if a in self.sizes and self.sizes[a] % n]
        if uneven or len(found) > 1:
            told = ", ".join(f"{self.sizes[a]} of {n}" for a, n in parts.items() if a in self.sizes)
            refuse(self.path, f"its last axes and numbers of heads do not fit each other: {told}")
        return next(iter(found), None)

    @property
    def rules(self) -> list[UpdateRule]:
        """The operators of ours that LinearAttention is: two if the last axis of decay is free."""
        update = self.attributes["update_rule"]
        width = self.sizes.get("d")
        if "decay" not in self.given:
            kinds = [""]
        elif width is None:
            kinds = [HEAD, KEY]
        elif width == self.heads:
            kinds = [HEAD]
        elif width % self.heads == 0 and self.keys in (None, width // self.heads):
            kinds = [KEY]
        else:
            wanted = f"{self.heads}, or {self.heads} times the keys of a head"
            refuse(self.path, f"the last axis of decay has length {width}, wanted {wanted}")
        return [rule for rule in RULES if rule.update == update and rule.decay in kinds]

    def __str__(self):
        told = [
            f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.attributes.items()
        ]
        absent = [name for name in INPUTS[self.operator] if name not in self.given]
        without = f", without {', '.join(absent)}" if absent else ""
        where = f" of {self.domain}" if self.domain == CONTRIBUTED else ""
        return f"{self.operator}{where}, {', '.join(told)}{without}"


def refuse(path: str, told: str) -> NoReturn:
    """UsageError about the file."""
    raise UsageError(f"{path}: {told}")


def read(path: str) -> Node:
    """The node of a file; UsageError with one sentence if it has none that can be judged."""
    model = _loaded(path)
    graph = model.graph
    if len(graph.node) != 1:
        kinds = ", ".join(dict.fromkeys(node.op_type for node in graph.node)) or "none"
        came = f"{len(graph.node)} nodes" if graph.node else "no node"
        refuse(path, f"wanted a model of one node, {ATTENTION} or {CONVOLUTION}, got {came}"
                     + (f": {kinds}" if graph.node else ""))  # fmt: skip
    (node,) = graph.node
    if node.op_type not in INPUTS or node.domain not in DOMAINS:
        whole = f"{node.domain}.{node.op_type}".strip(".")
        hint = did_you_mean(node.op_type, INPUTS) if node.domain in DOMAINS else ""
        refuse(path, f"the node is {whole}; {hint}wanted {ATTENTION} or {CONVOLUTION}")
    attributes = _attributes(path, node)
    _refuse_unfit(path, model, node)
    names, constants = _inputs(path, graph, node)
    _check_rule(path, node.op_type, attributes, {*names, *constants})
    outputs = {
        name: given for name, given in zip(OUTPUTS, node.output, strict=False)
        if given and given in {y.name for y in graph.output}
    }  # fmt: skip
    _check_outputs(path, names, outputs)
    kinds = _types(path, graph, names, constants)
    sizes = _sizes(path, graph, node.op_type, names, constants)
    domain = node.domain if node.domain == CONTRIBUTED else ""
    whole = (path, model, node.op_type, domain, attributes, names, outputs)
    return Node(*whole, kinds[0], kinds[1], sizes, constants)


def _loaded(path: str) -> Any:
    onnx_ = onnx()
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        refuse(path, f"{error.strerror or 'cannot be read'}".lower())
    try:
        model = onnx_.load_model_from_string(text)
        if not model.ir_version or not model.HasField("graph"):
            raise ValueError("it has no graph")
        onnx_.load_external_data_for_model(model, str(Path(path).parent))
    except Exception as error:  # protobuf's own classes among others
        refuse(path, f"not an ONNX model: {one_line(error)}")
    return model


def _attributes(path: str, node) -> dict[str, Any]:
    """The node's attributes with the defaults of those that it lacks."""
    known = ATTRIBUTES[node.op_type]
    given: dict[str, Any] = {a.name: onnx().helper.get_attribute_value(a) for a in node.attribute}
    for name in given:
        if name not in known and not (name == "ndim" and node.domain == CONTRIBUTED):
            hint = did_you_mean(name, known)
            wanted = f"wanted one of {', '.join(known)}"
            refuse(path, f"{node.op_type} has no attribute {name!r}; {hint}{wanted}")
    told = given.items()
    given = {k: v.decode(errors="replace") if isinstance(v, bytes) else v for k, v in told}
    if node.op_type == CONVOLUTION:
        word = given.get("activation", "none")
        if word not in ACTIVATIONS:
            refuse(path, f"activation: wanted one of {', '.join(ACTIVATIONS)}, got {word!r}")
        if given.get("ndim", 1) != 1:
            refuse(path, f"ndim: wanted 1, got {given['ndim']!r}")
        return {"activation": word}
    for name in ("q_num_heads", "kv_num_heads"):
        if not isinstance(given.get(name), int) or given[name] < 1:
            refuse(path, f"{name}: wanted a number of 1 or more, got {given.get(name, 'none')!r}")
    if given["q_num_heads"] % given["kv_num_heads"]:
        many = f"{given['q_num_heads']} for kv_num_heads {given['kv_num_heads']}"
        refuse(path, f"q_num_heads: wanted a multiple of kv_num_heads, got {many}")
    rule, updates = given.get("update_rule", "gated_delta"), dict.fromkeys(r.update for r in RULES)
    if rule not in updates:
        hint = did_you_mean(f"{rule}", updates)
        refuse(path, f"update_rule: {hint}wanted one of {', '.join(updates)}, got {rule!r}")
    scale = given.get("scale", 0.0)
    if not isinstance(scale, float) or not np.isfinite(scale):
        refuse(path, f"scale: wanted a finite number, got {scale!r}")
    heads = {name: given[name] for name in ("q_num_heads", "kv_num_heads")}
    return {"update_rule": rule, "scale": scale, **heads}


def _refuse_unfit(path: str, model, node) -> None:
    """UsageError for what onnx's own checker refuses."""
    onnx_ = onnx()
    if onnx_.defs.onnx_opset_version() < STANDARD and node.domain != CONTRIBUTED:
        came = f"onnx {onnx_.__version__} has version {onnx_.defs.onnx_opset_version()}"
        refuse(path, f"{node.op_type} is of version {STANDARD} of the standard, {came}: "
                     "pip install 'refssm[onnx]'")  # fmt: skip
    try:
        onnx_.checker.check_model(model)
    except Exception as error:
        refuse(path, f"onnx's checker refuses it: {one_line(error)}")


def _inputs(path: str, graph, node) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Names of the graph's inputs, and constants, by the operator's own names."""
    wanted, known = INPUTS[node.op_type], {x.name for x in graph.input}
    stored = {x.name: x for x in graph.initializer}
    names, constants = {}, {}
    for name, given in zip(wanted, node.input, strict=False):
        if not given:
            continue
        if given in stored:  # also one that a caller may replace
            if name not in CONSTANT:
                refuse(path, f"its {name} is a constant: make it an input of the model")
            constants[name] = np.asarray(onnx().numpy_helper.to_array(stored[given]))
        elif given in known:
            if given in names.values():
                refuse(path, f"{given!r} is the node's input twice: wanted an input for each")
            names[name] = given
        else:
            refuse(path, f"the node's input {given!r} is no input of the model")
    if strange := sorted(known - {*names.values(), *stored}):
        refuse(path, f"the node has no use for the model's input {strange[0]!r}")
    for name in REQUIRED[node.op_type]:
        if name not in {*names, *constants}:
            refuse(path, f"{node.op_type} lacks its input {name}")
    return names, constants


def _check_rule(path: str, operator: str, attributes: Mapping, given: set[str]) -> None:
    """UsageError if the inputs are not those of the update rule."""
    if operator == CONVOLUTION:
        return
    rule = attributes["update_rule"]
    wanted = {"decay": "gated" in rule, "beta": "delta" in rule}
    for name, owes in wanted.items():
        if owes != (name in given):
            has = f"wants the input {name}" if owes else f"has no {name}"
            came = "there is none" if owes else "the node has one"
            refuse(path, f"update_rule {rule!r} {has}: {came}")


def _check_outputs(path: str, names, outputs) -> None:
    """UsageError if an output that is to be judged is none of the model."""
    owed = OUTPUTS if "past_state" in names else OUTPUTS[:1]
    for name in owed:
        if name not in outputs:
            refuse(path, f"the node's {name} is no output of the model")


def _types(path: str, graph, names: Mapping, constants: Mapping) -> tuple[str, str]:
    """The type of the arguments, and that of the states."""
    number = {x.name: x.type.tensor_type.elem_type for x in graph.input}
    found = {name: number[given] for name, given in names.items()}
    data = onnx().TensorProto.DataType
    for name, kind in found.items():
        if kind not in TYPES:
            came = data.Name(kind).lower() if kind in data.values() else f"type {kind}"
            refuse(path, f"{name} has type {came}, wanted float, float16 or bfloat16")
    own = {name: TYPES[kind] for name, kind in found.items() if name != "past_state"}
    own |= {name: a.dtype.name for name, a in constants.items()}
    if len({*own.values()}) > 1:
        told = ", ".join(f"{name} {kind}" for name, kind in own.items())
        refuse(path, f"wanted one type for all inputs, got {told}")
    (dtype,) = {*own.values()}
    state = TYPES[found["past_state"]] if "past_state" in found else dtype
    if state not in (dtype, WIDE):
        refuse(path, f"past_state has type {state}, wanted {dtype} or {WIDE}")
    return dtype, state


def _sizes(path: str, graph, operator: str, names, constants) -> dict[str, int]:
    """The lengths of axes that the model fixes, by their letters in AXES."""
    shapes: dict[str, list[int | None]] = {n: [*a.shape] for n, a in constants.items()}
    tensors = {x.name: x.type.tensor_type for x in graph.input}
    for name, given in names.items():
        if tensors[given].HasField("shape"):
            dims = tensors[given].shape.dim
            shapes[name] = [d.dim_value if d.HasField("dim_value") else None for d in dims]
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        axes = AXES[operator][name].split()
        if len(axes) != len(shape):
            refuse(path, f"{name} has {len(shape)} axes, wanted {len(axes)}")
        for axis, n in zip(axes, shape, strict=True):
            if n is None:
                continue
            if (axis == "1" and n != 1) or sizes.setdefault(axis, n) != n:
                wanted = 1 if axis == "1" else sizes[axis]
                refuse(path, f"an axis of {name} has length {n}, wanted {wanted}")
    if "s" in sizes and sizes.setdefault("t", sizes["s"] + 1) != sizes["s"] + 1:
        wanted = sizes["t"] - 1
        refuse(path, f"past_state has {sizes['s']} inputs, wanted {wanted}: one less than taps")
    return sizes
