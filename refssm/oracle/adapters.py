"""Oracles for refssm.adapters: parametrisations, for nested lists of mpmath numbers."""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp


def _rate(magnitude):
    """Re A = −magnitude(Re θ), with the imaginary part of θ."""
    return lambda theta: mp.mpc(-magnitude(mp.re(theta)), mp.im(theta))


MAPS = {
    "log_dt": mp.exp,
    "neg_exp": _rate(mp.exp),
    "neg_softplus": _rate(lambda x: mp.log1p(mp.exp(x))),
    "linear_gate": mp.log,
    "base_2": lambda theta: theta * mp.log(2),
    "log_sigmoid": lambda theta: -mp.log1p(mp.exp(-theta)),
    "sigmoid": lambda theta: 1 / (1 + mp.exp(-theta)),
}


def _normalised(row, eps):
    """The row over √(Σ θ² + ε)."""
    size = mp.sqrt(mp.fsum(x * x for x in row) + mp.mpf(eps))
    return [x / size for x in row]


def _scaled(row, by):
    """The row by a factor; over √n if that is 0."""
    return [x * mp.mpf(by) if by else x / mp.sqrt(len(row)) for x in row]


ROWS = {
    "scaled": _scaled,
    "normalised": _normalised,
    "oldest_first": lambda row, eps: row[::-1],
}


def of_one(oracle, adapter, place):
    """The oracle with argument number `place` by its parameter."""

    def adapted(*arrays, **statics):
        changed = _changed(adapter, arrays[place])
        return oracle(*arrays[:place], changed, *arrays[place + 1 :], **statics)

    return adapted


def of_pairs(oracle, axes):
    """The oracle of pairs: arguments with an axis of modes, and their conjugates after them."""

    def adapted(*arrays, **statics):
        both = [_doubled(x, *axes[i]) if i in axes else x for i, x in enumerate(arrays)]
        y = oracle(*both, **statics)
        return tuple(_each(mp.re, part) for part in y) if isinstance(y, tuple) else _each(mp.re, y)

    return adapted


def of_state(oracle, place, outputs):
    """The oracle whose argument number `place`, and outputs, are transposed."""

    def adapted(*arrays, **statics):
        arrays = [_transposed(x) if i == place else x for i, x in enumerate(arrays)]
        y = oracle(*arrays, **statics)
        return tuple(_transposed(x) if j in outputs else x for j, x in enumerate(y))

    return adapted


def of_steps(oracle):
    """The oracle of dt x and dt A, from x, dt and A; of one step if dt is a number."""

    def adapted(x, dt, A, *arrays, **statics):
        if not isinstance(dt, list):
            return oracle([dt * v for v in x], dt * A, *arrays, **statics)
        inputs = [[d * v for v in row] for d, row in zip(dt, x, strict=True)]
        return oracle(inputs, [d * A for d in dt], *arrays, **statics)

    return adapted


def _changed(adapter, x):
    """The argument that belongs to the parameter, entry by entry or row by row."""
    if adapter.name in MAPS:
        return _each(MAPS[adapter.name], x)
    inner = bool(x) and isinstance(x[0], list)
    return [_changed(adapter, y) for y in x] if inner else ROWS[adapter.name](x, adapter.number)


def _each(change, x):
    """A function of every number in nested lists."""
    return [_each(change, y) for y in x] if isinstance(x, list) else change(x)


def _transposed(x):
    """Nested lists with the two innermost levels exchanged."""
    if x and isinstance(x[0], list) and x[0] and isinstance(x[0][0], list):
        return [_transposed(y) for y in x]
    return [*map(list, zip(*x, strict=True))]


def _doubled(x, axis, blocks):
    """The list at a depth, with the conjugates of each of its blocks behind it."""
    if axis:
        return [_doubled(y, axis - 1, blocks) for y in x]
    starts = range(0, len(x), max(1, len(x) // blocks))
    parts = [x[i : i + len(x) // blocks] for i in starts]
    return [y for part in parts for y in (*part, *_each(mp.conj, part))]
