"""What the planted bugs of selective scans are made from: a right scan with exchangeable parts."""

import numpy as np

from refssm.conformance.honest.selective_scan.forms import batch_of, biased, family, gated
from refssm.conformance.planted import Deviation

SCAN, STATEFUL, PACKED, STEP = (
    (f"selective_{form}", f"mamba_{form}")
    for form in ("scan", "scan_stateful", "scan_packed", "step")
)
LONG = (*SCAN, *STATEFUL, *PACKED)
EACH = (*LONG, *STEP)
GATED = tuple(name for name in EACH if name.startswith("mamba"))
STEPPED = ("selective_scan", "selective_step", "mamba_scan_stateful")  # for what all may have


def decayed(dt, A):
    """e^{dt A}."""
    return np.exp(dt * A)


def driven(u, dt, A, B):
    """dt u B."""
    return dt * u * B


def updated(k, a, x, b):
    """a x + b."""
    return a * x + b


def read(C, x, before):
    """C · x."""
    return (C * x).sum(-1)


def unrolled(u, dt, A, B, C, x0, resets, *, decay=decayed, drive=driven, update=updated, read=read):
    """Step by step: x = update(k, decay, x, drive), drive at a reset; y and the last state."""
    shape = (*batch_of(u, dt, A, B, C, x0), A.shape[-1])
    x, y = np.broadcast_to(x0, shape).astype(np.result_type(u, dt, A, B, x0)), []
    for k in range(u.shape[-1]):
        dt_k, before = dt[..., k, None], x
        b = drive(u[..., k, None], dt_k, A, B[..., k, :])
        x = update(k, decay(dt_k, A), x, b)
        x = x if resets is None else np.where(resets[..., k, None], b, x).astype(x.dtype)
        y.append(read(C[..., k, :], x, before))
    return np.stack(y, axis=-1), x


def parts(**changed):
    """The scan with some of its parts exchanged."""
    return lambda *args: unrolled(*args, **changed)


def given(change):
    """The scan of changed arguments: change(u, dt, A, B, C, x0, resets) gives them by name."""

    def core(*args):
        names = ("u", "dt", "A", "B", "C", "x0", "resets")
        named = dict(zip(names, args, strict=True))
        return unrolled(**(named | change(**named)))

    return core


class Table:
    """Planted bugs, each in several operators of the family."""

    def __init__(self):
        self.bugs: list[Deviation] = []

    def plant(
        self, on, name, what, core=unrolled, check="value[float32]", before=biased, after=gated
    ):
        """A wrong scan, or a wrong softplus before or gate after a right one."""
        functions = family(core, before, after)
        self.bugs += [Deviation(op, name, check, what, functions[op]) for op in on]
