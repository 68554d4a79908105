"""`refssm verify model.onnx`: the node of a model as implementations of operators.

onnxruntime runs it where it is installed and has the operator, else onnx's reference evaluator.
`model.onnx::onnxruntime` and `model.onnx::evaluator` want one of the two. The heads of a case go
into those of the model, several calls if they are more; an axis of the model that has a fixed
length limits the cases.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from refssm._declaration.implements import declared_as
from refssm._declaration.names import did_you_mean
from refssm._declaration.onnx_nodes import ATTENTION, CONVOLVED, UpdateRule, convolved, ungated
from refssm.adapters import scaled
from refssm.catalog import named
from refssm.conformance.calling.implementation import Found, Offer
from refssm.conformance.calling.onnx_model import CONTRIBUTED, Node, one_line, onnx, read, refuse

EVALUATOR, RUNTIME = "evaluator", "onnxruntime"
TOLD = ("ftz", "deterministic")  # the options that a model has
SILENT = 4  # onnxruntime's level at which it prints nothing but a fatal error


@dataclass(frozen=True)
class OnnxModel(Found):
    """A model of one node as an implementation of one operator."""

    about: str = ""
    ranges: tuple[str, ...] = ()
    left: tuple[str, ...] = field(default=())

    @property
    def offer(self) -> Offer:
        """The description for the judge: what runs the model, and which sizes it has."""
        left = tuple(dict.fromkeys((*super().offer.unjudged, *self.left)))
        return super().offer._replace(about=self.about, sizes=self.ranges, unjudged=left)


def found_in(path: str, runtime: str, name: str | None, told: Mapping | None) -> list[Found]:
    """The operators of ours that the model's node is, or only the one called `name`."""
    node = read(path)
    more = _told(path, dict(told or {}))
    run, about = _runner(node, runtime)
    unjudged = not node.stateful and "present_state" in node.outputs
    told_of = "; present_state is not judged, since there is no past_state" if unjudged else ""
    about = f"{node}{told_of}; run by {about}"
    models = [*(_of_attention if node.operator == ATTENTION else _of_convolution)(node, run)]
    own = {op: (function, declared, left) for op, function, declared, left in models}
    if name and name not in own:
        refuse(path, f"the node is {' or '.join(own)}, not {name}: {node}")
    ranges = _ranges(node)
    return [
        OnnxModel(
            _named(op), function, None, declared=declared_as(op, declared | more),
            about=about, ranges=ranges, left=left,
        )
        for op, (function, declared, left) in own.items()
        if name in (None, "", op)
    ]  # fmt: skip


def _named(operator: str):
    op = named(operator)
    assert op is not None
    return op


def _told(path: str, told: dict) -> dict:
    """The options that a model has; UsageError for another one of the command line."""
    usual = told.pop("usual", {})
    told.pop("silent", None)
    if strange := [name for name in told if name not in TOLD]:
        refuse(path, f"--{strange[0]} is for Python functions: leave it out with a model")
    return {name: usual[name] for name in TOLD if name in usual} | told


def _ranges(node: Node) -> tuple[str, ...]:
    """The sizes that the model fixes, as ranges of `--where`; those of 0 are no range."""
    if node.operator == ATTENTION:
        sizes = {"l": node.sizes.get("T"), "n": node.keys, "p": node.values}
    else:
        sizes = {"l": node.sizes.get("T"), "t": node.sizes.get("t")}
    return tuple(f"{axis}={n}..{n}" for axis, n in sizes.items() if n)


Built = Iterator[tuple[str, Callable, dict, tuple[str, ...]]]


def _of_attention(node: Node, run) -> Built:
    """An operator of each rule, a function of its arguments, its declaration, what is left out."""
    for rule in node.rules:
        scale = node.attributes["scale"]
        declared: dict[str, Any] = {
            "layout": rule.layout(node.stateful),
            "dtypes": (node.dtype,),
            "adapters": () if scale == 1 else (scaled(rule.query, by=scale),),
        }
        if not rule.decay and "log_g" in rule.arguments:
            declared["only"] = ungated
        if node.shares_rates:
            declared["only"] = _shared
        operator = rule.operator + "_stateful" * node.stateful
        yield operator, partial(_attended, node, rule, run), declared, ()


