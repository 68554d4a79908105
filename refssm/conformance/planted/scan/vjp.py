"""Planted bugs in the gradients of linear scans."""

import numpy as np

from refssm.conformance.planted import Deviation
from refssm.conformance.planted.arithmetic import float16
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM


def _vjp(dx, a, b, x0, *, decay=np.conj, state=np.conj, shift=1, before=1, forget=0, cast=None):
    """The adjoint scan with its parts exchangeable: what multiplies what, and from where."""
    a, b, dx = np.broadcast_arrays(a, b, dx)
    g = np.empty(b.shape, np.result_type(dx, a, b, x0))
    length, g_k = b.shape[-2], 0
    x = LINEAR_SCAN_FROM.reference(a, b, x0)
    for k in range(length - 1, -1, -1):
        place = min(k + shift, length - 1)
        carried = decay(a[..., place, :]) * g_k if k + 1 < length else 0
        if forget and (k + 1) % forget == 0:
            carried = 0
        g_k = dx[..., k, :] + (cast(carried) if cast and k + 1 < length else carried)
        g[..., k, :] = g_k
    start = np.broadcast_to(x0[..., None, :], x[..., :1, :].shape)
    states = np.concatenate([start, x], axis=-2)
    states = states[..., 1:, :] if before == 0 else states[..., :-1, :]
    da, dx0 = state(states) * g, np.conj(a[..., 0, :]) * g[..., 0, :]
    return _real_where(da, a), _real_where(g, b), _real_where(dx0, x0)


def _real_where(gradient, argument):
    return gradient if np.iscomplexobj(argument) else gradient.real.copy()


def _same(x):
    return x


VARIANTS = [
    ("decay_not_conjugated", "gradient[complex64]", "a for a* in the adjoint", {"decay": _same}),
    ("state_not_conjugated", "gradient[complex64]", "x for x* in da", {"state": _same}),
    ("decay_one_early", "gradient[float32]", "a_k for a_{k+1} in the adjoint", {"shift": 0}),
    ("state_one_late", "gradient[float32]", "da_k = x_k* g_k", {"before": 0}),
    (
        "carry_lost_64",
        "gradient[float32]",
        "the adjoint's carry lost at chunks of 64",
        {"forget": 64},
    ),
    ("float16", "gradient[float32]", "the adjoint carried in float16", {"cast": float16}),
]


def _as_jax(dx, a, b, x0):
    """The conjugate convention."""
    return tuple(g.conj() for g in _vjp(dx.conj(), a, b, x0, decay=_same, state=_same))


def _sign(dx, a, b, x0):
    da, db, dx0 = _vjp(dx, a, b, x0)
    return da, -db, dx0


def _recurrence_forgotten(dx, a, b, x0):
    da, _, dx0 = _vjp(dx, a, b, x0)
    return da, np.array(_real_where(dx + 0 * b, b)), dx0


def _cotangent_contiguous(dx, a, b, x0):
    """Reads past the one number of an expanded cotangent."""
    memory = np.zeros(dx.size, dx.dtype)
    distinct = dx[tuple(slice(0, 1) if s == 0 else slice(None) for s in dx.strides)]
    memory[: distinct.size] = distinct.ravel()
    return _vjp(memory.reshape(dx.shape), a, b, x0)


WHOLE = [
    ("sign", "gradient[float32]", "db with the other sign", _sign),
    ("recurrence_forgotten", "gradient[float32]", "db = dx", _recurrence_forgotten),
    (
        "expanded_cotangent",
        "gradient[float32]",
        "a stride of 0 read as contiguous",
        _cotangent_contiguous,
    ),
]
FROM_ONLY = [
    (
        "state_gradient_undecayed",
        "gradient[float32]",
        "dx0 = g_0",
        lambda dx, a, b, x0: (*(r := _vjp(dx, a, b, x0))[:2], np.array(r[1][..., 0, :])),
    ),
    (
        "state_gradient_missing",
        "gradient[float32]",
        "dx0 = 0",
        lambda dx, a, b, x0: (*_vjp(dx, a, b, x0)[:2], np.zeros_like(x0)),
    ),
    (
        "state_ignored_in_da",
        "gradient[float32]",
        "da_0 = 0 although x0 is not",
        lambda dx, a, b, x0: (_vjp(dx, a, b, 0 * x0)[0], *_vjp(dx, a, b, x0)[1:]),
    ),
]


def _from_rest(vjp):
    return lambda dx, a, b: vjp(dx, a, b, np.zeros_like(b[..., 0, :]))[:2]


GRADIENTS = [
    *((n, c, w, lambda *xs, how=how: _vjp(*xs, **how)) for n, c, w, how in VARIANTS),
    *WHOLE,
]
DEVIATIONS = [
    *(
        Deviation("linear_scan", f"vjp_{n}", c, w, LINEAR_SCAN.reference, _from_rest(f))
        for n, c, w, f in GRADIENTS
    ),
    *(
        Deviation("linear_scan_from", f"vjp_{n}", c, w, LINEAR_SCAN_FROM.reference, f)
        for n, c, w, f in [*GRADIENTS, *FROM_ONLY]
    ),
]
