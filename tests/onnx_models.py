"""ONNX models of one node, for tests; an axis is a number or a name."""

from collections.abc import Sequence

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", minversion="1.23", reason="models need onnx: '.[onnx]'")
helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT


def saved(path, nodes, inputs, outputs=("output", "present_state"), constants=(), kinds=()):
    """The path of a model with these inputs by name and shape."""
    kinds, standard = dict(kinds), helper.make_opsetid("", 27)
    typed = [
        helper.make_tensor_value_info(name, kinds.get(name, FLOAT), shape)
        for name, shape in inputs.items()
    ]
    axes = {"output": "abc", "present_state": "abcd" if "query" in inputs else "abc"}
    told = [helper.make_tensor_value_info(y, kinds.get(y, FLOAT), [*axes[y]]) for y in outputs]
    stored = [onnx.numpy_helper.from_array(x, name) for name, x in constants]
    graph = helper.make_graph([*nodes], "g", typed, told, initializer=stored)
    domains = {node.domain for node in nodes} - {""}
    sets = [standard, *(helper.make_opsetid(domain, 1) for domain in domains)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=10), path)
    return path


def attention(
    path,
    rule="gated_delta",
    decay="head",
    heads=(2, 2),
    state=True,
    axes=("B", "T", "n", "p"),
    change=None,
    inputs=None,
    **more,
):
    """A model of LinearAttention; `change` may add attributes or replace them."""
    (b, l, n, p), (q, kv) = axes, heads

    def beside(axis, count):
        return axis * count if isinstance(axis, int) else f"{count}{axis}"

    shapes = {"query": [b, l, beside(n, q)], "key": [b, l, beside(n, kv)]}
    shapes |= {"value": [b, l, beside(p, kv)], "past_state": [b, kv, n, p] if state else None}
    width = {"head": kv, "key": beside(n, kv), "free": "d"}[decay]
    shapes |= {"decay": [b, l, width] if "gated" in rule else None}
    shapes |= {"beta": [b, l, kv] if "delta" in rule else None}
    shapes |= inputs or {}
    given = [name if shape else "" for name, shape in shapes.items()]
    attributes = {"update_rule": rule, "scale": 1.0, "q_num_heads": q, "kv_num_heads": kv}
    attributes |= change or {}
    node = helper.make_node("LinearAttention", given, ["output", "present_state"], **attributes)
    return saved(path, [node], {k: v for k, v in shapes.items() if v}, **more)


def convolution(
    path,
    activation="silu",
    bias=True,
    state=True,
    weights=None,
    axes: Sequence[int | str] = "BDTt",
    **more,
):
    """A model of CausalConvWithState; `weights` are constants of it."""
    b, d, l, t = axes
    before = t - 1 if isinstance(t, int) else "s"
    shapes = {"input": [b, d, l], "weight": [d, 1, t], "bias": [d] if bias else None}
    shapes |= {"past_state": [b, d, before] if state else None}
    given = [name if shape else "" for name, shape in shapes.items()]
    node = helper.make_node(
        "CausalConvWithState", given, ["output", "present_state"], activation=activation
    )
    stored = {} if weights is None else {"weight": np.asarray(weights, np.float32)[:, None, ::-1]}
    inputs = {k: v for k, v in shapes.items() if v and k not in stored}
    return saved(path, [node], inputs, constants=stored.items(), **more)