def _shared(x: Mapping) -> Mapping:
    """The case with the rates of the first head for all of a member of the batch."""
    beta = x["beta"]
    return {**x, "beta": np.broadcast_to(beta[..., :1, :1, :], beta.shape).copy()}


def _attended(node: Node, rule: UpdateRule, run, *arrays):
    """The operator, with the heads of the case in those of the model."""
    own = dict(zip((*rule.arguments, "S0"), arrays, strict=False))
    (b, l, g, n), (h, p) = own["q"].shape, own["v"].shape[-2:]
    _decline_other(((l, node.sizes.get("T")), (n, node.keys), (p, node.values)))
    y = np.zeros((b, g * h, l, p), own["v"].dtype)
    last = [np.zeros((b, g * h, *x.shape[3:]), x.dtype) for x in arrays[len(rule.arguments) :]]
    flat = {name: _by_head(name, x, h) for name, x in own.items()}
    rows = -(-g * h // node.heads)  # the last row has some heads again
    head = (np.arange(rows * node.heads) % max(1, g * h)).reshape(rows, node.heads)
    at = np.repeat(np.arange(b), rows)[:, None], np.tile(head, (b, 1))
    if b and rows:
        given = [_in_layout(name, x[at]) for name, x in flat.items()]
        out = rule.called(run, given, readers=node.readers)
        out = out if node.stateful else (out,)
        y[at] = np.moveaxis(np.asarray(out[0])[:, :, :, 0], 1, 2)
        for S, came in zip(last, out[1:], strict=True):
            S[at] = came[:, :, 0]
    y = np.moveaxis(y.reshape(b, g, h, l, p), 3, 1)
    return (y, *(S.reshape(b, g, h, *S.shape[2:]) for S in last)) if last else y


def _decline_other(sizes) -> None:
    for size, fixed in sizes:
        if fixed not in (None, size):
            raise NotImplementedError("a size that the model does not have")


def _by_head(name: str, x: np.ndarray, h: int) -> np.ndarray:
    """An argument with the axes b, all heads, and then time."""
    if name == "S0":
        return x.reshape(x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:])
    x = np.repeat(x[:, :, :, None], h, 3) if name in "qk" else x
    x = x.reshape(*x.shape[:2], x.shape[2] * x.shape[3], *x.shape[4:])
    return np.moveaxis(x, 1, 2)


def _in_layout(name: str, x: np.ndarray) -> np.ndarray:
    """An argument by rows and heads as `UpdateRule.called` takes it: each head is a group."""
    if name == "S0":
        return x[:, :, None]
    x = np.moveaxis(x, 2, 1)
    return x if name in "qk" else x[:, :, :, None]


def _of_convolution(node: Node, run) -> Built:
    """An operator of the activation: with SiLU causal_conv1d, without one short_convolution."""
    silu = node.attributes["activation"] != "none"
    operator = ("causal_conv1d" if silu else "short_convolution") + "_stateful" * node.stateful
    declared = {"layout": CONVOLVED[operator], "dtypes": (node.dtype,)}
    if node.constants or (silu and "bias" not in node.given):
        declared["only"] = partial(_fixed, node)
    left = ("bias",) if not silu and "bias" in node.given else ()
    yield operator, partial(_convolved, node, silu, run), declared, left


def _fixed(node: Node, x: Mapping) -> Mapping | None:
    """The case with the model's own weights, and without a bias where the model has none."""
    k, kept = x["k"], dict(x)
    if "weight" in node.constants:
        weight = node.constants["weight"][:, 0, ::-1]
        if k.shape[-1] != weight.shape[-1]:
            return None
        kept["k"] = weight[np.arange(k.shape[0]) % len(weight)].astype(k.dtype)
    if "bias" in x and "bias" not in node.given:
        kept["bias"] = np.zeros_like(x["bias"])
    elif "bias" in x and "bias" in node.constants:
        bias = node.constants["bias"]
        kept["bias"] = bias[np.arange(len(x["bias"])) % len(bias)].astype(x["bias"].dtype)
    return kept


