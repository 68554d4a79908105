"""Honest calls of Mamba-2: in chunks of matrix products, as attention, by states, in double."""

import numpy as np
from scipy.special import expit

from honest import Honest
from honest.ssd.attention import by_chunks, by_matrix, differences, masked_product
from honest.ssd.differences import by_differences
from honest.ssd.states import doubling, transposed_state
from honest.ssd.vjp import states_saved
from refssm.conformance.planted.ssd.around import (
    EACH,
    SCANS,
    around,
    back_around,
    biased,
    form,
    gradient_form,
    limited,
    skipped,
)
from refssm.conformance.planted.ssd.right import through_attention

ONE_SEQUENCE = [op for op in SCANS if "resets" not in op.inputs]


def moderate(case):
    """The case with A scaled to |Σ Δ A| ≤ 64, because e^T has a relative error of |T| u.

    By a power of two, so that a case that was scaled stays as it is.
    """
    A = case["A"]
    v = case["dt"] + case["dt_bias"][..., None]
    step = np.logaddexp(0, np.where(np.isfinite(v), v, 0))
    total = np.abs(np.where(np.isfinite(A), A, 0)) * max(
        step.sum(-1).max(initial=0), step.shape[-1]
    )
    halvings = np.ceil(np.log2(np.maximum(total, 64) / 64))
    return {**case, "A": (A * np.exp2(-halvings)).astype(A.dtype)}


def not_below(case):
    """Gates of at least −87, because e^{−z} overflows single precision at −89."""
    return {**case, "z": np.maximum(case["z"], case["z"].dtype.type(-87))}


def single(case):
    """Declines double precision, as the switch at 20 is too inaccurate."""
    return None if case["dt"].dtype == np.float64 else not_below(case)


def torch_steps(g):
    """As in PyTorch: v itself above 20, where e^{−20}/20 is below single precision."""
    v = biased(g)
    return limited(np.where(v > 20, v, np.log1p(np.exp(np.minimum(v, 20)))), g)


def torch_gated(s, g):
    """z/(1 + e^{−z})."""
    return (s + skipped(g)) * (g.z / (1 + np.exp(-g.z)))


def scipy_gated(s, g):
    """The gate multiplied out: s z σ(z) + D x z σ(z)."""
    gate = g.z * expit(g.z)
    return s * gate + skipped(g) * gate


def in_double(program):
    """Everything in double precision, rounded at the end."""

    def whole(*args):
        g = args[-1]
        wide = [a.astype(np.result_type(a, np.float64)) for a in g[:9]]
        found = program(*args[:-1], type(g)(*wide, *g[9:]))
        kind = np.result_type(*g[:9])
        return tuple(a.astype(kind) for a in found)

    return whole


def steps_in_B(whole):
    """Δ is multiplied with B, not x."""

    def program(g):
        v = biased(g)
        step = limited(np.maximum(v, 0) + np.log1p(np.exp(-np.abs(v))), g)
        B = step[..., None] * g.B
        s, S = whole(g.x, step * g.A[..., None], B, g.C, g.S0, g.resets, 64)
        return scipy_gated(s, g), S

    return program


def _made(name, program, operators, back=None, only=None):
    """One implementation of each of `operators`."""
    return [
        Honest(op.name, name, form(op, program), back and gradient_form(op, back), only=only)
        for op in operators
    ]


IMPLEMENTATIONS = [
    *_made("chunks", around(by_chunks()), EACH, back_around(by_chunks(), states_saved)),
    *_made("chunks_of_16", around(by_chunks(16)), SCANS),
    # NaN spreads within a chunk: a note
    *_made("masked_product", around(by_chunks(inside=masked_product)), ONE_SEQUENCE),
    *_made("attention", around(by_matrix), SCANS,
           back_around(by_matrix, through_attention), only=moderate),
    *_made("transposed_state", around(transposed_state), EACH),
    *_made("doubling", around(doubling), EACH),
    *_made("steps_in_B", steps_in_B(transposed_state), EACH),
    *_made("in_double", in_double(around(transposed_state)), EACH,
           in_double(back_around(transposed_state, states_saved))),
    *_made("as_torch", around(transposed_state, steps=torch_steps, after=torch_gated), EACH,
           only=single),
    *_made("expit", around(by_chunks(32), after=scipy_gated), SCANS, only=not_below),
    # grade N where entries cancel
    *_made("differences_16", around(by_chunks(16, differences)), ONE_SEQUENCE,
           back_around(by_chunks(16), by_differences(16))),
]  # fmt: skip
