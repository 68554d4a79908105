"""Mistakes from public reports about other libraries, written anew as bugs of our operators.

Only the mistake that a report describes is taken over, no line of code. None was planted for the
judge; some are like bugs that were.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refssm.conformance.planted import PlantedBug
from refssm.conformance.planted.planting import in_memory_order

GITHUB = "https://github.com/"
BUGS: list[PlantedBug] = []


def report(op: str, where: str, what: str, by: str = "value") -> Callable[[Callable], Callable]:
    """A decorator that lists a wrong program; `where` is the report's address after `GITHUB`."""
    owner_name, number = where.split("/")[1], where.split("/")[-1]

    def register(wrong: Callable) -> Callable:
        told = f"{what} ([{owner_name} {number}]({GITHUB}{where}))"
        BUGS.append(PlantedBug(op, f"{owner_name}_{number}", f"{by}[float32]", told, wrong))
        return wrong

    return register


@report(
    "ssd_chunked",
    "huggingface/transformers/issues/34817",
    "states of chunks summed over the wrong axis: each is multiplied by all decays after it, "
    "and reaches its own chunk only",
)
def summed_over_targets(right, x, log_a, B, C, *, chunk):
    """The wrong state before chunk z: S_(z−1) Σ_p≥z e^{sum of log_a from chunk z to p − 1}."""
    starts = range(0, x.shape[-2], chunk)
    parts = [[v[..., s : s + chunk, :] for v in (x, B, C)] for s in starts]
    decays = [log_a[..., s : s + chunk] for s in starts]
    whole = [d.sum(-1) for d in decays]
    outputs, before = [], None
    for z, ((x_z, B_z, C_z), d) in enumerate(zip(parts, decays, strict=True)):
        y, sums = right(x_z, d, B_z, C_z, chunk=chunk), np.cumsum(d, -1)
        if before is not None:
            after = np.cumsum(np.stack([0 * whole[0], *whole[z:]]), 0)
            state = before * np.exp(after).sum(0)[..., None, None]
            y = y + np.exp(sums)[..., None] * np.einsum("...ln,...pn->...lp", C_z, state)
        outputs.append(y)
        left = np.exp(sums[..., -1:] - sums)[..., None]
        before = np.einsum("...lp,...ln->...pn", left * x_z, B_z)
    return np.concatenate(outputs, -2).astype(x.dtype)


@report(
    "ssd_chunked",
    "state-spaces/mamba/issues/352",
    "NaN in dx where the length is not a multiple of 256",
    by="gradient",
)
def not_a_number_in_tail(right, dy, x, *others, chunk):
    """The rows of the last, partial block of 256."""
    dx, *gradients = right(dy, x, *others, chunk=chunk)
    l = x.shape[-2]
    whole = l // 256 * 256
    return (np.where(np.arange(l)[:, None] < whole, dx, np.nan).astype(dx.dtype), *gradients)


@report(
    "ssd_chunked_stateful",
    "vllm-project/vllm/pull/21783",
    "the initial state decays only since the last multiple of 32 within the first chunk",
)
def decays_since_block(right, x, log_a, B, C, S0, *, chunk):
    """The part of S0 in y, divided by its decay before the block."""
    y, S = right(x, log_a, B, C, S0, chunk=chunk)
    l = min(chunk, x.shape[-2])
    sums = np.cumsum(log_a[..., :l], -1)
    blocks = np.arange(l) // 32 * 32
    since = np.where(blocks > 0, sums - sums[..., np.maximum(blocks - 1, 0)], sums)
    part = np.einsum("...ln,...pn->...lp", C[..., :l, :], S0)
    more = (np.exp(since) - np.exp(sums))[..., None] * part
    y = np.concatenate([y[..., :l, :] + more, y[..., l:, :]], -2)
    return y.astype(x.dtype), S


@report(
    "ssd_recurrent_stateful",
    "fla-org/flash-linear-attention/pull/459",
    "the gradient of the decay without the part of the last state's cotangent",
    by="gradient",
)
def decay_without_last_state(right, dy, dS, *args):
    """Only d log_a lacks it."""
    dx, _, *others = right(dy, dS, *args)
    return (dx, right(dy, np.zeros_like(dS), *args)[1], *others)


