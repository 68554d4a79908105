"""CuPy mirrors of refssm.ssd.packed: by chunks as in `recurrent`, and one step in one launch."""

from refssm.ssd import SSD_RECURRENT_PACKED, SSD_STEP
from refssm_gpu._launching.arrays import in_type_of, unbroadcast_and_round
from refssm_gpu._launching.checked import WITH_HALVES, mirror
from refssm_gpu.ssd.passes import gradients, scan, step, step_back


@mirror(SSD_RECURRENT_PACKED, WITH_HALVES)
def ssd_recurrent_packed(x, log_a, B, C, resets):
    return scan(x, log_a, B, C, resets=resets)[0]


@mirror(SSD_RECURRENT_PACKED, WITH_HALVES)
def ssd_recurrent_packed_vjp(dy, x, log_a, B, C, resets):
    return *gradients(dy, None, x, log_a, B, C, resets=resets), None


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
