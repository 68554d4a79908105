"""Mirrors of refssm.linear_attention.gates in plain array code: elementwise formulas."""

from refssm.linear_attention.gates import GATED_DELTA_GATES, KIMI_GATES, KIMI_GATES_BOUNDED
from refssm_gpu._algebra.parts import along, batch_of
from refssm_gpu._launching.arrays import Array, namespace, unbroadcast
from refssm_gpu._launching.checked import mirror


@mirror(GATED_DELTA_GATES)
def gated_delta_gates(a, b, A_log, dt_bias):
    both = _decays(a, A_log, dt_bias), _open(b)
    batch = batch_of(both, [1, 1])
    return tuple(along(x, batch, 1) for x in both)


@mirror(GATED_DELTA_GATES)
def gated_delta_gates_vjp(dlog_g, dbeta, a, b, A_log, dt_bias):
    through, dA_log = _through_decays(dlog_g, a, A_log, dt_bias)
    db = dbeta * _open(b) * _open(-b)
    gradients = through, db, dA_log, +through
    return _unbroadcast_each(gradients, (a, b, A_log, dt_bias))


@mirror(KIMI_GATES)
def kimi_gates(a, A_log, dt_bias):
    return _decays(a, A_log[..., None], dt_bias)


@mirror(KIMI_GATES)
def kimi_gates_vjp(dlog_g, a, A_log, dt_bias):
    through, of_rate = _through_decays(dlog_g, a, A_log[..., None], dt_bias)
    gradients = through, namespace(a).sum(of_rate, axis=-1), +through
    return _unbroadcast_each(gradients, (a, A_log, dt_bias))


@mirror(KIMI_GATES_BOUNDED)
def kimi_gates_bounded(a, A_log, dt_bias, *, c=-5.0):
    return c * _open(namespace(a).exp(A_log)[..., None] * (a + dt_bias))


@mirror(KIMI_GATES_BOUNDED)
def kimi_gates_bounded_vjp(dlog_g, a, A_log, dt_bias, *, c=-5.0):
    slope = namespace(a).exp(A_log)[..., None]
    z = slope * (a + dt_bias)
    dz = c * (dlog_g * (_open(z) * _open(-z)))
    gradients = slope * dz, namespace(a).sum(z * dz, axis=-1), slope * dz
    return _unbroadcast_each(gradients, (a, A_log, dt_bias))


def _open(x: Array) -> Array:
    """σ(x), computed from e^{−|x|}."""
    xp = namespace(x)
    e = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1.0, e) / (1 + e)


def _softplus(x: Array) -> Array:
    """max(x, 0) + log(1 + e^{−|x|}); NaN stays."""
    xp = namespace(x)
    return xp.where(x < 0, 0.0, x) + xp.log1p(xp.exp(-xp.abs(x)))


def _decays(a: Array, A_log: Array, dt_bias: Array) -> Array:
    """−e^{A_log} softplus(a + dt_bias)."""
    return -namespace(a).exp(A_log) * _softplus(a + dt_bias)


def _through_decays(dlog_g: Array, a: Array, A_log: Array, dt_bias: Array) -> tuple[Array, Array]:
    """The cotangents of a + dt_bias and of A_log, before the sums over broadcast axes."""
    rate, before = -namespace(a).exp(A_log), a + dt_bias
    return dlog_g * (rate * _open(before)), dlog_g * (rate * _softplus(before))


def _unbroadcast_each(gradients, arguments) -> tuple[Array, ...]:
    return tuple(unbroadcast(g, x) for g, x in zip(gradients, arguments, strict=True))
