"""Honest gated units: gates by other formulas, scans by other methods, and their adjoint."""

import numpy as np

from refssm.activations import sigmoid
from refssm.conformance.planted.gated_units.forms import before, turned_back


def _log1p_of_exponential(x):
    """softplus(x) by SciPy's way: log(e^0 + e^x)."""
    return np.logaddexp(x.dtype.type(0), x)


def factored(s):
    """√(1 − a) √(1 + a), with 1 − a by expm1; r times −8 first."""
    log_a = (-8 * s.r) * _log1p_of_exponential(s.a_param)
    a = np.exp(log_a)
    return a, _weighed(s, np.sqrt(-np.expm1(log_a)) * np.sqrt(1 + a))


def by_tangent(s):
    """1 − a² = 2t/(1 + t) with t = tanh(−log a), a = √((1 − t)/(1 + t)) by its exponential."""
    log_a = -8 * (s.r * _log1p_of_exponential(s.a_param))
    t = np.tanh(-log_a)
    return np.exp(log_a), _weighed(s, np.sqrt(2 * t / (1 + t)))


def in_base_two(s):
    """a as a power of two."""
    rate = _log1p_of_exponential(s.a_param) * s.r.dtype.type(-8 / np.log(2))
    log_2_a = rate * s.r
    return np.exp2(log_2_a), _weighed(
        s, np.sqrt(-np.expm1(log_2_a * s.r.dtype.type(2 * np.log(2))))
    )


def _weighed(s, root):
    """The root, or 1 where a sequence begins so, times i u, with i first."""
    return np.where((s.rest & s.unscaled)[..., None], 1, root) * s.u * s.i


def by_exponentials(s):
    """z = 1/(1 + e^{−k}), 1 − z = 1/(1 + e^k), g by its branches."""
    z, rest = 1 / (1 + np.exp(-s.k)), 1 / (1 + np.exp(s.k))
    return rest, np.where(s.h >= 0, s.h + 0.5, 1 / (1 + np.exp(-s.h))).astype(s.h.dtype) * z


def by_softplus(s):
    """log(1 − z) = −softplus(k), log z = −softplus(−k), g by max and σ(min)."""
    z, rest = np.exp(-_log1p_of_exponential(-s.k)), np.exp(-_log1p_of_exponential(s.k))
    return rest, z * (np.maximum(s.h, 0) + sigmoid(np.minimum(s.h, 0)))


def by_tangents(s):
    """σ(k) = e^k/(1 + e^k) where k < 0, else 1/(1 + e^{−k}); σ(−k) with the same exponential."""
    e = np.exp(-np.abs(s.k))
    large, small = 1 / (1 + e), e / (1 + e)
    g = np.where(s.h < 0, np.exp(np.minimum(s.h, 0)) / (1 + np.exp(np.minimum(s.h, 0))), s.h + 0.5)
    return np.where(s.k < 0, large, small), np.where(s.k < 0, small, large) * g.astype(s.h.dtype)


def _full(a, b, s):
    """Decays and inputs with all axes, and what a sequence begins with added to its first input."""
    shape = np.broadcast_shapes(a.shape, b.shape, s.start.shape, (*s.rest.shape, 1))
    a, b, start = (np.broadcast_to(x, shape) for x in (a, b, s.start))
    begins = np.broadcast_to(s.first[..., None], shape)
    rest = np.broadcast_to(s.rest[..., None], shape)
    b = np.where(begins & ~rest, b + a * start, b)
    return a, b.astype(np.result_type(a, b)), begins


def by_steps(a, b, s):
    """One step after the other, the operands in the other order."""
    a, b, begins = _full(a, b, s)
    x, state = np.empty_like(b), np.zeros_like(b[..., :1, :].sum(-2))
    for t in range(b.shape[-2]):
        carried = np.where(begins[..., t, :], 0, state * a[..., t, :])
        x[..., t, :] = state = b[..., t, :] + carried
    return x


def doubled(a, b, s):
    """Hillis and Steele's scan of all steps."""
    return _from_rest(*_full(a, b, s))


