"""What the planted bugs of selective scans are made from: a right scan with exchangeable parts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

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
    return lambda right, *args: right(*args, **changed)


def given(**changes):
    """The scan of changed arguments: what enters it, between Mamba's softplus and its gate."""
    names = ("u", "dt", "A", "B", "C", "x0", "resets")

    def wrong(right, *args):
        named = zip(names, args, strict=True)
        return right(*(changes[name](arg) if name in changes else arg for name, arg in named))

    return wrong


@dataclass(frozen=True)
class Around:
    """A right scan, and something wrong before it or after it in Mamba's operators."""

    before: Callable = biased
    after: Callable = gated


def scan_as(name: str, wrong: Callable | Around) -> Callable:
    """A wrong scan (right, u, dt, A, B, C, x0, resets) -> (y, x) as a program of one operator.

    The right one that it takes is `unrolled`, with its exchangeable parts.
    """
    if isinstance(wrong, Around):
        return instead(family(unrolled, wrong.before, wrong.after)[name])
    return instead(family(partial(wrong, unrolled))[name])


class Bugs:
    """Planted bugs, each in several operators; a mapping changes an operator's own arguments."""

    def __init__(self, adapt: Callable = scan_as):
        self.plantings = {
            name: Planting(operator_named(name), "float32", partial(adapt, name)) for name in EACH
        }

    def plant(self, on, *rows, by="value"):
        """Plant rows in the operators that `on` names."""
        for op in on:
            self.plantings[op].plant(*((*text, _named(x, op)) for *text, x in rows), by=by)

    @property
    def bugs(self):
        """Those of all operators."""
        return [bug for planting in self.plantings.values() for bug in planting.bugs]


def _named(wrong, op):
    """Where it is a mapping: a step calls x and dx_next what a scan calls x0 and dx."""
    if not isinstance(wrong, Mapping) or op not in STEP:
        return wrong
    names = {"x0": "x", "dx": "dx_next"}
    return {names.get(name, name): change for name, change in wrong.items()}
