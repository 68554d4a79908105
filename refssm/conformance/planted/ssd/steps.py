"""Planted bugs in the single step of state-space duality, and in its gradients."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting_old import Planting
from refssm.conformance.planted.ssd.groups import FIRST, TILED, tiled
from refssm.ssd import SSD_STEP

planting = Planting(SSD_STEP, "float32")
DEVIATIONS, right = planting.bugs, planting.right
LOG_2 = np.log(2)


def _changed(name, what, change, caught_by="", dtype=""):
    """The right step on changed arguments."""
    planting.forward(name, what, caught_by, dtype)(lambda *args: right(*change(*args)))


def _ending(name, what, end, caught_by="", dtype=""):
    """A right step with other results: end(y, S_next, x, log_a, B, C, S)."""
    planting.forward(name, what, caught_by, dtype)(lambda *args: end(*right(*args), *args))


def _read(S, C):
    return (S @ C[..., None])[..., 0]


def _a(log_a):
    return np.exp(log_a)[..., None, None]


def _lost(fails, x, C):
    """C without its last number where the sizes p, n are such."""
    n = C.shape[-1]
    return np.where(fails(x.shape[-1], n) & (np.arange(n) == n - 1), 0, C)


for _row in [
    ("sign", "A's minus sign forgotten", lambda x, s, B, C, S: (x, -s, B, C, S)),
    ("base_two", "2^{log_a}", lambda x, s, B, C, S: (x, s * s.dtype.type(LOG_2), B, C, S)),
    ("exponential_twice", "e^{a}", lambda x, s, B, C, S: (x, np.exp(s), B, C, S)),
    ("decay_after", "e^{log_a} (S + x Bᵀ)",
     lambda x, s, B, C, S: (x * np.exp(s)[..., None], s, B, C, S)),
    ("undecayed", "S + x Bᵀ", lambda x, s, B, C, S: (x, 0 * s, B, C, S)),
    ("exchanged", "B and C exchanged", lambda x, s, B, C, S: (x, s, C, B, S)),
    ("state_in_bfloat16", "S rounded to bfloat16",
     lambda x, s, B, C, S: (x, s, B, C, bfloat16(S))),
    ("state_in_float16", "S rounded to float16", lambda x, s, B, C, S: (x, s, B, C, float16(S))),
    ("state_ignored_in_batch_of_one", "S taken as zero where the batch is 1",
     lambda x, s, B, C, S: (x, s, B, C, S * (S.ndim < 3 or S.shape[0] != 1))),
    ("log_a_in_bfloat16", "log_a rounded to bfloat16",
     lambda x, s, B, C, S: (x, bfloat16(s), B, C, S)),
    ("padding_skipped", "a step with log_a = 0 taken for padding",
     lambda x, s, B, C, S: (np.where((s == 0)[..., None], 0, x), s, B, C, S)),
    ("decay_clipped", "log_a clipped to −10",
     lambda x, s, B, C, S: (x, np.maximum(s, -10), B, C, S)),
    ("wide_heads", "a state lost where p > n",
     lambda x, s, B, C, S: (x, s, B, _lost(lambda p, n: p > n, x, C), S)),
    ("sixteen_states", "a state lost where n = 16",
     lambda x, s, B, C, S: (x, s, B, _lost(lambda p, n: n == 16, x, C), S), "", "complex64"),
    ("offset", "1e-12 added to every input",
     lambda x, s, B, C, S: (x + x.dtype.type(1e-12), s, B, C, S), "zero"),
    ("groups_tiled", f"{TILED}: prefill repeats, the step tiles",
     lambda x, s, B, C, S: (x, s, *_tiled(x, B, C), S)),
    ("groups_tiled_by_law", TILED, lambda x, s, B, C, S: (x, s, *_tiled(x, B, C), S), "group"),
    ("first_group", FIRST, lambda x, s, B, C, S: (x, s, *_of_first_group(x, B, C), S)),
    ("first_group_by_law", FIRST, lambda x, s, B, C, S: (x, s, *_of_first_group(x, B, C), S),
     "group"),
    ("decay_conjugated", "a* for a", lambda x, s, B, C, S: (x, s.conj(), B, C, S), "",
     "complex64"),
    ("output_conjugated", "C* for C", lambda x, s, B, C, S: (x, s, B, C.conj(), S), "",
     "complex64"),
    ("input_conjugated", "B* for B", lambda x, s, B, C, S: (x, s, B.conj(), C, S), "",
     "complex64"),
]:  # fmt: skip
    _changed(*_row)

for _row in [
    ("reads_state_before", "y = S C: the state before the step",
     lambda y, S_next, x, s, B, C, S: (_read(S + 0 * S_next, C), S_next)),
    ("state_not_advanced", "the state before the step returned",
     lambda y, S_next, x, s, B, C, S: (y, S + 0 * S_next)),
    ("next_without_input", "the next state without x Bᵀ",
     lambda y, S_next, x, s, B, C, S: (y, _a(s) * S + 0 * S_next)),
    ("next_decayed_again", "the next state decayed once more",
     lambda y, S_next, x, s, B, C, S: (y, _a(s) * S_next)),
    ("next_in_bfloat16", "the next state kept in bfloat16",
     lambda y, S_next, x, s, B, C, S: (y, bfloat16(S_next))),
    ("output_in_float16", "y rounded to float16",
     lambda y, S_next, x, s, B, C, S: (float16(y), S_next)),
    ("nan_spread", "NaN of one number of the head in all", lambda y, S_next, x, s, B, C, S:
     (y + 0 * x.sum(-1, keepdims=True), S_next), "nan"),
]:  # fmt: skip
    _ending(*_row)


def _tiled(x, B, C):
    """B and C with the heads' groups tiled; a step has no axis of time to count from."""
    return (tiled(c[..., None, :], x[..., None, :])[..., 0, :] for c in (B, C))


