"""Honest gates: SciPy's functions, logarithms of σ, exponentials of softplus, single entries."""

import numpy as np
from scipy.special import expit, log_expit

from honest import Honest
from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each
from refssm.linear_attention import GATED_DELTA_GATES, KIMI_GATES, KIMI_GATES_BOUNDED


def _every(log_g, beta):
    """Both outputs for all leading axes."""
    log_g, beta = np.broadcast_arrays(log_g, beta)
    return log_g.copy(), beta.copy()


def _added(x):
    """softplus by a sum of exponentials."""
    return np.logaddexp(x.dtype.type(0), x)


def _of_log(x):
    """softplus(x) = −log σ(−x)."""
    return -log_expit(-x)


def _of_exponential(x):
    """σ(x) = 1 − e^{−softplus(x)}."""
    return -np.expm1(-_added(x))


def _heads(softplus, sigmoid):
    """The gates of heads by these functions."""

    def program(a, b, A_log, dt_bias):
        return _every(-np.exp(A_log) * softplus(a + dt_bias), sigmoid(b))

    return program


def _heads_back(dlog_g, dbeta, a, b, A_log, dt_bias):
    """Slopes by exponentials of softplus."""
    rate, before = -np.exp(A_log), a + dt_bias
    through, of_rate = dlog_g * rate * _of_exponential(before), dlog_g * rate * _added(before)
    db = dbeta * _of_exponential(b) * _of_exponential(-b)
    return unbroadcast_each((through, db, of_rate, through), (a, b, A_log, dt_bias))


def _keys(softplus):
    """The gates of keys by this softplus."""
    return lambda a, A_log, dt_bias: -(np.exp(A_log)[..., None] * softplus(a + dt_bias))


def _keys_back(dlog_g, a, A_log, dt_bias):
    """Slopes by exponentials of softplus."""
    rate, before = -np.exp(A_log)[..., None], a + dt_bias
    through = dlog_g * rate * _of_exponential(before)
    of_rate = (dlog_g * rate * _added(before)).sum(-1)
    return unbroadcast_each((through, of_rate, through), (a, A_log, dt_bias))


def _bounded(sigmoid):
    """Gates between bounds by this σ."""

    def program(a, A_log, dt_bias, *, c=-5.0):
        slope = np.exp(A_log)[..., None]
        return slope.dtype.type(c) * sigmoid(slope * (a + dt_bias))

    return program


def _bounded_back(dlog_g, a, A_log, dt_bias, *, c=-5.0):
    """σ(z) σ(−z) = e^{−|z|}/(1 + e^{−|z|})²."""
    slope = np.exp(A_log)[..., None]
    z = slope * (a + dt_bias)
    e = np.exp(-np.abs(z))
    dz = dlog_g * slope.dtype.type(c) * e / (1 + e) ** 2
    return (
        unbroadcast(slope * dz, a),
        unbroadcast((z * dz).sum(-1), A_log),
        unbroadcast(slope * dz, dt_bias),
    )


def _wide(op):
    """In a wider type, rounded once."""

    def program(*args, **statics):
        kind = np.result_type(*args)
        wider = np.float64 if kind == np.float32 else np.longdouble
        results = op.reference(*(a.astype(wider) for a in args), **statics)
        if isinstance(results, tuple):
            return tuple(y.astype(kind) for y in results)
        return results.astype(kind)

    return program


HEADS, KEYS, BOUNDED = GATED_DELTA_GATES, KIMI_GATES, KIMI_GATES_BOUNDED
IMPLEMENTATIONS = [
    Honest(HEADS.name, "sum_of_exponentials", _heads(_added, expit), _heads_back),
    Honest(HEADS.name, "logarithm_of_sigma", _heads(_of_log, expit)),
    Honest(HEADS.name, "exponential_of_softplus", _heads(_added, _of_exponential)),
    Honest(HEADS.name, "wider", _wide(HEADS)),
    Honest(KEYS.name, "sum_of_exponentials", _keys(_added), _keys_back),
    Honest(KEYS.name, "logarithm_of_sigma", _keys(_of_log)),
    Honest(KEYS.name, "wider", _wide(KEYS)),
    Honest(BOUNDED.name, "of_scipy", _bounded(expit), _bounded_back),
    Honest(BOUNDED.name, "exponential_of_softplus", _bounded(_of_exponential)),
    Honest(BOUNDED.name, "wider", _wide(BOUNDED)),
]