def _convolved(node: Node, silu: bool, run, u, k, *others):
    """The operator, with the channels of the case in those of the model."""
    (b, d, l), t = u.shape, k.shape[-1]
    _decline_other(((l, node.sizes.get("T")), (t, node.sizes.get("t"))))
    bias = others[0] if silu else np.zeros(d, u.dtype)
    bias = bias if "bias" in node.given else None
    channels = node.sizes.get("D", d)
    y, last = np.zeros_like(u), [np.zeros_like(x) for x in others[silu:]]
    for start in range(0, d, channels) if b else ():
        # channel i of the case is channel i of the model, or i - D, …: that has constant weights
        at = np.where((whole := start + np.arange(channels)) < d, whole, start)
        states = others[-1][:, at] if node.stateful else None
        out = convolved(run, u[:, at], k[at], None if bias is None else bias[at], states)
        out = out if node.stateful else (out,)
        kept = at[whole < d]
        for mine, came in zip((y, *last), out, strict=True):
            mine[:, kept] = np.asarray(came)[:, whole < d]
    return (y, *last) if last else y


def _runner(node: Node, asked: str) -> tuple[Callable, str]:
    """What runs the model, and its name and version."""
    known = (EVALUATOR, RUNTIME)
    if asked and asked not in known:
        hint = did_you_mean(asked, known)
        refuse(
            node.path, f"nothing called {asked!r} runs models; {hint}wanted {' or '.join(known)}"
        )
    version, lack = onnx().__version__, ""
    if asked != EVALUATOR:
        if find_spec(RUNTIME) is None:
            lack = f"{RUNTIME} is not installed: pip install {RUNTIME}"
        elif isinstance(made := _session(node), str):
            lack = made
        else:
            return partial(_run, node, made[0]), made[1]
        if asked == RUNTIME:
            refuse(node.path, lack)
    if node.domain == CONTRIBUTED:
        refuse(node.path, f"only {RUNTIME} runs operators of {CONTRIBUTED}: {lack or 'ask for it'}")
    evaluator = import_module("onnx.reference").ReferenceEvaluator(node.model)
    told = f" ({lack})" if lack and find_spec(RUNTIME) else ""
    return partial(_run, node, evaluator), f"onnx {version}'s reference evaluator{told}"


def _session(node: Node):
    """A session of onnxruntime and its description; a sentence if it cannot run the model."""
    runtime = import_module(RUNTIME)
    named = f"{RUNTIME} {runtime.__version__}"
    if "bfloat16" in (node.dtype, node.state_dtype):
        return f"{named} takes no arrays of bfloat16 from NumPy"
    options = runtime.SessionOptions()
    options.log_severity_level = SILENT
    provider = "CPUExecutionProvider"
    try:
        text = node.model.SerializeToString()
        session = runtime.InferenceSession(text, options, providers=[provider])
    except Exception as error:
        return f"{named} cannot run it: {one_line(error)}"
    return session, f"{named}, {provider}"


def _run(node: Node, session, operator: str, feeds: Mapping, **attributes) -> list:
    """The node's outputs, None for what the model does not return; its attributes are its own."""
    del operator, attributes
    feeds = {name: x for name, x in feeds.items() if name in node.names}
    if node.shares_rates:
        feeds["beta"] = feeds["beta"][..., :1]
    rows = next(len(x) for name, x in feeds.items() if name not in ("weight", "bias"))
    size = node.sizes.get("B", rows)
    asked = [node.outputs[name] for name in node.outputs]
    parts = []
    for start in range(0, rows, max(1, size)):
        at = np.minimum(start + np.arange(size), rows - 1)  # the last one again
        given = {node.names[n]: _typed(node, n, x, at) for n, x in feeds.items()}
        parts.append([y[: rows - start] for y in session.run(asked, given)])
    whole = dict(zip(node.outputs, map(np.concatenate, zip(*parts, strict=True)), strict=True))
    return [whole.get("output"), whole.get("present_state")]


def _typed(node: Node, name: str, x: np.ndarray, at) -> np.ndarray:
    """An input in the model's type, of some rows if it has an axis for the batch."""
    x = x if name in ("weight", "bias") else x[at]
    kind = node.state_dtype if name == "past_state" else node.dtype
    if kind == "bfloat16":
        return np.ascontiguousarray(x, np.dtype(import_module("ml_dtypes").bfloat16))
    return np.ascontiguousarray(x, kind)
