"""Rigorous enclosures in ball arithmetic: nested lists of arb and acb balls, definitions only.

This is the second oracle, next to mpmath's. It computes in another way if a definition allows one,
because two oracles with the same mistake prove nothing. Its modules import from refssm only each
other. `ends` is the entry point: it runs a core-shape enclosure over the batch axes and returns the
exact ends of each ball.
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
    """Nested lists of numbers as nested lists of exact balls; booleans stay."""
    if isinstance(x, list):
        return [_exact(y) for y in x]
    return x if isinstance(x, bool) else acb(x) if isinstance(x, complex) else arb(x)


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
