"""ONNX's LinearAttention and CausalConvWithState beside the operators of ours that they are.

LinearAttention has all heads beside each other in the last axis, and several queries (readers) for
each key and value. CausalConvWithState has its taps in the other order, and its states have t − 1
inputs: the first of ours is not used.

Functions here take a `run` of (operator, feeds, attributes) that returns the node's outputs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

ATTENTION, CONVOLUTION = "LinearAttention", "CausalConvWithState"
STANDARD = 27  # the first version of the standard that has both
INPUTS = {
    ATTENTION: ("query", "key", "value", "past_state", "decay", "beta"),
    CONVOLUTION: ("input", "weight", "bias", "past_state"),
}
OUTPUTS = ("output", "present_state")
HEAD, KEY = "head", "key"  # what has a decay of its own: each head, or each key of a head

OUTPUT = "b l g h p"
AXES = {"q": "b l g n", "k": "b l g n", "v": OUTPUT, "beta": "b l g h"}
DECAYS = {HEAD: "b l g h", KEY: "b l g h n"}
STATE, TRANSPOSED = "b g h n p", "b g h p n"

Run = Callable[..., list]


@dataclass(frozen=True)
class UpdateRule:
    """An update rule with one kind of decay, and the operator of ours that it is.

    `arguments` are ours in their order, by their names here: those of the delta rules.
    """

    update: str
    decay: str  # HEAD, KEY or ""
    operator: str
    arguments: tuple[str, ...]
    transposed: bool = False  # states of ours are p × n

    @property
    def query(self) -> str:
        """The operator's own name of the queries."""
        return "C" if self.transposed else "q"

    def layout(self, states: bool) -> str:
        """The axes of arguments and outputs in which `attended` takes and returns them."""
        state = TRANSPOSED if self.transposed else STATE
        own = AXES | {"log_g": DECAYS[self.decay or KEY]}
        given = [own[name] for name in self.arguments] + [state] * states
        return f"{', '.join(given)} -> {', '.join([OUTPUT] + [state] * states)}"

    def named(self, arrays) -> dict[str, np.ndarray]:
        """Arguments in this layout by the names of `attended`."""
        own = dict(zip((*self.arguments, "S0"), arrays, strict=False))
        if not self.decay:
            own.pop("log_g", None)  # of cases without decays: see `ungated`
        if "S0" in own:
            own["S0"] = self.state(own["S0"])
        return own

    def state(self, S: np.ndarray) -> np.ndarray:
        """A state of ours as one of the node, and the other way round."""
        return S.swapaxes(-1, -2) if self.transposed else S

    def called(self, run: Run, arrays, **how):
        """The operator by a node of this rule: outputs, and the last state if one is given."""
        own = self.named(arrays)
        y, S = attended(run, self.update, **own, **how)
        return y if S is None or "S0" not in own else (y, self.state(S))


def _rule(update: str, decay: str, operator: str, arguments: str, **more) -> UpdateRule:
    return UpdateRule(update, decay, operator, tuple(arguments.split()), **more)


RULES = (
    _rule("gated_delta", HEAD, "gated_delta_rule", "q k v log_g beta"),
    _rule("gated_delta", KEY, "kimi_delta_rule", "q k v log_g beta"),
    _rule("delta", "", "delta_rule", "q k v beta"),
    _rule("gated", KEY, "gated_linear_recurrence", "q k v log_g"),
    _rule("gated", HEAD, "ssd_recurrent", "v log_g k q", transposed=True),
    _rule("linear", "", "gated_linear_recurrence", "q k v log_g"),
)
CONVOLVED = {
    "causal_conv1d": "b d l, d t, d -> b d l",
    "causal_conv1d_stateful": "b d l, d t, d, b d t -> b d l, b d t",
    "short_convolution": "b d l, d t -> b d l",
    "short_convolution_stateful": "b d l, d t, b d t -> b d l, b d t",
}


def ungated(x: Mapping) -> Mapping:
    """The case without decays."""
    return {**x, "log_g": np.zeros_like(x["log_g"])}


def packed(x):
    """Heads beside each other: three axes."""
    return x.reshape(*x.shape[:2], prod(x.shape[2:]))


def attended(run: Run, update, q, k, v, log_g=None, beta=None, S0=None, *, readers=1, scale=1.0):
    """Outputs and the last state: keys for each head of the values, `readers` queries for each.

    One reader of a head has its query, another one at the next step and head, and its output is the
    head's; the others have it with the other sign.
    """
    (b, l, g, n), (h, p) = q.shape, v.shape[-2:]
    feeds, attributes, at = feeds_of(q, k, v, log_g, beta, S0, readers=readers)
    y, S = run(ATTENTION, feeds, update_rule=update, scale=scale, **attributes)
    y = y.reshape(b, l, g * h, readers, p)
    y = np.take_along_axis(y, at[None, :, :, None, None], 3)
    return y.reshape(b, l, g, h, p), S if S is None else S.reshape(b, g, h, n, p)


def feeds_of(q, k, v, log_g=None, beta=None, S0=None, *, readers: int = 1):
    """Inputs of LinearAttention, its numbers of heads, and each head's reader by step and head."""
    (b, l, g, n), (h, p) = q.shape, v.shape[-2:]
    at = np.add.outer(np.arange(l), np.arange(g * h)) % readers
    q, k = (np.repeat(x[:, :, :, None], h, 3) for x in (q, k))
    mine = (at[..., None] == np.arange(readers)).reshape(l, g, h, readers, 1)
    q = np.where(mine, q[..., None, :], -q[..., None, :])
    feeds = {"query": packed(q), "key": packed(k), "value": packed(v)}
    if S0 is not None:
        feeds["past_state"] = S0.reshape(b, g * h, n, p)
    if log_g is not None:
        feeds["decay"] = packed(log_g)
    if beta is not None:
        feeds["beta"] = packed(beta)
    return feeds, {"q_num_heads": g * h * readers, "kv_num_heads": g * h}, at


def convolved(run: Run, u, k, bias=None, s0=None, activation="silu"):
    """Outputs, and the last inputs if those before are given."""
    feeds = convolution_feeds(u, k, bias, s0)
    y, s = run(CONVOLUTION, feeds, activation=activation)
    if s0 is None:
        return y
    first = np.concatenate([s0, u], -1)[..., u.shape[-1], None]
    return y, np.concatenate([first, s], -1)


def convolution_feeds(u, k, bias=None, s0=None) -> dict[str, np.ndarray]:
    """Inputs of CausalConvWithState."""
    feeds = {"input": u, "weight": k[:, None, ::-1]}
    if bias is not None:
        feeds["bias"] = bias
    if s0 is not None:
        feeds["past_state"] = s0[..., 1:]
    return feeds
