"""Arbitrary-precision ground truth: nested lists of mpmath numbers in and out, definitions only.

Oracle modules import nothing from refssm, so an oracle cannot share a bug with the code it judges.
`evaluate` and `derivative` are the entry points. They run core-shape oracles over the batch axes
and round once, to NumPy's widest type, so this rounding is below the errors to judge.
"""

import numpy as np
from mpmath import mp

VALUE_DIGITS = 50
DERIVATIVE_DIGITS = 130  # step 1e-60: truncation 1e-120, cancellation 1e-70, both relative
STEP = "1e-60"  # mLSTM changes its branch where |s·q| is e^−85, which a step of 1e-30 passes
RESOLUTION = 1e-60  # relative error of such a difference, with ten digits to spare


def evaluate(op, *arrays, **statics):
    """Outputs of `op` at `arrays`, rounded to long double: a tuple of arrays."""
    with mp.workdps(VALUE_DIGITS):
        return _over_batch(op, lambda *core: _outputs(op, core, statics), arrays, statics)


def exact(op, arrays, statics, digits):
    """The outputs with `digits` digits, unrounded: a list of entries per output, parts per entry.

    A part (real or imaginary) is (m, e) for m·2^e, or None if it is not finite; an entry of a real
    output has one part.
    """
    with mp.workdps(digits):
        kinds = [dtype.kind for dtype in op.output_types(*arrays)]
        slices = _slices(op, lambda *core: _outputs(op, core, statics), arrays)
        return [
            [_parts(y, kind) for core in slices for y in _flat(core[j])]
            for j, kind in enumerate(kinds)
        ]


def _flat(x):
    return [z for y in x for z in _flat(y)] if isinstance(x, list) else [x]


def _parts(y, kind):
    """The real part, and for a complex output the imaginary part, as integers."""
    y = mp.mpc(y)
    return [_integers(part) for part in ([y.real, y.imag] if kind == "c" else [y.real])]


def _integers(x):
    """(m, e) of a finite number."""
    sign, m, e, _ = x._mpf_
    return ((-int(m) if sign else int(m)), int(e)) if mp.isfinite(x) else None


def derivative(op, arrays, tangents, **statics):
    """`J t`, the derivative of the outputs of `op` at `arrays` along `tangents`.

    Central differences of the oracle, argument by argument; each step is 1e-60 of the
    argument's largest entry. An angle that passes a whole turn moves by its way on the circle.
    """
    count = len(arrays)

    def core(*slices):
        x, t = slices[:count], slices[count:]
        parts = [_partial(op, x, i, t[i], statics) for i in range(count) if _scale(t[i])]
        if not parts:  # no direction at all
            parts = [[_difference(y, y, 1) for y in _outputs(op, x, statics)]]
        return [_total([part[j] for part in parts]) for j in range(len(op.outputs))]

    with mp.workdps(DERIVATIVE_DIGITS):
        return _over_batch(op, core, (*arrays, *tangents), statics)


def gradient(op, cotangents, arrays, **statics):
    """The gradients of Re⟨dy, y⟩, from `derivative` along each entry of each argument.

    g = ∂/∂Re + i ∂/∂Im, summed over the axes along which an argument broadcasts. It takes as many
    derivatives as the arguments have entries, so it is for small cases.
    """
    gradients = []
    for i, (name, dims) in enumerate(zip(op.inputs, op.input_dims, strict=True)):
        if name in op.discrete:
            continue
        a, parts = arrays[i], (1, 1j) if np.iscomplexobj(arrays[i]) else (1,)
        g = np.zeros(a.shape, np.result_type(a, np.longdouble))
        for k in np.ndindex(a.shape[a.ndim - len(dims) :]):
            tangents = [np.zeros(x.shape) for x in arrays]
            for part in parts:
                tangents[i] = np.zeros_like(a)
                tangents[i][(..., *k)] = part
                pushed = derivative(op, arrays, tangents, **statics)
                pairs = zip(cotangents, pushed, op.output_dims, strict=True)
                slopes = sum(_inner(dy, y, len(core)) for dy, y, core in pairs)
                g[(..., *k)] += part * _folded(slopes, a.shape[: a.ndim - len(dims)])
        gradients.append(g)
    return tuple(gradients)


def _inner(dy, y, rank):
    """Re⟨dy, y⟩ of each member of the batch."""
    return np.sum((np.conj(dy) * y).real, axis=tuple(range(-rank, 0)), dtype=np.longdouble)


