"""Enclosures for refssm.adapters: parametrisations, for nested lists of balls."""

from flint import acb, arb

from refssm.enclosure.algebra import conj


def _rate(magnitude):
    """Re A = −magnitude(Re θ), with the imaginary part of θ; a real ball stays real."""

    def rate(theta):
        if isinstance(theta, arb):
            return -magnitude(theta)
        return acb(-magnitude(theta.real), theta.imag)

    return rate


MAPS = {
    "log_dt": lambda theta: theta.exp(),
    "neg_exp": _rate(lambda x: x.exp()),
    "neg_softplus": _rate(lambda x: x.exp().log1p()),
    "linear_gate": lambda theta: theta.log(),
    "base_2": lambda theta: theta * arb.const_log2(),
    "log_sigmoid": lambda theta: -(-theta).exp().log1p(),
    "sigmoid": lambda theta: 1 / (1 + (-theta).exp()),
}


def _normalised(row, eps):
    """The row over √(Σ θ² + ε)."""
    size = (sum((x * x for x in row), arb(0)) + eps).sqrt()
    return [x / size for x in row]


def _scaled(row, by):
    """The row by a factor; over √n if that is 0."""
    return [x * arb(by) if by else x / arb(len(row)).sqrt() for x in row]


ROWS = {
    "scaled": _scaled,
    "normalised": _normalised,
    "oldest_first": lambda row, eps: row[::-1],
}


def of_one(enclosure, adapter, place):
    """The enclosure with argument number `place` by its parameter."""

    def adapted(*arrays, **statics):
        changed = _changed(adapter, arrays[place])
        return enclosure(*arrays[:place], changed, *arrays[place + 1 :], **statics)

    return adapted


def of_pairs(enclosure, axes):
    """The enclosure of pairs: arguments with an axis of modes, and their conjugates after them."""

    def adapted(*arrays, **statics):
        both = [_doubled(x, *axes[i]) if i in axes else x for i, x in enumerate(arrays)]
        y = enclosure(*both, **statics)
        return tuple(_each(_real, part) for part in y) if isinstance(y, tuple) else _each(_real, y)

    return adapted


def of_state(enclosure, place, outputs):
    """The enclosure whose argument number `place`, and outputs, are transposed."""

    def adapted(*arrays, **statics):
        arrays = [_transposed(x) if i == place else x for i, x in enumerate(arrays)]
        y = enclosure(*arrays, **statics)
        return tuple(_transposed(x) if j in outputs else x for j, x in enumerate(y))

    return adapted


def of_steps(enclosure):
    """The enclosure of dt x and dt A, from x, dt and A; of one step if dt is a ball."""

    def adapted(x, dt, A, *arrays, **statics):
        if not isinstance(dt, list):
            return enclosure([v * dt for v in x], A * dt, *arrays, **statics)
        inputs = [[v * d for v in row] for row, d in zip(x, dt, strict=True)]
        return enclosure(inputs, [A * d for d in dt], *arrays, **statics)

    return adapted


def _real(x):
    """The real part of a ball or of an exact number."""
    return acb(x).real


def _changed(adapter, x):
    """The argument that belongs to the parameter, entry by entry or row by row."""
    if adapter.name in MAPS:
        return _each(MAPS[adapter.name], x)
    inner = bool(x) and isinstance(x[0], list)
    return [_changed(adapter, y) for y in x] if inner else ROWS[adapter.name](x, adapter.number)


def _each(change, x):
    """A function of every ball in nested lists."""
    return [_each(change, y) for y in x] if isinstance(x, list) else change(x)


def _transposed(x):
    """Nested lists with the two innermost levels exchanged."""
    if x and isinstance(x[0], list) and x[0] and isinstance(x[0][0], list):
        return [_transposed(y) for y in x]
    return [*map(list, zip(*x, strict=True))]


def _doubled(x, axis, blocks):
    """The list at a depth, each of its blocks followed by its conjugates."""
    if axis:
        return [_doubled(y, axis - 1, blocks) for y in x]
    size = len(x) // blocks
    parts = [x[b * size : (b + 1) * size] for b in range(blocks)]
    return [y for part in parts for y in part + _each(conj, part)]
