"""Planted bugs in the single step of state-space duality, and in its VJP.

Bugs that it shares with sequences are planted together with theirs.
"""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import Planting, of_result
from refssm.conformance.planted.ssd.programs import zero
from refssm.ssd import SSD_STEP

# where each result stands, the gradients by their arguments
PLACES = {n: i for names in (SSD_STEP.inputs, SSD_STEP.outputs) for i, n in enumerate(names)}


def _as_of(name, **given):
    """One result, or one gradient, computed for other arguments; the other results are right."""

    def program(right, *args):
        names = ("dy", "dS_next", *SSD_STEP.inputs)[-len(args) :]
        others = (given[n](a) if n in given else a for n, a in zip(names, args, strict=True))
        told = [*right(*args)]
        told[PLACES[name]] = right(*others)[PLACES[name]]
        return tuple(told)

    return program


def _decayed_again(right, x, log_a, *others):
    y, S_next = right(x, log_a, *others)
    return y, np.exp(log_a)[..., None, None] * S_next


def _in_place(right, x, log_a, B, C, S):
    y, S_next = right(x, log_a, B, C, S)
    if S.shape == S_next.shape and S.dtype == S_next.dtype:
        S[...] = S_next
    return y, S_next


STEPS = Planting(SSD_STEP, "float32")
STEPS.usual()
STEPS.plant(
    ("undecayed", "S + x Bᵀ", {"log_a": zero}),
    ("state_in_bfloat16", "S rounded to bfloat16", {"S": bfloat16}),
    ("state_in_float16", "S rounded to float16", {"S": float16}),
    ("state_ignored_in_batch_of_one", "S taken as zero where the batch is 1",
     {"S": lambda S: S * (S.ndim < 3 or S.shape[0] != 1)}),
    ("reads_state_before", "y = S C: the state before the step", _as_of("y", x=zero, log_a=zero)),
    ("state_not_advanced", "the state before the step returned",
     _as_of("S_next", x=zero, log_a=zero)),
    ("next_without_input", "the next state without x Bᵀ", _as_of("S_next", x=zero)),
    ("next_decayed_again", "the next state decayed once more", _decayed_again),
    ("next_in_bfloat16", "the next state kept in bfloat16",
     of_result(lambda y, S: (y, bfloat16(S)))),
    ("output_in_float16", "y rounded to float16", of_result(lambda y, S: (float16(y), S))),
)  # fmt: skip
STEPS.plant(("in_place", "the state overwritten by the next", _in_place), by="unchanged")


def _dB_of_first_head(right, dy, dS_next, x, log_a, B, C, S):
    dx, dlog_a, _, dC, dS = right(dy, dS_next, x, log_a, B, C, S)
    first = (np.arange(x.shape[-2]) == 0)[:, None] if x.ndim > 1 else 1
    dB = right(first * dy, first[..., None] * dS_next, first * x, log_a, B, C, S)[2]
    return dx, dlog_a, dB, dC, dS


STEPS.plant(
    ("dlog_a_missing", "dlog_a = 0", {"log_a": zero}),
    ("dB_sign", "dB with the other sign", {"B": np.negative}),
    ("dS_missing", "dS = 0", {"S": zero}),
    ("dx_in_float16", "dx rounded to float16", {"x": float16}),
    ("next_dropped", "the next state has no gradient", {"dS_next": zero}),
    ("output_dropped", "y gives the state before no gradient", _as_of("S", dy=zero)),
    ("dS_undecayed", "dS = G", _as_of("S", log_a=zero)),
    ("dC_of_state_before", "dC with the state before the step", _as_of("C", x=zero, log_a=zero)),
    ("dlog_a_of_S", "Σ S* G for Σ (a S)* G", _as_of("log_a", log_a=zero)),
    ("dB_of_first_head", "dB of the first head of a group", _dB_of_first_head),
    by="gradient",
)
for _name in SSD_STEP.inputs:
    STEPS.plant(
        (f"d{_name}_conjugated", f"(d{_name})*", {_name: np.conj}), by="gradient[complex64]"
    )
