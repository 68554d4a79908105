"""What the planted bugs of selective scans are made from: a right scan with exchangeable parts."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.honest.selective_scan.forms import batch_of, biased, family, gated
from refssm.conformance.planted.planting import Planting, instead

SCAN, STATEFUL, PACKED, STEP = (
    (f"selective_{form}", f"mamba_{form}")
    for form in ("scan", "scan_stateful", "scan_packed", "step")
)
LONG = (*SCAN, *STATEFUL, *PACKED)
EACH = (*LONG, *STEP)
GATED = tuple(name for name in EACH if name.startswith("mamba"))
ONE, OTHER = GATED[::2], GATED[1::2]  # scan and packed; stateful and step
STEPPED = ("selective_scan", "selective_step", "mamba_scan_stateful")  # for what all may have


def unrolled(
    u, dt, A, B, C, x0, resets, *,
    decay=lambda dt, A: np.exp(dt * A),
    drive=lambda u, dt, A, B: dt * u * B,
    update=lambda k, a, x, b: a * x + b,
    read=lambda C, x, before: (C * x).sum(-1),
):  # fmt: skip
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
    return lambda right, *args: right(*args, **changed)


def given(**changes):
    """The scan of changed arguments: what enters it, between Mamba's softplus and its gate."""
    names = ("u", "dt", "A", "B", "C", "x0", "resets")

    def wrong(right, *args):
        named = zip(names, args, strict=True)
        return right(*(changes[name](arg) if name in changes else arg for name, arg in named))

    return wrong


class Around(NamedTuple):
    """A right scan, and something wrong before it or after it in Mamba's operators."""

    before: Callable = biased
    after: Callable = gated


def scan_as(name: str, wrong: Callable | Around) -> Callable:
    """A wrong scan (right, u, dt, A, B, C, x0, resets) -> (y, x) as a program of one operator.

    The right one that it takes is `unrolled`, with its exchangeable parts.
    """
    if isinstance(wrong, Around):
        return instead(family(unrolled, *wrong)[name])
    return instead(family(partial(wrong, unrolled))[name])


class Bugs:
    """Planted bugs, each in several operators; a mapping changes an operator's own arguments."""

    def __init__(self, adapt: Callable = scan_as):
        self.plantings = {
            name: Planting(operator_named(name), "float32", partial(adapt, name)) for name in EACH
        }

    def plant(self, on, *rows, by="value"):
        """Plant rows in the operators that `on` names."""
        for name in on:
            self.plantings[name].plant(*rows, by=by)

    @property
    def bugs(self):
        """Those of all operators."""
        return [bug for planting in self.plantings.values() for bug in planting.bugs]


def real(v):
    """Without the imaginary part, in the same type."""
    return v.real.astype(v.dtype)
