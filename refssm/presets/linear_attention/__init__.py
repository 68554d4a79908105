"""Presets of linear attention: heads as models start and train them, and regimes that hide a carry.

Public tests draw gates that forget within a few steps, and then no state that is lost between
chunks shows. These last, or change within a sequence.
"""

import numpy as np

from refssm import initial
from refssm.domains import unit_keys
from refssm.presets.linear_attention.stages import presets_of_stages, without_keys
from refssm.presets.preset import of_orders, without

CLIFF = -1e4  # one step forgets all


def _silu(x):
    return x / (1 + np.exp(-x))


def _drawing(keys, gates, betas):
    """Arguments of a head of keys, log_g of each key, and rates, each from (rng, steps, n)."""

    def draw(rng, sizes):
        n, p, over = sizes["n"], sizes["p"], (sizes["l"],) if "l" in sizes else ()
        q = initial.normal(rng, (*over, n)) / np.sqrt(n)
        drawn = {"q": q, "k": unit_keys(keys(rng, over, n)), "v": initial.normal(rng, (*over, p))}
        drawn |= {"log_g": gates(rng, over, n), "beta": betas(rng, over)}
        drawn |= {name: initial.state(rng, (n, p)) for name in ("S0", "S")}
        return drawn | {"resets": initial.packed(rng, over)}

    return draw


def _keys(rng, over, n):
    """After a SiLU, of norm 1."""
    k = _silu(initial.normal(rng, (*over, n)))
    return k / np.sqrt((k**2).sum(-1, keepdims=True))


def _one_key(rng, over, n):
    """The same key at all steps, ±½ or ±¼ or …, of norm 1."""
    count = 4 ** int(np.log2(n) / 2)
    key = np.where(np.arange(n) < count, rng.choice([-1.0, 1.0], n), 0) / np.sqrt(count)
    return np.broadcast_to(rng.permutation(key), (*over, n)).copy()


def _orthogonal_keys(rng, over, n):
    """One entry each, all of them in turn."""
    turn = np.arange(over[0]) % n if over else rng.integers(n)
    return np.eye(n)[rng.permutation(n)][turn]


def _no_gates(rng, over, n):
    return np.zeros((*over, n))


def _lasting(rng, over, n):
    return np.full((*over, n), -1e-4)


def _every_other(rng, over, n):
    """0 at every other step."""
    step = np.arange(over[0])[:, None] if over else np.array(1)
    return np.where(step % 2 == 0, 0.0, -0.1 * rng.random((*over, n)))


