"""CuPy mirrors of refssm.ssd: all forms by chunks, in matrix products (refssm_gpu.ssd.passes).

The kernels choose the chunk; every chunk gives the same. The masked matrix of weights of the
quadratic form is made for one chunk at a time and never in the card's memory, so operations grow
with the length and not with its square. A step is one launch.

For float16 and bfloat16 states inside are float32, rounded once at the end; tensor cores multiply
numbers of eleven bits.
"""

from functools import partial

from refssm.ssd import SSD_QUADRATIC, SSD_STEP
from refssm.ssd.chunked import CHUNKED
from refssm.ssd.recurrent import SSD
from refssm_gpu._launching.arrays import in_type_of, unbroadcast_and_round
from refssm_gpu._launching.checked import WITH_HALVES, mirror
from refssm_gpu.ssd.passes import gradients, scan, step, step_back

HALVES_TOO = partial(mirror, types=WITH_HALVES)


def _run(arguments, S0, resets, *, chunk=0):
    del chunk
    x, log_a, B, C = arguments
    y, S = scan(x, log_a, B, C, S0, resets, ends=S0 is not None)
    return (y,) if S0 is None else (y, in_type_of(S, x, log_a, B, S0))


def _back(cotangents, arguments, S0, resets, *, chunk=0):
    del chunk
    dy, dS = (*cotangents, None)[:2]
    more = () if S0 is None else (S0,)
    return gradients(dy, dS, *arguments, *more, resets=resets)


(
    (ssd_recurrent, ssd_recurrent_vjp),
    (ssd_recurrent_stateful, ssd_recurrent_stateful_vjp),
    (ssd_recurrent_packed, ssd_recurrent_packed_vjp),
    _,
) = SSD.mirrors(_run, _back, HALVES_TOO)
(
    (ssd_chunked, ssd_chunked_vjp),
    (ssd_chunked_stateful, ssd_chunked_stateful_vjp),
    (ssd_chunked_packed, ssd_chunked_packed_vjp),
) = CHUNKED.mirrors(_run, _back, HALVES_TOO)


@mirror(SSD_STEP, WITH_HALVES)
def ssd_step(x, log_a, B, C, S):
    """The state is read once and written once."""
    y, after = step(x, log_a, B, C, S)
    return y, in_type_of(after, x, log_a, B, S)


@mirror(SSD_STEP, WITH_HALVES)
def ssd_step_vjp(dy, dS_next, x, log_a, B, C, S):
    dx, dlog_a, dB, dC, dS = step_back(dy, dS_next, x, log_a, B, C, S)
    made = dx[..., 0, :], dlog_a[..., 0], dB[..., 0, :], dC[..., 0, :], dS
    return unbroadcast_and_round(made, (x, log_a, B, C, S))


@mirror(SSD_QUADRATIC, WITH_HALVES)
def ssd_quadratic(x, log_a, B, C):
    return scan(x, log_a, B, C)[0]


@mirror(SSD_QUADRATIC, WITH_HALVES)
def ssd_quadratic_vjp(dy, x, log_a, B, C):
    return gradients(dy, None, x, log_a, B, C)