def _of_first_group(x, B, C):
    return (c[:, np.zeros(c.shape[1], int)] if c.ndim == 4 else c for c in (B, C))


@planting.forward("in_place", "the state overwritten by the next", "unchanged")
def _in_place(x, log_a, B, C, S):
    y, S_next = right(x, log_a, B, C, S)
    if S.shape == S_next.shape and S.dtype == S_next.dtype:
        S[...] = S_next
    return y, S_next


# gradients
planting.changed_gradient("dlog_a_missing", "dlog_a = 0", log_a=lambda g, _: 0 * g)
planting.changed_gradient("dB_sign", "dB with the other sign", B=lambda g, _: -g)
planting.changed_gradient("dS_missing", "dS = 0", S=lambda g, _: 0 * g)
planting.changed_gradient("dx_in_float16", "dx rounded to float16", x=lambda g, _: float16(g))
for _name, _place in {"dx": 0, "dlog_a": 1, "dB": 2, "dC": 3, "dS": 4}.items():
    planting.gradient(f"{_name}_conjugated", f"({_name})*", "complex64")(
        lambda *args, k=_place: tuple(
            g.conj() if i == k else g for i, g in enumerate(planting.right_vjp(*args))
        )
    )


@planting.gradient("next_dropped", "the next state has no gradient")
def _next_dropped(dy, dS_next, *args):
    return planting.right_vjp(dy, 0 * dS_next, *args)


@planting.gradient("output_dropped", "y gives the state before no gradient")
def _output_dropped(dy, dS_next, x, log_a, B, C, S):
    without = planting.right_vjp(0 * dy, dS_next, x, log_a, B, C, S)
    return *planting.right_vjp(dy, dS_next, x, log_a, B, C, S)[:4], without[4]


@planting.gradient("dS_undecayed", "dS = G")
def _dS_undecayed(dy, dS_next, x, log_a, B, C, S):
    right_ones = planting.right_vjp(dy, dS_next, x, log_a, B, C, S)
    undecayed = planting.right_vjp(dy, dS_next, x, 0 * log_a, B, C, S)
    return *right_ones[:4], undecayed[4]


@planting.gradient("dC_of_state_before", "dC with the state before the step")
def _dC_of_state_before(dy, dS_next, x, log_a, B, C, S):
    dx, dlog_a, dB, _, dS = planting.right_vjp(dy, dS_next, x, log_a, B, C, S)
    undriven = planting.right_vjp(dy, dS_next, 0 * x, 0 * log_a, B, C, S)
    return dx, dlog_a, dB, undriven[3], dS


@planting.gradient("dlog_a_of_S", "Σ S* G for Σ (a S)* G")
def _dlog_a_of_S(dy, dS_next, x, log_a, B, C, S):
    dx, _, dB, dC, dS = planting.right_vjp(dy, dS_next, x, log_a, B, C, S)
    undecayed = planting.right_vjp(dy, dS_next, x, 0 * log_a, B, C, S)
    return dx, undecayed[1], dB, dC, dS


@planting.gradient("dB_of_first_head", "dB of the first head of a group")
def _dB_of_first_head(dy, dS_next, x, log_a, B, C, S):
    dx, dlog_a, _, dC, dS = planting.right_vjp(dy, dS_next, x, log_a, B, C, S)
    first = (np.arange(x.shape[-2]) == 0)[:, None] if x.ndim > 1 else 1
    mine = planting.right_vjp(first * dy, first[..., None] * dS_next, first * x, log_a, B, C, S)
    return dx, dlog_a, mine[2], dC, dS
