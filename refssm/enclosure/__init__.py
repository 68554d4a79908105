"""Rigorous enclosures in ball arithmetic: nested lists of arb and acb balls, definitions only.

The second oracle, beside mpmath's, and computed another way wherever a definition allows one: two
that share a mistake certify nothing. Its modules import nothing of refssm but each other. `ends` is
the door: core-shape enclosures are lifted over batch axes, each ball is told by its exact ends.
"""

import numpy as np
from flint import acb, arb, ctx


def ends(op, arrays, statics, bits):
    """The balls of every output of `op`, worked out with `bits` bits: a list for each output.

    A list holds, entry by entry in the order of memory, the parts (real; or real and imaginary) of
    which each is a pair of ends; an end is (m, e) for m·2^e, and None where there is no bound.
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
    """The entries of every output, at every index of the broadcast batch in turn."""
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
    """Nested lists of numbers as nested lists of exact balls; flags as they are."""
    if isinstance(x, list):
        return [_exact(y) for y in x]
    return x if isinstance(x, bool) else acb(x) if isinstance(x, complex) else arb(x)


def _flat(x):
    return [z for y in x for z in _flat(y)] if isinstance(x, list) else [x]


def _parts(x, kind):
    """The ends of one ball: of its real part, and in a complex output of its imaginary part."""
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