def _cliff(rng, over, n):
    """A slow decay, and one step in the middle that forgets all."""
    g = np.full((*over, n), -1e-4)
    g[over[0] // 2 if over else slice(None)] = CLIFF
    return g


def _trained(rng, over, n):
    """A sum over 256 steps of −1e-3 to −6e4, the same for all keys, times 1/2 to 3/2 for each."""
    log_a, _ = initial.trained_heads(rng, over)
    return log_a[..., None] * (0.5 + rng.random(n))


def _sigmoid(rng, over):
    return 1 / (1 + np.exp(-initial.normal(rng, over)))


def _constant(beta):
    return lambda rng, over: np.full(over, beta)


def _one_gate(draw):
    """The same with one gate for a head."""

    def drawing(rng, sizes):
        drawn = draw(rng, sizes)
        return drawn | {"log_g": drawn["log_g"][..., 0]}

    return drawing


def _receptance(draw):
    """The same with RWKV's names and a bonus for the current step, 0 to 1 as at the start."""

    def drawing(rng, sizes):
        drawn = draw(rng, sizes)
        drawn |= {"r": drawn["q"], "log_w": drawn["log_g"], "u": rng.random(sizes["n"])}
        return {name: x for name, x in drawn.items() if name not in ("q", "log_g", "beta")}

    return drawing


def _finch(rng, over, n):
    """−e^w of RWKV-6 at its start: w from −6 to −1 along the keys, and a little for each step."""
    w = -6 + 5 * (np.arange(n) / max(n - 1, 1)) ** 0.9
    return -np.exp(w + 0.1 * initial.normal(rng, (*over, n)))


ROWS = (
    ("trained", "gates far beyond those of the start", (_keys, _trained, _sigmoid), (16, 64)),
    ("start", "nothing forgotten", (_keys, _lasting, _sigmoid), (16,)),
    ("recall", "orthogonal keys, rate 1", (_orthogonal_keys, _no_gates, _constant(1.0)), (16,)),
    ("reflect", "one key, rate 2", (_one_key, _no_gates, _constant(2.0)), (16,)),
    ("overwrite", "one key, rate 1", (_one_key, _every_other, _constant(1.0)), (16,)),
    ("cliff", "one step forgets all", (_keys, _cliff, _sigmoid), (16,)),
)  # fmt: skip


def _low_rank(keys, gates, rates):
    """A head of RWKV-7: a = −κ̂, b = κ̂ ∘ η, k = κ ∘ (1 − (1 − η) α) with the rates of each key."""

    def draw(rng, sizes):
        n, p, over = sizes["n"], sizes["p"], (sizes["l"],) if "l" in sizes else ()
        q, key, rate = initial.normal(rng, (*over, n)), keys(rng, over, n), rates(rng, (*over, n))
        removed = unit_keys(key)
        drawn = {"q": q / np.sqrt(n), "k": key * (1 - (1 - rate) * REPLACED)}
        drawn |= {"v": initial.normal(rng, (*over, p)), "log_g": gates(rng, over, n)}
        drawn |= {"a": -removed, "b": removed * rate}
        drawn |= {name: initial.state(rng, (n, p)) for name in ("S0", "S")}
        return drawn | {"resets": initial.packed(rng, over)}

    return draw


REPLACED = 1.02  # α at the start of training: how much of a key its rate replaces
STRONGEST = np.exp(-0.5)  # of a step's decay: log_g = −e^{−1/2} σ(…)


def _of_rwkv7(rng, over, n):
    """From −6 to 0 over the keys before the logistic function, as at the start of training."""
    start = 0.5 - 6 + 6 * (np.arange(n) / max(n - 1, 1)) ** 1.5
    return -STRONGEST / (1 + np.exp(-start - 0.1 * initial.normal(rng, (*over, n))))


def _presets(change, rows=ROWS):
    return tuple(
        preset
        for name, summary, parts, orders in rows
        for preset in of_orders(name, summary, change(parts), orders, along="scan")
    )


OF_RWKV7 = (
    ("rwkv7", "a head at the start of training", (_keys, _of_rwkv7, _sigmoid), (16, 64)),
    ("trained", "gates far beyond those of the start", (_keys, _trained, _sigmoid), (16,)),
    ("lasting", "nothing forgotten", (_keys, _lasting, _sigmoid), (16,)),
    ("recall", "orthogonal keys, rate 1", (_orthogonal_keys, _no_gates, _constant(1.0)), (16,)),
    ("overwrite", "one key, rate 1", (_one_key, _every_other, _constant(1.0)), (16,)),
    ("cliff", "one step forgets all", (_keys, _cliff, _sigmoid), (16,)),
)  # fmt: skip
LOW_RANK = _presets(lambda parts: _low_rank(*parts), OF_RWKV7)
KEYED = _presets(lambda parts: _drawing(*parts))
OF_HEADS = _presets(lambda parts: _one_gate(_drawing(*parts)))
FINCH = ("finch", "decays and bonus of RWKV-6's start", (_keys, _finch, _sigmoid), (64,))
RWKV = _presets(lambda parts: _receptance(_drawing(*parts)), (FINCH, *ROWS))
FORMS = ("", "_stateful", "_packed", "_states")
OF = {
    ("gated_linear_recurrence", "gated_linear_step"): KEYED,
    ("kimi_delta_rule", "kimi_delta_step"): KEYED,
    ("gated_delta_rule", "gated_delta_step"): OF_HEADS,
    ("delta_rule", "delta_step"): OF_HEADS,
    ("rwkv6", "rwkv6_step"): RWKV,
}
CHUNKED = ("_chunked", "_chunked_stateful", "_chunked_packed")


def _rates(rng, shape):
    """Logarithms of rates between 1 and 16."""
    return np.log(rng.uniform(initial.HEAD_MIN, initial.HEAD_MAX, shape))


def _gates_of_heads(rng, sizes):
    n = sizes["n"]
    drawn = {"a": initial.normal(rng, (n,)), "b": initial.normal(rng, (n,))}
    return drawn | {"A_log": _rates(rng, (n,)), "dt_bias": initial.step_biases(rng, (n,))}


def _gates_of_keys(rng, sizes):
    n = sizes["n"]
    drawn = {"a": initial.normal(rng, (n,)), "A_log": _rates(rng, ())}
    return drawn | {"dt_bias": initial.step_biases(rng, (n,))}


GATES_OF_HEADS = of_orders("gated-deltanet", "heads of Gated DeltaNet", _gates_of_heads, (32,))
GATES_OF_KEYS = of_orders("kimi", "a head of Kimi Linear", _gates_of_keys, (128,))
PRESETS = {
    **{
        name: presets
        for (scan, step), presets in OF.items()
        for name in (*(f"{scan}{form}" for form in (*FORMS, *CHUNKED)), step)
    },
    **{
        f"{scan}{kind}_packed_stateful": without("S0", presets)
        for (scan, _), presets in OF.items()
        for kind in ("", "_chunked")
    },
    **dict.fromkeys((f"delta_dplr{form}" for form in (*FORMS, *CHUNKED, "_step")), LOW_RANK),
    "delta_dplr_packed_stateful": without("S0", LOW_RANK),
    "delta_dplr_chunked_packed_stateful": without("S0", LOW_RANK),
    **dict.fromkeys(
        ("chunk_products", "chunk_writes", "chunk_states", "chunk_outputs"),
        presets_of_stages(ROWS),
    ),
    **dict.fromkeys(
        (
            "chunk_products_keyed",
            "chunk_writes_keyed",
            "chunk_states_keyed",
            "chunk_outputs_keyed",
        ),
        presets_of_stages(ROWS, keyed=True),
    ),
    **dict.fromkeys(("chunk_gates", "chunk_inverse"), without_keys(ROWS)),
    "gated_delta_gates": GATES_OF_HEADS,
    "kimi_gates": GATES_OF_KEYS,
    "kimi_gates_bounded": GATES_OF_KEYS,
}
