"""Programs that leave out what the inputs of a public task hide.

Each passes the task's own test, run as it is, at all its sizes; `docs/findings/gpu_mode.md` has the
commands. None was planted for the judge before.
"""

from __future__ import annotations

import numpy as np

from refssm.conformance.planted import PlantedBug
from selftest.comparing.chunks import STAGES

TASKS = {
    "chunk_writes": "gated_deltanet_recompute_w_u",
    "chunk_states": "gated_deltanet_chunk_fwd_h",
    "chunk_outputs": "gated_deltanet_chunk_fwd_o",
}
assert tuple(TASKS) == STAGES


def state_unread(right, q, k, v, g, S):
    """Y without (e^G Q) S."""
    return right(q, k, v, g, np.zeros_like(S))


def one_step(right, k, w, u, g, S):
    """Each state is k vᵀ of the step before, no state passes a chunk, new values are U."""
    del right, w, g
    written = k[..., -1, :, None] * u[..., -1, None, :]
    first = np.broadcast_to(S[..., None, :, :], written[..., :1, :, :].shape)
    states = np.concatenate([first, written], -3).astype(u.dtype)
    return states[..., :-1, :, :].copy(), u.copy(), states[..., -1, :, :].copy()


def of_the_chunk_only(right, q, k, v, log_g, beta, *, chunk):
    """The whole of both: no chunk sees the one before it."""
    parts = range(0, v.shape[-2], chunk)
    rows = [[x[..., s : s + chunk, :] for x in (q, k, v)] for s in parts]
    heads = [[x[..., s : s + chunk] for x in (log_g, beta)] for s in parts]
    found = [right(*a, *b, chunk=chunk) for a, b in zip(rows, heads, strict=True)]
    return np.concatenate(found, -2) if found else right(q, k, v, log_g, beta, chunk=chunk)


BUGS = [
    PlantedBug("chunk_outputs", "state_unread", "value[float32]", "no state is read", state_unread),
    PlantedBug(
        "chunk_states",
        "one_step",
        "value[float32]",
        "the state before a chunk is k vᵀ of the step before it alone; U for U − W S",
        one_step,
    ),
    PlantedBug(
        "gated_delta_rule_chunked",
        "of_the_chunk_only",
        "value[float32]",
        "the whole operator where no chunk sees the one before it",
        of_the_chunk_only,
    ),
]