@report(
    "linear_scan",
    "state-spaces/mamba/issues/716",
    "the down-sweep of a parallel scan with the operands in the wrong order",
)
def down_sweep_exchanged(right, a, b):
    """Each right half of a tree of intervals starts from a wrong state."""
    del right
    start = np.ones_like(a[..., :1, :]), np.zeros_like(b[..., :1, :])
    return _down(a, b, *start)


def _down(a, b, decay, state):
    """The states of an interval from the decay and the state before it."""
    l = max(a.shape[-2], b.shape[-2])
    if l <= 1:
        return a * state + b
    half = (l + 1) // 2
    left, right = (a[..., :half, :], b[..., :half, :]), (a[..., half:, :], b[..., half:, :])
    a_left = np.prod(left[0], -2, keepdims=True)
    b_left = _right_scan(*left)[..., -1:, :]
    exchanged = decay * b_left + state  # a_left · state + b_left is right
    halves = _down(*left, decay, state), _down(*right, decay * a_left, exchanged)
    return np.concatenate(np.broadcast_arrays(*halves) if l % 2 == 0 else halves, -2)


def _right_scan(a, b):
    states, x = [], 0 * b[..., 0, :]
    for k in range(b.shape[-2]):
        x = a[..., k, :] * x + b[..., k, :]
        states.append(x)
    return np.stack(states, -2)


@report(
    "mamba_scan_stateful",
    "state-spaces/mamba/issues/641",
    "the initial state left out if there is more than one step",
)
def starts_from_rest(right, *args):
    """A state that is used for single steps only."""
    *others, x0 = args
    return right(*others, x0 * 0 if args[0].shape[-1] > 1 else x0)


@report(
    "selective_scan",
    "purohit10saurabh/mamba-ssm-macos/issues/7",
    "no gradient reaches the input",
    by="gradient",
)
def no_gradient_of_input(right, *args):
    """du = 0."""
    du, *others = right(*args)
    return (0 * du, *others)


@report(
    "short_convolution",
    "tensorflow/models/issues/10062",
    "padding as for an output of the same size, half of it at the end",
)
def same_padding(right, u, k):
    """Outputs t/2 steps early."""
    early = k.shape[-1] // 2
    longer = np.concatenate([u, np.zeros((*u.shape[:-1], early), u.dtype)], -1)
    return right(longer, k)[..., early:]


@report(
    "short_convolution",
    "KonduitAI/deeplearning4j/pull/90",
    "du one step late",
    by="gradient",
)
def input_gradient_late(right, dy, u, k):
    """The gradient of each input stands at the next one."""
    du, dk = right(dy, u, k)
    return np.concatenate([0 * du[..., :1], du[..., :-1]], -1), dk


@report(
    "short_convolution",
    "fla-org/flash-linear-attention/issues/906",
    "nothing computed beyond 65536 steps, as in another kernel",
)
def tail_skipped(right, u, k):
    """There, zeros."""
    y = right(u, k)
    return np.where(np.arange(y.shape[-1]) < 2**16, y, 0).astype(y.dtype)


@report(
    "short_convolution_stateful",
    "fla-org/flash-linear-attention/issues/1140",
    "the last state's cotangent at the wrong steps if the sequence is shorter than t − 1",
    by="gradient",
)
def short_sequences_shifted(right, dy, ds, u, k, s0):
    """There, du has ds of slot i + 1, and ds0 has nothing of ds."""
    l, t = u.shape[-1], k.shape[-1]
    if l >= t - 1:
        return right(dy, ds, u, k, s0)
    du, dk, ds0 = right(dy, np.zeros_like(ds), u, k, s0)
    return du + ds[..., 1 : l + 1], dk, ds0


@report(
    "short_convolution_stateful",
    "fla-org/flash-linear-attention/issues/1138",
    "the initial state's gradient reads the cotangent as if it were contiguous",
    by="gradient",
)
def cotangent_read_as_contiguous(right, dy, ds, u, k, s0):
    """Only ds0 is wrong; beyond the memory of a broadcast number it reads zeros."""
    du, dk, _ = right(dy, ds, u, k, s0)
    broadcast = any(not s and n > 1 for s, n in zip(dy.strides, dy.shape, strict=True))
    seen = in_memory_order(dy)
    if broadcast:
        seen = np.where(np.arange(dy.size).reshape(dy.shape) == 0, dy, 0)
    return du, dk, right(seen.astype(dy.dtype), ds, u, k, s0)[2]
