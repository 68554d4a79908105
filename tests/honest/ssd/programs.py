"""Honest state-space duality: by states, scans, attention and chunks, in other orders."""

import numpy as np

from honest import Honest
from honest.scan.base import SCANS
from honest.ssd import steps
from honest.ssd.attention import (
    as_one_chunk,
    by_chunks,
    by_matrix,
    differences,
    masked_product,
    row_by_row,
)
from honest.ssd.differences import by_differences
from honest.ssd.states import as_linear_scan, doubling, transposed_state
from honest.ssd.vjp import states_saved
from refssm.conformance.planted.ssd.forms import CHUNKED, RECURRENT, SEQUENCES, form, gradient_form
from refssm.conformance.planted.ssd.right import through_attention
from refssm.ssd import SSD_QUADRATIC

ATTENTION = (SSD_QUADRATIC, *CHUNKED)
ONE_SEQUENCE = [op for op in SEQUENCES if "resets" not in op.inputs]


def moderate(case):
    """The case with log_a scaled to |Σ log_a| ≤ 64, because e^T has a relative error of |T| u.

    By a power of two, so that a case that was scaled stays as it is.
    """
    log_a = case["log_a"]
    total = np.abs(np.where(np.isfinite(log_a), log_a, 0)).sum(axis=-1, keepdims=True)
    halvings = np.ceil(np.log2(np.maximum(total, 64) / 64))
    return {**case, "log_a": (log_a * np.exp2(-halvings)).astype(log_a.dtype)}


def _made(name, whole, operators, vjp=None, accuracy=None, only=None):
    """One implementation of each of `operators`, from a function of everything."""
    return [
        Honest(
            op.name,
            name,
            form(op, whole),
            gradient_form(op, vjp) if vjp else None,
            only=only,
            accuracy=accuracy,
        )
        for op in operators
    ]


SINGLE_STEPS = [
    Honest("ssd_step", "transposed", steps.transposed),
    Honest("ssd_step", "row_by_row", steps.row_by_row),
    Honest("ssd_step", "read_first", steps.read_first, steps.read_first_vjp),
]

IMPLEMENTATIONS = [
    # e^{log_a}, rounded and multiplied t times, is off by t roundings, which the exponential of a
    # sum is not: for the chunked forms, whose tolerance is that of the sum, these are inaccurate
    *_made("transposed_state", transposed_state, RECURRENT, states_saved),
    *_made("doubling", doubling, RECURRENT),
    *_made("tree", as_linear_scan(SCANS["tree"]), RECURRENT[:2]),
    # exponents are one sum, step after step: equal angles of hundreds of turns lose their digits
    *_made("row_by_row", row_by_row, (*RECURRENT, SSD_QUADRATIC), only=moderate),
    *_made("matrix", by_matrix, SEQUENCES, only=moderate),
    *_made("chunks", by_chunks(), CHUNKED, states_saved),
    *_made("attention_vjp", by_matrix, ATTENTION, through_attention, only=moderate),
    *_made("chunks_of_16", by_chunks(16), ATTENTION),
    *_made("chunks_of_64", by_chunks(64), SEQUENCES),
    *_made("differences_8", by_chunks(8, differences), ONE_SEQUENCE),
    # NaN spreads within a chunk: a note
    *_made("masked_product", by_chunks(inside=masked_product), CHUNKED[:2]),
    *_made("masked_product", as_one_chunk(masked_product), (SSD_QUADRATIC,)),
    # grade N where entries cancel
    *_made("differences_16", by_chunks(16, differences), ONE_SEQUENCE, by_differences(16)),
    *SINGLE_STEPS,
]
