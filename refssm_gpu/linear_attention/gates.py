"""Mirrors of refssm.linear_attention.gates in plain array code: elementwise formulas."""

from refssm.linear_attention.gates import GATED_DELTA_GATES, KIMI_GATES, KIMI_GATES_BOUNDED
from refssm_gpu._algebra.activations import sigmoid, softplus
from refssm_gpu._algebra.parts import along, batch_of
from refssm_gpu._launching.arrays import Array, namespace, unbroadcast
from refssm_gpu._launching.checked import mirror


@mirror(GATED_DELTA_GATES)
def gated_delta_gates(a, b, A_log, dt_bias):
    both = _decays(a, A_log, dt_bias), sigmoid(b)
    batch = batch_of(both, [1, 1])
    return tuple(along(x, batch, 1) for x in both)


@mirror(GATED_DELTA_GATES)
def gated_delta_gates_vjp(dlog_g, dbeta, a, b, A_log, dt_bias):
    through, dA_log = _through_decays(dlog_g, a, A_log, dt_bias)
    db = dbeta * sigmoid(b) * sigmoid(-b)
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
    return c * sigmoid(namespace(a).exp(A_log)[..., None] * (a + dt_bias))


@mirror(KIMI_GATES_BOUNDED)
def kimi_gates_bounded_vjp(dlog_g, a, A_log, dt_bias, *, c=-5.0):
    slope = namespace(a).exp(A_log)[..., None]
    z = slope * (a + dt_bias)
    dz = c * (dlog_g * (sigmoid(z) * sigmoid(-z)))
    gradients = slope * dz, namespace(a).sum(z * dz, axis=-1), slope * dz
    return _unbroadcast_each(gradients, (a, A_log, dt_bias))


def _decays(a: Array, A_log: Array, dt_bias: Array) -> Array:
    """−e^{A_log} softplus(a + dt_bias)."""
    return -namespace(a).exp(A_log) * softplus(a + dt_bias)


def _through_decays(dlog_g: Array, a: Array, A_log: Array, dt_bias: Array) -> tuple[Array, Array]:
    """The cotangents of a + dt_bias and of A_log, before the sums over broadcast axes."""
    rate, before = -namespace(a).exp(A_log), a + dt_bias
    return dlog_g * (rate * sigmoid(before)), dlog_g * (rate * softplus(before))


def _unbroadcast_each(gradients, arguments) -> tuple[Array, ...]:
    return tuple(unbroadcast(g, x) for g, x in zip(gradients, arguments, strict=True))
