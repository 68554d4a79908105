"""Presets of mLSTM: heads as xLSTM starts and trains them, and regimes that hide a carry.

Public tests draw both gates from a normal distribution; then m moves at every step, and no state
that is lost between chunks shows. These last, or the largest input gate is far back.
"""

import numpy as np

from refssm import initial
from refssm.presets.preset import of_orders, without

CAP = 15.0  # of the gates in xLSTM 7B, before exponential and logistic function
START = -10.0  # the bias of input gates
FORGET = (3.0, 6.0)  # the biases of forget gates over the heads
CLIFF = -1e4  # one step forgets all


def _drawing(input_gates, forget_gates):
    """Arguments of a head, with i and log_f from (rng, steps)."""

    def draw(rng, sizes):
        n, p, over = sizes["n"], sizes["p"], (sizes["l"],) if "l" in sizes else ()
        q, k = (initial.normal(rng, (*over, n)) for _ in range(2))
        length = np.maximum(1, np.sqrt((k**2).sum(-1, keepdims=True) / n))
        drawn = {"q": q, "k": k / length / np.sqrt(n), "v": initial.normal(rng, (*over, p))}
        drawn |= {"i": input_gates(rng, over), "log_f": forget_gates(rng, over)}
        for parts in (("S0", "s0", "m0"), ("S", "s", "m")):
            states = initial.state(rng, (n, p)), initial.state(rng, (n,)), drawn["i"].max(initial=0)
            drawn |= dict(zip(parts, states, strict=True))
        return drawn | {"resets": initial.packed(rng, over)}

    return draw


def _logsigmoid(x):
    return -np.logaddexp(0, -x)


def _capped(x):
    return CAP * np.tanh(x / CAP)


def _at_start(rng, over):
    return START + 0.1 * initial.normal(rng, over)


def _forget_at_start(rng, over):
    return _logsigmoid(rng.uniform(*FORGET) + 0.1 * initial.normal(rng, over))


def _trained(rng, over):
    return _capped(8 * initial.normal(rng, over))


def _forget_trained(rng, over):
    return _logsigmoid(_capped(4 + 6 * initial.normal(rng, over)))


def _constant(number):
    return lambda rng, over: np.full(over, number)


def _first_largest(rng, over):
    """A large gate at the first step and small ones after it: m comes from far back."""
    step = np.arange(over[0]) if over else np.array(1)
    return np.where(step == 0, CAP, -2.0)


def _rising(rng, over):
    """Each step above the one before: m moves at every step."""
    step = np.arange(over[0]) if over else np.array(1)
    return -CAP + 2 * CAP * step / max(step.max(), 1)


def _every_other(rng, over):
    step = np.arange(over[0]) if over else np.array(1)
    return np.where(step % 2 == 0, 0.0, -0.1 * rng.random(over))


def _cliff(rng, over):
    g = np.full(over, -1e-4)
    g[over[0] // 2 if over else ...] = CLIFF
    return g


ROWS = (
    ("start", "input gates e^-10, forget gates 0.95 to 0.998", (_at_start, _forget_at_start)),
    ("trained", "gates to ±15", (_trained, _forget_trained)),
    ("lasting", "nothing forgotten, nothing weighed", (_constant(0.0), _constant(0.0))),
    ("first", "the first step outweighs all", (_first_largest, _constant(-1e-4))),
    ("rising", "each step outweighs those before", (_rising, _every_other)),
    ("cliff", "one step forgets all", (_trained, _cliff)),
)
OF_HEADS = tuple(
    preset
    for name, summary, parts in ROWS
    for preset in of_orders(name, summary, _drawing(*parts), (16, 64)[: 1 + (name == "trained")],
                            along="scan")
)  # fmt: skip


def _without_states(presets):
    for name in ("S0", "s0", "m0"):
        presets = without(name, presets)
    return presets


FORMS = ("", "_stateful", "_packed")
PRESETS = {
    **{f"mlstm{of}": OF_HEADS for of in (*FORMS, "_states", "_step")},
    **{f"mlstm_chunked{of}": OF_HEADS for of in FORMS},
    **{f"mlstm{of}_packed_stateful": _without_states(OF_HEADS) for of in ("", "_chunked")},
}
