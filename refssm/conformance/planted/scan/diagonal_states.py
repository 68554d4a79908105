"""Diagonal systems with one part replaced: the states, what is read from them, the last state."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.scan.base import right, stepwise
from refssm.scan import DIAGONAL_SSM_BIDIRECTIONAL


def scanned(a, b, x0):
    """The states without a bug."""
    return right(a, b, x0)


def output(C, x, D, u, real):
    """C x + D u, or 2 Re(C x) + D u."""
    y = x @ C.mT
    return (2 * y.real if real else y) + u @ D.mT


def last_of(x, a, b, x0):
    """The state after the last step."""
    return x[..., -1, :].copy()


def built(op, *, states=scanned, read=output, last=last_of):
    """The operator with one of its three parts replaced."""
    real, both = "real" in op.name, op is DIAGONAL_SSM_BIDIRECTIONAL

    def system(a, B, C, D, u, x0=None):
        a_k, b = a if "varying" in op.name else a[..., None, :], u @ B.mT
        start = np.zeros_like(b[..., 0, :]) if x0 is None else x0
        x = states(a_k, b, start)
        if both:
            future = states(a_k, b[..., ::-1, :], start)[..., ::-1, :]
            x = np.concatenate([x, future], axis=-1)
        y = read(C, x, D, u, real)
        y = y.astype(op.output_types(a, B, C, D, u, *([] if x0 is None else [x0]))[0])
        return y if x0 is None else (y, last(x, a_k, b, start))

    return system


def _exclusive(a, b, x0):
    x = right(a, b, x0)
    start = np.broadcast_to(x0[..., None, :], x[..., :1, :].shape)
    return np.concatenate([start, x[..., :-1, :]], axis=-2)


def _carry_lost(size):
    def scan(a, b, x0):
        return stepwise(
            lambda k, a_k, x, b_k: b_k + (0 * x if k and k % size == 0 else a_k * x), a, b, x0
        )

    return scan


def _carry_undecayed(a, b, x0):
    """At every multiple of 64 the state is added as it is."""
    return stepwise(lambda k, a_k, x, b_k: b_k + (x if k and k % 64 == 0 else a_k * x), a, b, x0)


def _ragged_tail(a, b, x0):
    whole = b.shape[-2] // 32 * 32
    return stepwise(lambda k, a_k, x, b_k: b_k + (0 * x if k and k == whole else a_k * x), a, b, x0)


def _clipped(a, b, x0):
    size = np.abs(a)
    limit = np.where(size > 1 - 1e-4, (1 - 1e-4) / np.where(size == 0, 1, size), 1)
    return right((a * limit).astype(a.dtype), b, x0)


STATES = {
    "exclusive": ("x_{k-1} read for x_k", _exclusive),
    "input_decays": (
        "a (x_{k-1} + B u_k): the input decays too",
        lambda a, b, x0: stepwise(lambda k, a_k, x, b_k: a_k * (x + b_k), a, b, x0),
    ),
    "carry_lost_64": ("the carry lost at chunks of 64", _carry_lost(64)),
    "carry_lost_256": ("the carry lost at chunks of 256", _carry_lost(256)),
    "carry_undecayed": ("the carry of a chunk of 64 added without its decay", _carry_undecayed),
    "ragged_tail": ("the tail beyond a multiple of 32 scanned from rest", _ragged_tail),
    "decay_inverted": ("1/a in place of a", lambda a, b, x0: right(1 / a, b, x0)),
    "decay_clipped": ("|a| clipped to 1 − 1e-4", _clipped),
    "decay_reversed": (
        "the modes' decays in reverse order",
        lambda a, b, x0: right(a[..., ::-1], b, x0),
    ),
    "state_in_bfloat16": (
        "the state kept in bfloat16",
        lambda a, b, x0: stepwise(lambda k, a_k, x, b_k: bfloat16(a_k * x + b_k), a, b, x0),
    ),
    "state_forgotten": ("x_k = B u_k", lambda a, b, x0: b + 0 * right(a, b, x0)),
}
VARYING = {
    "decay_late": ("a_{k-1} in place of a_k", lambda a, b, x0: right(np.roll(a, 1, -2), b, x0)),
    "decay_early": ("a_{k+1} in place of a_k", lambda a, b, x0: right(np.roll(a, -1, -2), b, x0)),
    "decay_of_first_step": (
        "the first step's decay at every step",
        lambda a, b, x0: right(a[..., :1, :], b, x0),
    ),
}
FROM = {
    "start_dropped": ("x0 taken as zero", lambda a, b, x0: right(a, b, 0 * x0)),
    "start_undecayed": (
        "x_0 = x0 + B u_0",
        lambda a, b, x0: stepwise(lambda k, a_k, x, b_k: (a_k * x if k else x) + b_k, a, b, x0),
    ),
    "start_ignored_in_batch_of_one": (
        "x0 taken as zero where the batch is 1",
        lambda a, b, x0: right(a, b, x0 * (x0.shape[0] != 1) if x0.ndim > 1 else x0),
    ),
    "start_in_half": ("x0 rounded to float16", lambda a, b, x0: right(a, b, float16(x0))),
    "start_every_step": (
        "x0 added at every step",
        lambda a, b, x0: right(a, b + x0[..., None, :], 0 * x0),
    ),
}
FROM_COMPLEX = {
    "start_real": (
        "the imaginary part of x0 dropped",
        lambda a, b, x0: right(a, b, x0.real.astype(x0.dtype)),
    ),
    "start_conjugated": ("x0* for x0", lambda a, b, x0: right(a, b, x0.conj())),
}


def _one_early(x, a, b, x0):
    early = x[..., -2, :] if x.shape[-2] > 1 else np.broadcast_to(x0, x[..., 0, :].shape)
    return early.astype(x.dtype)


def _of_whole_chunks(x, a, b, x0):
    """The state after the last full chunk of 64 steps; right where there is none."""
    return x[..., x.shape[-2] // 64 * 64 - 1, :].copy()


LAST = {
    "state_one_early": ("the state before the last step returned", _one_early),
    "state_without_last_input": (
        "the last input left out of the state",
        lambda x, a, b, x0: x[..., -1, :] - b[..., -1, :],
    ),
    "state_one_late": (
        "the state decayed once more",
        lambda x, a, b, x0: x[..., -1, :] * a[..., -1, :],
    ),
    "state_of_first_step": (
        "the state after the first step returned",
        lambda x, a, b, x0: x[..., 0, :].copy(),
    ),
    "state_of_whole_chunks": ("the state at the last multiple of 64", _of_whole_chunks),
    "state_from_rest": (
        "the last state without what x0 left in it",
        lambda x, a, b, x0: right(a, b, 0 * x0)[..., -1, :],
    ),
    "state_in_half": (
        "the last state rounded to float16",
        lambda x, a, b, x0: float16(x[..., -1, :]),
    ),
    "state_not_updated": (
        "x0 returned as the last state",
        lambda x, a, b, x0: np.broadcast_to(x0, x[..., 0, :].shape).astype(x.dtype),
    ),
}
LAST_COMPLEX = {
    "state_conjugated": ("the last state conjugated", lambda x, a, b, x0: x[..., -1, :].conj()),
    "state_real": (
        "the imaginary part of the last state dropped",
        lambda x, a, b, x0: x[..., -1, :].real.astype(x.dtype),
    ),
}
