"""CuPy mirrors of refssm.ssd.packed: by chunks as in `recurrent`, and one step in one launch."""

from refssm.ssd import SSD_RECURRENT_PACKED, SSD_STEP
from refssm_gpu._launching.arrays import in_type_of, unbroadcast_and_round
from refssm_gpu._launching.checked import WITH_HALVES, checked, checked_vjp
from refssm_gpu.ssd.passes import gradients, scan, step, step_back


def ssd_recurrent_packed(x, log_a, B, C, resets):
    """Mirror of refssm.ssd_recurrent_packed."""
    return scan(x, log_a, B, C, resets=resets)[0]


def ssd_recurrent_packed_vjp(dy, x, log_a, B, C, resets):
    """Mirror of refssm.ssd_recurrent_packed_vjp."""
    return *gradients(dy, None, x, log_a, B, C, resets=resets), None


def ssd_step(x, log_a, B, C, S):
    """Mirror of refssm.ssd_step: the state is read once and written once."""
    y, after = step(x, log_a, B, C, S)
    return y, in_type_of(after, x, log_a, B, S)


def ssd_step_vjp(dy, dS_next, x, log_a, B, C, S):
    """Mirror of refssm.ssd_step_vjp."""
    dx, dlog_a, dB, dC, dS = step_back(dy, dS_next, x, log_a, B, C, S)
    made = dx[..., 0, :], dlog_a[..., 0], dB[..., 0, :], dC[..., 0, :], dS
    return unbroadcast_and_round(made, (x, log_a, B, C, S))


ssd_recurrent_packed_vjp = checked_vjp(SSD_RECURRENT_PACKED, ssd_recurrent_packed_vjp, WITH_HALVES)
ssd_recurrent_packed = checked(SSD_RECURRENT_PACKED, ssd_recurrent_packed, WITH_HALVES)
ssd_step_vjp = checked_vjp(SSD_STEP, ssd_step_vjp, WITH_HALVES)
ssd_step = checked(SSD_STEP, ssd_step, WITH_HALVES)
