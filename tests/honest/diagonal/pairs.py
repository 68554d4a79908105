"""Honest kernels of conjugate pairs: twice the real part of other sums, both modes, cosines."""

import numpy as np

from honest import Honest
from honest.diagonal.kernels import (
    HELD,
    bilinear_recurrence,
    by_parts,
    in_double,
    not_doubled,
    quick,
    recurrence,
    wide_roots,
)
from honest.vandermonde import sines_and_cosines
from refssm.diagonal import (
    DIAGONAL_KERNEL_BILINEAR,
    DIAGONAL_KERNEL_BILINEAR_REAL,
    DIAGONAL_KERNEL_ZOH,
    DIAGONAL_KERNEL_ZOH_REAL,
)
from refssm.discretize.phi import phi1


def _real(form):
    """Twice the real part of a kernel."""
    return lambda w, B, C, dt, *, l: 2 * form(w, B, C, dt, l=l).real


def _pairs(op):
    """The reference's kernel of both modes of every conjugate pair."""

    def kernel(w, B, C, dt, *, l):
        both = (np.concatenate([a, a.conj()], axis=-1) for a in np.broadcast_arrays(w, B, C))
        return op.reference(*both, dt, l=l).real

    return kernel


def cosines(w, B, C, dt, *, l):
    """Zero-order hold in real arithmetic."""
    h = dt[..., None]
    return sines_and_cosines(C * (h * phi1(h * w)) * B, h * w, l=l)


def _all(op, forms, **more):
    return [Honest(op.name, name, form, **more) for name, form in forms.items()]


ZOH, BILINEAR = DIAGONAL_KERNEL_ZOH_REAL, DIAGONAL_KERNEL_BILINEAR_REAL
MAPPED = {
    "in_double": _real(in_double(DIAGONAL_KERNEL_BILINEAR)),
    "wide_roots": _real(wide_roots),
    "by_parts": _real(by_parts),
    "pairs": _pairs(DIAGONAL_KERNEL_BILINEAR),
}
IMPLEMENTATIONS = [
    *_all(ZOH, {name: _real(form) for name, form in HELD.items()}),
    *_all(ZOH, {"pairs": _pairs(DIAGONAL_KERNEL_ZOH), "cosines": cosines}),
    *_all(ZOH, {"recurrence": _real(recurrence)}, only=quick),
    *_all(BILINEAR, MAPPED),
    *_all(BILINEAR, {"recurrence": _real(bilinear_recurrence)}, only=not_doubled),
]
