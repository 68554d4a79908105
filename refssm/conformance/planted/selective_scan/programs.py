"""Building blocks of the planted bugs of selective scans: a right scan with replaceable parts."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.planted.planting import Planting, instead
from refssm.conformance.planted.scan.pieces import in_any_form
from refssm.conformance.planted.selective_scan import operators as on
from refssm.conformance.planted.selective_scan.forms import batch_of, biased, family, gated


def unrolled(
    u, dt, A, B, C, x0, resets, *,
    decay=lambda dt, A: np.exp(dt * A),
    drive=lambda u, dt, A, B: dt * u * B,
    update=lambda k, a, x, b: a * x + b,
    read=lambda C, x, before: (C * x).sum(-1),
):  # fmt: skip
    """Step by step: x = update(k, decay, x, drive), or drive at a reset; y and the last x."""
    shape = (*batch_of(u, dt, A, B, C, x0), A.shape[-1])
    x, y = np.broadcast_to(x0, shape).astype(np.result_type(u, dt, A, B, x0)), []
    for k in range(u.shape[-1]):
        dt_k = dt[..., k, None]
        before = x if resets is None else np.where(resets[..., k, None], 0, x).astype(x.dtype)
        b = drive(u[..., k, None], dt_k, A, B[..., k, :])
        x = update(k, decay(dt_k, A), x, b)
        x = x if resets is None else np.where(resets[..., k, None], b, x).astype(x.dtype)
        y.append(read(C[..., k, :], x, before))
    return np.stack(y, axis=-1), x


def parts(**changed):
    """The scan with some of its parts replaced."""
    return lambda right, *args: right(*args, **changed)


def given(**changes):
    """The scan with changed arguments, after Mamba's softplus and before its gate."""
    names = ("u", "dt", "A", "B", "C", "x0", "resets")
    each = [changes.get(name, lambda arg: arg) for name in names]
    return lambda right, *args: right(*(f(arg) for f, arg in zip(each, args, strict=True)))


class Around(NamedTuple):
    """A right scan, with something wrong before or after it in Mamba's operators."""

    before: Callable = biased
    after: Callable = gated


def scan_as(name: str, wrong: Callable | Around) -> Callable:
    """Turn a wrong scan (right, u, dt, A, B, C, x0, resets) -> (y, x) into one operator's program.

    Its `right` is `unrolled`, with its replaceable parts.
    """
    if name in on.PIECES:
        adapt = in_any_form(lambda op: partial(scan_as, op.name))
        return adapt(operator_named(name))(wrong)
    if isinstance(wrong, Around):
        return instead(family(unrolled, *wrong)[name])
    return instead(family(partial(wrong, unrolled))[name])


class Bugs:
    """Planted bugs, each in several operators; a mapping changes arguments of the operator."""

    def __init__(self, adapt: Callable = scan_as):
        self.by_op = {
            op: Planting(operator_named(op), "float32", partial(adapt, op))
            for op in (*on.EACH, *on.PIECES)
        }

    def plant(self, names, *rows, by="value"):
        """Plant rows in the operators that `names` has."""
        for name in names:
            self.by_op[name].plant(*rows, by=by)

    @property
    def bugs(self):
        """The bugs of all operators."""
        return [bug for planting in self.by_op.values() for bug in planting.bugs]


def real(v):
    """v without its imaginary part, in the same type."""
    return v.real.astype(v.dtype)
