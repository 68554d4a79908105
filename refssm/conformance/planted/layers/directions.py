"""Planted bugs in layers that read the past and the future: a direction lost, exchanged, late."""

from __future__ import annotations

import numpy as np

from refssm.activations import gelu
from refssm.conformance.planted.layers.every_layer import planting
from refssm.conformance.planted.layers.gates import after_system, gate_of, of_s5, with_operators
from refssm.layers import hope_bidirectional, s5, s5_bidirectional
from refssm.layers._frame.transforms import bare
from refssm.layers._parts import ssm
from refssm.layers._parts.mixing import linear

S5_BIDIRECTIONAL = of_s5(s5_bidirectional.S5_BIDIRECTIONAL_LAYER, ssm.linearized_bidirectional)


def of_states(change):
    """The bidirectional S5 from changed states of the past and of the future."""

    def system(ops, p, u):
        a, f = s5._discrete(ops, p)
        b, n = ssm.driven(f * p.B, u), len(a)
        steps = np.broadcast_to(a, b.shape[-2:])
        past = ops.linear_scan(steps, b)
        past, future = change(past, ops.linear_scan(steps, b[..., ::-1, :])[..., ::-1, :])
        C = 2 * p.C
        return ssm.read(C[:, :n], past.copy()) + ssm.read(C[:, n:], future.copy()) + p.D * u

    gate = gate_of(gelu, lambda p, y: linear(gelu(y), p.W, p.b))
    return after_system(s5_bidirectional.S5_BIDIRECTIONAL_LAYER, system, gate)


def earlier(z):
    """z_{k+1}, and 0 after the end."""
    return np.concatenate([z[..., 1:, :], np.zeros_like(z[..., :1, :])], axis=-2)


S5_BIDIRECTIONAL.plant(
    ("future", "the scan from the end is forgotten", of_states(lambda x, z: (x, 0 * z))),
    ("exchanged", "the two directions are exchanged", of_states(lambda x, z: (z, x))),
    (
        "lag_one",
        "the future begins one step later",
        of_states(lambda x, z: (x, earlier(z))),
    ),
    (
        "unturned",
        "the second scan stays in reversed time",
        of_states(lambda x, z: (x, z[..., ::-1, :])),
    ),
)


def _convolved(change):
    """The bidirectional HOPE with another convolution, from the signal and both kernels."""
    return with_operators(
        hope_bidirectional.HOPE_BIDIRECTIONAL_LAYER,
        bidirectional_convolution_shifted=lambda right, u, k, kr: change(right, u, k, kr),
    )


def _lag_zero(right, u, k, kr):
    """Both kernels at lag 0."""
    past = bare().causal_convolution
    return past(u, k) + past(u[..., ::-1], kr)[..., ::-1]


HOPE_BIDIRECTIONAL = planting("hope_bidirectional_layer")
HOPE_BIDIRECTIONAL.plant(
    ("lag_zero", "the future begins with the present input", _convolved(_lag_zero)),
    (
        "future",
        "the kernel of the future is forgotten",
        _convolved(lambda right, u, k, kr: right(u, k, 0 * kr)),
    ),
    (
        "exchanged",
        "the two kernels are exchanged",
        _convolved(lambda right, u, k, kr: right(u, kr, k)),
    ),
    (
        "unturned",
        "the second kernel reads the past too",
        _convolved(lambda right, u, k, kr: bare().causal_convolution(u, k + kr)),
    ),
    (
        "circular",
        "the convolution wraps around",
        _convolved(
            lambda right, u, k, kr: bare().circular_convolution(
                u, k + np.concatenate([0 * kr[..., :1], kr[..., :-1][..., ::-1]], axis=-1)
            )
        ),
    ),
)

BUGS = [*S5_BIDIRECTIONAL.bugs, *HOPE_BIDIRECTIONAL.bugs]
