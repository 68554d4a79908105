"""Building blocks of the planted bugs of scans; a right scan is right(a, b, x0)."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast
from refssm.conformance.planted.arithmetic import float16
from refssm.conformance.planted.planting import Planting


def planting(op, *tables, adapt=None, usual=True) -> Planting:
    """The usual bugs, and for each check the rows of the tables, adapted by `adapt`."""
    p = Planting(op, "float32")
    if usual:
        p.usual()
    p.adapt = adapt
    for table in tables:
        for check, rows in table.items():
            p.plant(*rows, by=check)
    return p


def from_rest(wrong):
    """Turn a program or VJP for a scan from x0 into one for a scan from zero."""

    def rested(right, *args):
        b = args[-1]
        x0 = np.zeros((*b.shape[:-2], b.shape[-1]), b.dtype)
        y = wrong(lambda *others: right(*others[:-1]), *args, x0)
        return y[:2] if isinstance(y, tuple) else y

    return rested


def stepwise(step, a, b, x0):
    """x_k = step(k, a_k, x_{k-1}, b_k), stored for every k."""
    a, b, start = np.broadcast_arrays(a, b, x0[..., None, :])
    x = np.empty(b.shape, np.result_type(a, b, x0))
    state = start[..., 0, :].astype(x.dtype) if b.shape[-2] else x0
    for k in range(b.shape[-2]):
        x[..., k, :] = state = step(k, a[..., k, :], state, b[..., k, :])
    return x


def scan(a, b, x0):
    """The right scan, for bugs around it."""
    return stepwise(lambda k, a_k, x, b_k: a_k * x + b_k, a, b, x0)


def by_step(step):
    """A wrong scan of (right, a, b, x0) that repeats x_k = step(k, a_k, x_{k-1}, b_k)."""
    return lambda right, a, b, x0: stepwise(step, a, b, x0)


def decay_at(steps, decay=0):
    """Another decay at the steps k of l for which `steps(k, l)` is true; 0 restarts from zero."""

    def changed(right, a, b, x0):
        k = np.arange(b.shape[-2])
        return right(np.where(steps(k, len(k))[:, None], a.dtype.type(decay), a), b, x0)

    return changed


def carry_lost(size):
    """Every chunk of `size` steps except the first starts from zero."""
    return decay_at(lambda k, l: (k > 0) & (k % size == 0))


def before(x, x0):
    """x_{k-1} for every x_k."""
    start = np.broadcast_to(x0[..., None, :], x[..., :1, :].shape)
    return np.concatenate([start, x[..., :-1, :]], axis=-2)


def exclusive(right, a, b, x0):
    """x_{k-1} instead of x_k."""
    return before(right(a, b, x0), x0)


def same(x):
    """No change, where a conjugate or a rounding belongs."""
    return x


def adjoint(dx, carry, forget=0, cast=same):
    """g_k = dx_k + carry(k, g_{k+1}) in reversed time, from zero where chunks of `forget` end."""
    last, g = dx.shape[-2] - 1, dx.copy()
    for k in range(last - 1, -1, -1):
        if not forget or (k + 1) % forget:
            g[..., k, :] += cast(carry(k, g[..., k + 1, :]))
    return g


def in_tree(combined, maps, x):
    """Hillis and Steele's scan, in place: combined(late_map, late_x, early_map, early_x)."""
    maps, along, step = np.moveaxis(maps, x.ndim - 2, 0), np.moveaxis(x, -2, 0), 1
    while step < len(along):
        late, early = (maps[step:], along[step:]), (maps[:-step], along[:-step])
        maps[step:], along[step:] = combined(*(y.copy() for y in (*late, *early)))
        step *= 2
    return x


def start_undecayed(right, dx, a, b, x0):
    """dx0 as if x0 were added to the first input without its decay."""
    da, db, _ = right(dx, a, b, x0)
    return da, db, unbroadcast(db[..., 0, :], x0)


def start_ignored(right, dx, a, b, x0):
    """da of a scan from zero."""
    return right(dx, a, b, 0 * x0)[0], *right(dx, a, b, x0)[1:]


def zero(x):
    """Zeros instead of finite numbers."""
    return 0 * x


def late(b):
    """b_{k-1} for b_k."""
    return np.concatenate([0 * b[..., :1, :], b[..., :-1, :]], axis=-2)


def masked_by_product(b):
    """The future multiplied by 0, which keeps NaN."""
    return b + 0 * b.sum(axis=-2, keepdims=True)


def of_first_member(a):
    """The first member's matrix or decays for the whole batch."""
    return np.broadcast_to(a[:1], a.shape) if a.ndim > 2 else a


def clipped(a):
    """a with |a| at most 1 − 1e-4."""
    size = np.abs(a)
    limit = np.where(size > 1 - 1e-4, (1 - 1e-4) / np.where(size == 0, 1, size), 1)
    return (a * limit).astype(a.dtype)


def zero_if_alone(x0):
    """Zero if the batch has one member."""
    return x0 * (x0.shape[0] != 1) if x0.ndim > 1 else x0


START = [
    ("start_dropped", "x0 taken as zero", {"x0": zero}),
    ("start_ignored_in_batch_of_one", "x0 taken as zero where the batch is 1",
     {"x0": zero_if_alone}),
    ("start_in_half", "x0 rounded to float16", {"x0": float16}),
]  # fmt: skip
