"""Golden vectors as ONNX's backend tests: a folder with a model and its data for each case.

    OPERATOR/test_OPERATOR_1/model.onnx, data.json, test_data_set_0/input_0.pb, output_0.pb

`data.json` has the tolerances of the whole outputs that onnx's loader reads. `allowed_0.pb` beside
an output has the largest error of each entry, as files of vectors have it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from refssm._declaration.layout import arranged, canonical, in_layout, parse, sizes_of
from refssm._declaration.onnx_nodes import (
    ATTENTION,
    CONVOLUTION,
    CONVOLVED,
    INPUTS,
    OUTPUTS,
    RULES,
    STANDARD,
    UpdateRule,
    convolution_feeds,
    feeds_of,
    packed,
)
from refssm._declaration.operator import Operator
from refssm.catalog import OPERATORS
from refssm.conformance.calling.onnx_model import onnx
from refssm.conformance.number_types import number_type
from refssm.conformance.standard import C
from refssm.conformance.usage_error import UsageError
from refssm.conformance.vectors.document import Vector, Vectors

TYPES = ("float32",)  # ONNX's operators have no wider one
STATEFUL = "_stateful"
IR_VERSION = 10  # what most programs read
SHARE = 2 * C  # roundings of an entry in the tolerance that is relative
BY_NAME = {rule.operator: rule for rule in reversed(RULES)}  # without the rule that is a part


def with_node() -> list[Operator]:
    """The operators that are LinearAttention or CausalConvWithState."""
    return [op for op in OPERATORS if _rule(op) or op.name in CONVOLVED]


def refuse_without_node(ops: Iterable[Operator]) -> None:
    """UsageError without onnx, or if an operator is none of ONNX's."""
    onnx()
    for op in ops:
        if op not in with_node():
            names = ", ".join(known.name for known in with_node())
            raise UsageError(f"{op} is no operator of ONNX; wanted one of {names}")


def _rule(op: Operator) -> UpdateRule | None:
    return BY_NAME.get(op.name.removesuffix(STATEFUL))


def write(folder: Path, vectors: Vectors) -> None:
    """Write a folder for each case, in place of those that are there."""
    try:
        for number, case in enumerate(vectors.cases, 1):
            _write_case(folder / f"test_{vectors.op}_{number}", vectors.op, case)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from None


def _write_case(folder: Path, op: Operator, case: Vector) -> None:
    data = folder / "test_data_set_0"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    feeds, attributes = _asked(op, case)
    u = number_type(case.dtype).u
    right = _answered(op, [y.values[case.dtype].astype(case.dtype) for y in case.outputs])
    exact = [y.values["float64"] for y in case.outputs]
    bounds = [np.maximum(y.k0, y.k1) for y in case.outputs]
    bounds = [C * u * k + u * np.abs(y) for k, y in zip(bounds, exact, strict=True)]
    allowed = _answered(op, bounds)
    (folder / "model.onnx").write_bytes(_model(op, feeds, attributes, right))
    for i, (name, x) in enumerate(feeds.items()):
        (data / f"input_{i}.pb").write_bytes(_tensor(name, x))
    for i, (name, y) in enumerate(right.items()):
        (data / f"output_{i}.pb").write_bytes(_tensor(name, y))
        (data / f"allowed_{i}.pb").write_bytes(_tensor(name, allowed[name]))
    rest = [
        np.max(allowed[name] - SHARE * u * np.abs(y.astype(float)), initial=0.0)
        for name, y in right.items()
    ]
    told = {"rtol": SHARE * u, "atol": float(max(rest))}
    (folder / "data.json").write_text(json.dumps(told) + "\n", encoding="utf-8", newline="\n")


def _layout(op: Operator) -> str:
    rule = _rule(op)
    return rule.layout(op.name.endswith(STATEFUL)) if rule else CONVOLVED[op.name]


def _full(arrays, axes, sizes) -> list[np.ndarray]:
    """Arrays with all their batch axes, each as long as the case has it."""
    whole = []
    for x, own in zip(arrays, axes, strict=True):
        x = x.reshape((1,) * (len(own) - x.ndim) + x.shape)
        shape = [sizes.get(axis, n) for axis, n in zip(own, x.shape, strict=True)]
        whole.append(np.broadcast_to(x, shape))
    return whole


def _asked(op: Operator, case: Vector) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The node's inputs in the order of ONNX, and its attributes."""
    usual, wanted = canonical(op), parse(in_layout(op, _layout(op)), _layout(op))
    sizes = dict.fromkeys(op.batch_names, 1)
    sizes |= sizes_of(op, usual.inputs, case.arrays, case.statics)
    arrays = _full(case.arrays, usual.inputs, sizes)
    placed = zip(arrays, usual.inputs, wanted.inputs, strict=True)
    arrays = [arranged(x, own, axes) for x, own, axes in placed]
    rule = _rule(op)
    if rule:
        named: dict[str, Any] = rule.named(arrays)
        feeds, heads, _ = feeds_of(**named)
        attributes = {"update_rule": rule.update, "scale": 1.0, **heads}
    else:
        named = dict(zip(op.inputs, arrays, strict=True))
        feeds, attributes = convolution_feeds(**named), {"activation": _activation(op)}
    order = INPUTS[_operator(op)]
    return {name: feeds[name] for name in order if name in feeds}, attributes


def _answered(op: Operator, outputs) -> dict[str, np.ndarray]:
    """Outputs of ours as those of the node."""
    usual, wanted = canonical(op), parse(in_layout(op, _layout(op)), _layout(op))
    placed = zip(outputs, usual.outputs, wanted.outputs, strict=True)
    y, *states = [
        arranged(x.reshape((1,) * (len(own) - x.ndim) + x.shape), own, axes)
        for x, own, axes in placed
    ]
    rule = _rule(op)
    if rule:
        states = [rule.state(S) for S in states]
        states = [S.reshape(len(S), S.shape[1] * S.shape[2], *S.shape[3:]) for S in states]
        return dict(zip(OUTPUTS, [packed(y), *states], strict=False))
    return dict(zip(OUTPUTS, [y, *(s[..., 1:] for s in states)], strict=False))


def _operator(op: Operator) -> str:
    return ATTENTION if _rule(op) else CONVOLUTION


def _activation(op: Operator) -> str:
    return "silu" if op.name.startswith("causal_conv1d") else "none"


def _model(op: Operator, feeds, attributes, outputs) -> bytes:
    """A model of one node with the shapes of a case."""
    helper = onnx().helper

    def typed(arrays):
        pairs = ((name, x.dtype, x.shape) for name, x in arrays.items())
        return [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(kind), shape)
            for name, kind, shape in pairs
        ]

    inputs = [name if name in feeds else "" for name in INPUTS[_operator(op)]]
    while not inputs[-1]:
        inputs.pop()
    node = helper.make_node(_operator(op), inputs, OUTPUTS, **attributes)
    graph = helper.make_graph([node], op.name, typed(feeds), typed(outputs))
    versions = [helper.make_opsetid("", STANDARD)]
    model = helper.make_model(
        graph, opset_imports=versions, ir_version=IR_VERSION, producer_name="refssm"
    )
    return model.SerializeToString(deterministic=True)


def _tensor(name: str, x: np.ndarray) -> bytes:
    made = onnx().numpy_helper.from_array(np.ascontiguousarray(x), name)
    return made.SerializeToString(deterministic=True)
