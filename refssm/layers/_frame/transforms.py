"""Operators in the forms that layers call, when the judge runs a layer to bound its errors.

They are the references without their checks of arguments, so that tracked arrays pass. Those that
transform have a rule for their errors in a norm (`refssm/conformance/gauges/layers.py`): a sum of
the errors of single operations would be wrong for them.
"""

from types import SimpleNamespace

import numpy as np

import refssm
from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.elimination import solved
from refssm._numerics.overridable import overridable
from refssm._numerics.powers import states
from refssm.catalog import OPERATORS
from refssm.convolution import CAUSAL_CONVOLUTION
from refssm.discretize import DISCRETIZE_BILINEAR
from refssm.hope import HOPE_KERNEL
from refssm.layers._frame.layer import BETWEEN


@overridable
def convolution(u, k):
    """`causal_convolution`."""
    return CAUSAL_CONVOLUTION.reference(u, k)


def convolution_vjp(dy, u, k):
    """Its VJP: convolutions in reversed time."""
    gradients = (_backwards(convolution(_backwards(dy), x.conj())) for x in (k, u))
    return unbroadcast_each(gradients, (u, k))


def _backwards(u):
    return u[..., ::-1]


def shifted(u, k, kr):
    """`bidirectional_convolution_shifted`."""
    later = convolution(_backwards(u), kr)[..., :-1]
    return convolution(u, k) + np.concatenate(
        [_backwards(later), np.zeros_like(u[..., :1])], axis=-1
    )


def shifted_vjp(dy, u, k, kr):
    """Its VJP: that of both convolutions, the second in reversed time."""
    dback = np.concatenate([np.zeros_like(dy[..., :1]), dy[..., :-1]], axis=-1)
    du, dk = convolution_vjp(dy, u, k)
    later, dkr = convolution_vjp(_backwards(dback), _backwards(u), kr)
    return du + _backwards(later), dk, dkr


@overridable
def cascade_response(h, dt, *, l):
    """`hope_kernel`."""
    return HOPE_KERNEL.reference(h, dt, l=l)


def dense_states(A, b, x0):
    """`dense_scan_from`: its states are bounded in norm, with x0 as the first input."""
    start = np.broadcast_to(x0[..., None, :], (*b.shape[:-2], 1, b.shape[-1]))
    return states(A, np.concatenate([start, b], axis=-2))[..., 1:, :]


def bilinear_pair(A, B, dt):
    """`discretize_bilinear`, by elimination: LAPACK has no long double."""
    assert DISCRETIZE_BILINEAR.definition is not None
    M, N, H = DISCRETIZE_BILINEAR.definition(A, B, dt)
    return solved(M, N), solved(M, H)


def bare() -> SimpleNamespace:
    """Every operator of the catalog without checks of arguments, and its VJP."""
    space = {name: getattr(refssm, name) for name in BETWEEN}
    for op in OPERATORS:
        space[op.name] = op.reference
        if op.differentiable:
            space[f"{op.name}_vjp"] = op.bare_vjp
    space |= {
        "causal_convolution": convolution,
        "causal_convolution_vjp": convolution_vjp,
        "bidirectional_convolution_shifted": shifted,
        "bidirectional_convolution_shifted_vjp": shifted_vjp,
        "hope_kernel": cascade_response,
        "dense_scan_from": dense_states,
        "discretize_bilinear": bilinear_pair,
    }
    return SimpleNamespace(**space)