def _from_rest(a, x, ended):
    """Spans of twice as many steps each time; one with a beginning in it ignores all before it."""
    a, x, ended, step = a.copy(), x.copy(), ended.copy(), 1
    while step < x.shape[-2]:
        early, late = (..., slice(None, -step), slice(None)), (..., slice(step, None), slice(None))
        x[late] = np.where(ended[late], 0, a[late] * x[early]) + x[late]
        a[late], ended[late] = a[late] * a[early], ended[late] | ended[early]
        step *= 2
    return x


def in_chunks(size):
    """Chunks from rest, then the carry times products of decays up to the next beginning."""

    def scan(a, b, s):
        a, b, begins = _full(a, b, s)
        x, carry = np.empty_like(b), np.zeros_like(b[..., :1, :])
        for start in range(0, b.shape[-2], size):
            w = (..., slice(start, start + size), slice(None))
            own, decay = _from_rest(a[w], b[w], begins[w]), np.cumprod(a[w], axis=-2)
            begun = np.logical_or.accumulate(begins[w], axis=-2)  # 0·NaN would be NaN
            x[w] = own + np.where(begun, 0, decay * carry)
            carry = x[w][..., -1:, :]
        return x

    return scan


def as_matrix(a, b, s):
    """x = L b; each row of products of decays comes from the row above."""
    a, b, begins = _full(a, b, s)
    x, l = np.empty_like(b), b.shape[-2]
    row = np.zeros((*b.shape[:-2], l, b.shape[-1]), b.dtype)
    own = np.zeros(row.shape, bool)  # of the sequence of this step
    # NaN and infinity stay though a product of decays underflows
    least = np.where(np.isfinite(b), 0, np.finfo(b.dtype).tiny)
    for t in range(l):
        row = row * a[..., t : t + 1, :]
        own = own & ~begins[..., t : t + 1, :]
        row[..., t, :], own[..., t, :] = 1, True
        past = (..., slice(0, t + 1), slice(None))
        weights = np.maximum(row[past], least[past])
        x[..., t, :] = np.where(own[past], weights * b[past], 0).sum(-2)
    return x


def in_double(scan):
    """The scan in double precision, rounded once."""

    def wide(a, b, s):
        kind = np.result_type(a, b)
        doubles = (x.astype(np.float64) for x in (a, b))
        return scan(*doubles, s._replace(start=s.start.astype(np.float64))).astype(kind)

    return wide


def real_back(dx, s):
    """Gradients of RG-LRU from saved states; the root's slope as −a²/root, from a root by expm1."""
    a, _ = factored(s)
    log_a = -8 * (s.r * _log1p_of_exponential(s.a_param))
    unscaled = (s.rest & s.unscaled)[..., None]
    root = np.sqrt(-np.expm1(log_a) * (1 + a))
    b = np.where(unscaled, 1, root) * s.i * s.u
    x = by_steps(a, b, s)
    g = turned_back(dx, a, s)
    through_root = np.where(unscaled, 0, np.exp(2 * log_a) * (s.i * s.u) / root)
    dlog_a = g * (a * before(x, s)) - g * through_root
    root = np.where(unscaled, 1, root)
    found = {"u": g * root * s.i, "i": g * root * s.u}
    found["r"] = dlog_a * (-8 * _log1p_of_exponential(s.a_param))
    found["a_param"] = dlog_a * s.r * -8 / (1 + np.exp(-s.a_param))
    return found, a, g


def minimal_back(dx, s):
    """Gradients of minGRU from saved states; z(1 − z) (g(h) − x) as a difference of products."""
    rest, b = by_softplus(s)
    z = sigmoid(s.k)
    x = by_steps(rest, b, s)
    g = turned_back(dx, rest, s)
    slope = np.where(s.h >= 0, 1, sigmoid(s.h) / (1 + np.exp(np.minimum(s.h, 0))))
    return {"k": rest * b * g - z * (rest * before(x, s)) * g, "h": g * slope * z}, rest, g
