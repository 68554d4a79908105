# pyright: reportMissingImports=false, reportCallIssue=false, reportAttributeAccessIssue=false
"""onnx's LinearAttention and CausalConvWithState: its reference evaluator, and their definitions.

The evaluator has a program in NumPy for each. The standard defines each operator also as a function
of simpler ones, among them Scan; `…_defined` is that function, run by the same evaluator. What is
ours in either is in `refssm._declaration.onnx_nodes`.
"""

from functools import cache
from typing import Any

from onnx import FunctionProto, TensorProto, defs, helper
from onnx.reference import ReferenceEvaluator

from refssm._declaration.onnx_nodes import (
    INPUTS,
    OUTPUTS,
    RULES,
    STANDARD,
    attended,
    convolved,
    ungated,
)
from refssm.adapters import scaled
from refssm.testing import implements

F4: dict[str, Any] = {"dtypes": ("float32",)}
LAYOUTS = {(r.update, r.decay): r.layout for r in RULES}
CONVOLVED = "b d l, d t, d, b d t -> b d l, b d t"
LONGEST = 40  # steps of a definition: Scan is a loop over a graph


@cache
def node(operator: str, given: tuple[str, ...], **attributes):
    """The operator as a node with these inputs, the others absent."""
    inputs = [name if name in given else "" for name in INPUTS[operator]]
    return helper.make_node(operator, inputs, OUTPUTS, **attributes)


def evaluated(operator: str, feeds, **attributes):
    """The evaluator's program for the operator."""
    return ReferenceEvaluator(node(operator, tuple(feeds), **attributes)).run(None, feeds)


def defined(operator: str, feeds, **attributes):
    """The function that defines the operator."""
    kinds = [
        helper.make_tensor_type_proto(TensorProto.FLOAT, feeds[name].shape).SerializeToString()
        if name in feeds
        else b""
        for name in INPUTS[operator]
    ]
    schema, whole = defs.get_schema(operator, STANDARD), node(operator, tuple(feeds), **attributes)
    body = FunctionProto()
    body.ParseFromString(
        schema.get_context_dependent_function_with_opset_version(
            STANDARD, whole.SerializeToString(), kinds
        )
    )
    return ReferenceEvaluator(body).run(None, feeds, attributes={})


def short(x):
    """The case cut to its first steps."""
    rows = ("q", "k", "v", "u")
    cut = {name: x[name][..., :LONGEST, :] for name in rows if name in x and name != "u"}
    cut |= {name: x[name][..., :LONGEST] for name in ("beta", "u") if name in x}
    if "log_g" in x:
        of_keys = x["log_g"].ndim == x["q"].ndim
        cut["log_g"] = x["log_g"][..., :LONGEST, :] if of_keys else x["log_g"][..., :LONGEST]
    return {**x, **cut}


@implements(
    "gated_delta_rule",
    layout=LAYOUTS["gated_delta", "head"](False),
    adapters=(scaled(),),
    **F4,
)
def gated_delta(q, k, v, log_g, beta):
    """LinearAttention of rule gated_delta, with its own scale."""
    return attended(evaluated, "gated_delta", q, k, v, log_g, beta, scale=0.0)[0]


@implements(
    "gated_delta_rule_stateful",
    layout=LAYOUTS["gated_delta", "head"](True),
    **F4,
)
def gated_delta_stateful(q, k, v, log_g, beta, S0):
    """LinearAttention of rule gated_delta from a state, two queries for each head."""
    return attended(evaluated, "gated_delta", q, k, v, log_g, beta, S0, readers=2)


@implements(
    "gated_delta_rule_stateful",
    layout=LAYOUTS["gated_delta", "head"](True),
    only=short,
    **F4,
)
def gated_delta_defined(q, k, v, log_g, beta, S0):
    """The function that defines LinearAttention, rule gated_delta, two queries for each head."""
    return attended(defined, "gated_delta", q, k, v, log_g, beta, S0, readers=2)


@implements(
    "kimi_delta_rule_stateful",
    layout=LAYOUTS["gated_delta", "key"](True),
    **F4,
)
def kimi_delta_stateful(q, k, v, log_g, beta, S0):
    """LinearAttention of rule gated_delta with a decay for each key."""
    return attended(evaluated, "gated_delta", q, k, v, log_g, beta, S0)


@implements(
    "kimi_delta_rule_stateful",
    layout=LAYOUTS["gated_delta", "key"](True),
    only=short,
    **F4,
)
def kimi_delta_defined(q, k, v, log_g, beta, S0):
    """The function that defines LinearAttention, rule gated_delta, a decay for each key."""
    return attended(defined, "gated_delta", q, k, v, log_g, beta, S0)


@implements("delta_rule_stateful", layout=LAYOUTS["delta", ""](True), **F4)
def delta_stateful(q, k, v, beta, S0):
    """LinearAttention of rule delta."""
    return attended(evaluated, "delta", q, k, v, None, beta, S0)


@implements(
    "delta_rule_stateful",
    layout=LAYOUTS["delta", ""](True),
    only=short,
    **F4,
)
def delta_defined(q, k, v, beta, S0):
    """The function that defines LinearAttention, rule delta."""
    return attended(defined, "delta", q, k, v, None, beta, S0)


@implements(
    "gated_linear_recurrence_stateful",
    layout=LAYOUTS["gated", "key"](True),
    **F4,
)
def gated_stateful(q, k, v, log_g, S0):
    """LinearAttention of rule gated with a decay for each key."""
    return attended(evaluated, "gated", q, k, v, log_g, None, S0)


@implements(
    "gated_linear_recurrence_stateful",
    layout=LAYOUTS["gated", "key"](True),
    only=short,
    **F4,
)
def gated_defined(q, k, v, log_g, S0):
    """The function that defines LinearAttention, rule gated."""
    return attended(defined, "gated", q, k, v, log_g, None, S0)


@implements(
    "ssd_recurrent_stateful",
    layout=LAYOUTS["gated", "head"](True),
    **F4,
)
def gated_heads_stateful(x, log_a, B, C, S0):
    """LinearAttention of rule gated with a decay for each head: Mamba-2's recurrence."""
    y, S = attended(evaluated, "gated", C, B, x, log_a, None, S0.swapaxes(-1, -2))
    assert S is not None
    return y, S.swapaxes(-1, -2)


@implements(
    "gated_linear_recurrence_stateful",
    layout=LAYOUTS["gated", "key"](True),
    only=ungated,
    **F4,
)
def linear_stateful(q, k, v, log_g, S0):
    """LinearAttention of rule linear, for cases without decays."""
    del log_g
    return attended(evaluated, "linear", q, k, v, None, None, S0)


@implements("causal_conv1d_stateful", layout=CONVOLVED, **F4)
def convolution_stateful(u, k, bias, s0):
    """CausalConvWithState with SiLU."""
    return convolved(evaluated, u, k, bias, s0)


@implements("causal_conv1d_stateful", layout=CONVOLVED, only=short, **F4)
def convolution_defined(u, k, bias, s0):
    """The function that defines CausalConvWithState, with SiLU."""
    return convolved(defined, u, k, bias, s0)


@implements("short_convolution_stateful", layout="b d l, d t, b d t -> b d l, b d t", **F4)
def plain_convolution_stateful(u, k, s0):
    """CausalConvWithState without bias and activation."""
    return convolved(evaluated, u, k, None, s0, "none")