def _folded(slopes, batch):
    """Summed over the leading axes that an argument lacks or has with length 1."""
    slopes = slopes.sum(tuple(range(slopes.ndim - len(batch))))
    alone = tuple(i for i, n in enumerate(batch) if n == 1 and slopes.shape[i] > 1)
    return slopes.sum(alone, keepdims=True)


def _partial(op, x, i, t, statics):
    """The derivative of every output along one argument's tangent that is not 0."""
    h = mp.mpf(STEP) * (_scale(x[i]) or 1)
    ahead, behind = (
        _outputs(op, [*x[:i], _shifted(x[i], s, t), *x[i + 1 :]], statics) for s in (h, -h)
    )
    angle = op.contract.turns
    turned = [angle and name.removesuffix("_next") == angle for name in op.outputs]
    pairs = zip(ahead, behind, turned, strict=True)
    return [_difference(p, q, 2 * h, _on_circle if is_angle else _same) for p, q, is_angle in pairs]


def _outputs(op, core, statics):
    """The outputs at one core slice, always a list with one entry per output."""
    y = op.implementation("oracle")(*core, **statics)
    return list(y) if len(op.outputs) > 1 else [y]


def _over_batch(op, function, arrays, statics):
    """The outputs at every index of the broadcast batch, rounded once."""
    slices = _slices(op, function, arrays)
    primals = arrays[: len(op.inputs)]
    described = zip(op.output_shapes(*primals, **statics), op.output_types(*primals), strict=True)
    rounded = {"f": _rounded_real, "c": _rounded_complex}
    return tuple(
        rounded[dtype.kind]([core[j] for core in slices]).reshape(shape)
        for j, (shape, dtype) in enumerate(described)
    )


def _slices(op, function, arrays):
    """Apply a core-shape function at every index of the broadcast batch."""
    ranks = [len(dims) for dims in op.input_dims] * (len(arrays) // max(1, len(op.inputs)))
    leading = [a.shape[: a.ndim - r] for a, r in zip(arrays, ranks, strict=True)]
    batch = np.broadcast_shapes(*leading)
    full = [
        np.broadcast_to(a, batch + a.shape[a.ndim - r :])
        for a, r in zip(arrays, ranks, strict=True)
    ]
    return [function(*(_exact(a[i].tolist()) for a in full)) for i in np.ndindex(*batch)]


def _exact(x):
    """Nested lists of floats as nested lists of mpmath numbers."""
    return [_exact(y) for y in x] if isinstance(x, list) else mp.mpmathify(x)


def _rounded(x):
    """Nested lists of mpmath numbers as an array: the nearest double plus the rounded remainder."""
    head = np.array(_each(float, x), dtype=np.longdouble)
    return head + np.array(_each(_rest, x), dtype=np.longdouble)


def _rest(y):
    """The difference to the nearest double; 0 if that is infinite."""
    return float(y - float(y)) if mp.isfinite(float(y)) else 0.0


def _rounded_real(x):
    """`_rounded` of the real parts; the imaginary parts are 0 for real outputs."""
    return _rounded(_each(lambda y: y.real, x))


def _rounded_complex(x):
    """`_rounded` of real and imaginary parts."""
    return _rounded_real(x) + 1j * _rounded(_each(lambda y: y.imag, x))


def _each(function, x):
    """Apply a function to each number in nested lists."""
    return [_each(function, y) for y in x] if isinstance(x, list) else function(x)


def _scale(x):
    """The largest modulus in a nested list."""
    if isinstance(x, list):
        return max(map(_scale, x), default=mp.mpf(0))
    return abs(x)


def _shifted(x, h, t):
    """x + h t, entry by entry."""
    if isinstance(x, list):
        return [_shifted(y, h, s) for y, s in zip(x, t, strict=True)]
    return x + h * t


def _same(x):
    """A difference on a line."""
    return x


def _on_circle(x):
    """Less whole turns, from −π to π."""
    return x - 2 * mp.pi * mp.nint(x / (2 * mp.pi))


def _difference(p, q, h, way=_same):
    """(p − q) / h, entry by entry; `way` of p − q."""
    if isinstance(p, list):
        return [_difference(y, z, h, way) for y, z in zip(p, q, strict=True)]
    return way(p - q) / h


def _total(parts):
    """The sum of nested lists, entry by entry."""
    if isinstance(parts[0], list):
        return [_total(entries) for entries in zip(*parts, strict=True)]
    return mp.fsum(parts)
