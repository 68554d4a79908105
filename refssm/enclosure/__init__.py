"""Rigorous enclosures in ball arithmetic: nested lists of arb and acb balls, definitions only.

This is the second oracle, next to mpmath's. It computes in another way if a definition allows one,
because two oracles with the same mistake prove nothing. Its modules import from refssm only each
other. `ends` and `middles` are the entry points: they run a core-shape enclosure over the batch
axes, and return the exact ends of each ball, or its midpoint and radius in NumPy's types.
"""

import numpy as np
from flint import acb, arb, ctx


def ends(op, arrays, statics, bits):
    """The balls of every output of `op`, computed with `bits` bits: one list per output.

    A list has, entry by entry in memory order, the parts (real; or real and imaginary). Each part
    is a pair of ends. An end is (m, e) for m·2^e, or None if there is no bound.
    """
    before, ctx.prec = ctx.prec, bits
    try:
        found = _over_batch(op, arrays, statics)
        types = op.output_types(*arrays)
        return [
            [_parts(x, dtype.kind) for x in entries]
            for entries, dtype in zip(found, types, strict=True)
        ]
    finally:
        ctx.prec = before


def middles(op, arrays, statics, bits):
    """Per output, in memory order: the midpoints of the balls as long double, and their radii.

    A radius is infinite or NaN if the ball has no bound, or if its midpoint is no double.
    """
    before, ctx.prec = ctx.prec, bits
    try:
        found = _over_batch(op, arrays, statics)
        types = op.output_types(*arrays)
        with np.errstate(all="ignore"):
            return [_rounded(x, dtype.kind) for x, dtype in zip(found, types, strict=True)]
    finally:
        ctx.prec = before


def _rounded(entries, kind):
    """Midpoints, each the sum of two doubles, and radii; for real outputs of the real parts."""
    parts = [[acb(x).real for x in entries]]
    if kind == "c":
        parts.append([acb(x).imag for x in entries])
    heads = [np.array([float(x.mid()) for x in part]) for part in parts]
    tails = [
        np.array([float(x.mid() - h) for x, h in zip(part, head.tolist(), strict=True)])
        for part, head in zip(parts, heads, strict=True)
    ]
    radii = [np.array([float(x.rad()) for x in part]) for part in parts]
    radius = np.hypot(*radii) if kind == "c" else radii[0]
    real, *imaginary = (h.astype(np.longdouble) + t for h, t in zip(heads, tails, strict=True))
    beyond = sum(0 * h for h in heads)  # NaN where a midpoint is larger than every double
    return real + 1j * imaginary[0] if imaginary else real, radius + beyond


def _over_batch(op, arrays, statics):
    """The entries of every output, for each index of the broadcast batch."""
    ranks = [len(dims) for dims in op.input_dims]
    leading = [a.shape[: a.ndim - r] for a, r in zip(arrays, ranks, strict=True)]
    batch = np.broadcast_shapes(*leading)
    full = [
        np.broadcast_to(a, batch + a.shape[a.ndim - r :])
        for a, r in zip(arrays, ranks, strict=True)
    ]
    function, found = op.implementation("enclosure"), [[] for _ in op.outputs]
    for i in np.ndindex(*batch):
        y = function(*(_exact(a[i].tolist()) for a in full), **statics)
        for entries, part in zip(found, y if len(op.outputs) > 1 else [y], strict=True):
            entries += _flat(part)
    return found


def _exact(x):
    """Nested lists of numbers as nested lists of exact balls; flags and offsets stay."""
    if isinstance(x, list):
        return [_exact(y) for y in x]
    return x if isinstance(x, int) else acb(x) if isinstance(x, complex) else arb(x)


def _flat(x):
    return [z for y in x for z in _flat(y)] if isinstance(x, list) else [x]


def _parts(x, kind):
    """The ends of one ball: real part, and for a complex output also the imaginary part."""
    ball = acb(x)
    return [_ends(ball.real)] + ([_ends(ball.imag)] if kind == "c" else [])


def _ends(x):
    """The exact ends of a real ball."""
    if not x.is_finite():
        return None, None
    return _integers(x.lower()), _integers(x.upper())


def _integers(x):
    """(m, e) of an exact ball."""
    m, e = x.man_exp()
    return int(m), int(e)
