"""Planted bugs in the single step of state-space duality, and in its gradients.

Those that it has in common with the sequences are planted with theirs.
"""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import Planting
from refssm.conformance.planted.ssd.programs import zero
from refssm.ssd import SSD_STEP


def _ending(end):
    """A right step with other results: end(y, S_next, a, C, S)."""

    def program(right, x, log_a, B, C, S):
        y, S_next = right(x, log_a, B, C, S)
        return end(y, S_next, np.exp(log_a)[..., None, None], C, S + 0 * S_next)

    return program


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
    ("reads_state_before", "y = S C: the state before the step",
     _ending(lambda y, S_next, a, C, S: ((S @ C[..., None])[..., 0], S_next))),
    ("state_not_advanced", "the state before the step returned",
     _ending(lambda y, S_next, a, C, S: (y, S))),
    ("next_without_input", "the next state without x Bᵀ",
     _ending(lambda y, S_next, a, C, S: (y, a * S))),
    ("next_decayed_again", "the next state decayed once more",
     _ending(lambda y, S_next, a, C, S: (y, a * S_next))),
    ("next_in_bfloat16", "the next state kept in bfloat16",
     _ending(lambda y, S_next, a, C, S: (y, bfloat16(S_next)))),
    ("output_in_float16", "y rounded to float16",
     _ending(lambda y, S_next, a, C, S: (float16(y), S_next))),
)  # fmt: skip
STEPS.plant(("in_place", "the state overwritten by the next", _in_place), by="unchanged")


def _with(name, **given):
    """One gradient as of other cotangents or arguments, by name; the others right."""
    names = [*SSD_STEP.inputs]

    def program(right, *args):
        gradients = dict(zip(names, right(*args), strict=True))
        called = zip(["dy", "dS_next", *names], args, strict=True)
        changed = right(*(given[n](a) if n in given else a for n, a in called))
        return tuple((gradients | {name: changed[names.index(name)]}).values())

    return program


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
    ("output_dropped", "y gives the state before no gradient", _with("S", dy=zero)),
    ("dS_undecayed", "dS = G", _with("S", log_a=zero)),
    ("dC_of_state_before", "dC with the state before the step", _with("C", x=zero, log_a=zero)),
    ("dlog_a_of_S", "Σ S* G for Σ (a S)* G", _with("log_a", log_a=zero)),
    ("dB_of_first_head", "dB of the first head of a group", _dB_of_first_head),
    by="gradient",
)
for _name in SSD_STEP.inputs:
    STEPS.plant(
        (f"d{_name}_conjugated", f"(d{_name})*", {_name: np.conj}), by="gradient[complex64]"
    )
