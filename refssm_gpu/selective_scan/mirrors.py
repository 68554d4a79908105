"""CuPy mirrors of selective scans, and of Mamba's: the same, with softplus, skip and gate.

Halves are computed in single precision; a step is a scan of length 1.
"""

from functools import partial

from refssm.selective_scan.mamba import MAMBA
from refssm.selective_scan.selective import SELECTIVE
from refssm_gpu._launching.arrays import in_type_of
from refssm_gpu._launching.checked import WITH_HALVES, mirror
from refssm_gpu.selective_scan.kernels import ScanArguments, gradients, scan

HALVES_TOO = partial(mirror, types=WITH_HALVES)


def _run(arguments, x0, resets):
    """The outputs, and the last state; C, D and z do not make it complex."""
    y, x = scan(ScanArguments(*arguments, x0=x0, resets=resets), at_rest=x0 is None)
    if x0 is None:
        return (y,)
    return y, in_type_of(x, *arguments[:4], *arguments[7:], x0)


def _back(cotangents, arguments, x0, resets):
    dy, dx = (*cotangents, None)[:2]
    given = ScanArguments(*arguments, x0=x0, resets=resets, dy=dy)
    return gradients(given, dx, at_rest=x0 is None)


(
    (selective_scan, selective_scan_vjp),
    (selective_scan_stateful, selective_scan_stateful_vjp),
    (selective_scan_packed, selective_scan_packed_vjp),
    (selective_step, selective_step_vjp),
) = SELECTIVE.mirrors(_run, _back, HALVES_TOO)
(
    (mamba_scan, mamba_scan_vjp),
    (mamba_scan_stateful, mamba_scan_stateful_vjp),
    (mamba_scan_packed, mamba_scan_packed_vjp),
    (mamba_step, mamba_step_vjp),
) = MAMBA.mirrors(_run, _back, HALVES_TOO)
