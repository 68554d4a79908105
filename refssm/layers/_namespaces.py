"""Where layers take their operators from: of a role, or bare, for the judge.

`bare` has operators in the forms that layers call, when the judge runs a layer to bound its errors.
They are the references without their checks of arguments, so that tracked arrays pass. Those that
transform have a rule for their errors in a norm (`refssm/conformance/gauges/layers.py`): a sum of
the errors of single operations would be wrong for them.
"""

from importlib import import_module
from types import SimpleNamespace

import numpy as np

import refssm
from refssm._declaration.operator import PACKAGES
from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.elimination import solved
from refssm._numerics.overridable import overridable
from refssm._numerics.powers import states
from refssm.catalog import OPERATORS
from refssm.convolution import CAUSAL_CONVOLUTION
from refssm.discretize import DISCRETIZE_BILINEAR
from refssm.hope import HOPE_KERNEL
from refssm.linear_attention.gated_delta import GATED_DELTA_RULE, GATED_DELTA_RULE_STATEFUL

# what layers use between operators, by family; and which of it a role has
FUNCTIONS = {
    "activations": ("gelu", "silu", "gate", "glu"),
    "norms": ("layer_norm", "rms_norm", "batch_norm"),
}
MIRRORED = {
    "jit": {"activations": ("gelu", "silu", "gate", "glu"), "norms": ("layer_norm",)},
    "gpu": {"_algebra.activations": ("gelu",)},
}
CORES = {"jit": "_compiling.threads"}  # roles on cores, and the module with `each_on_one_core`
CARDS = {"gpu": "_launching.arrays"}  # roles on cards, and the module with `placed` and `fetched`


def _with_vjp(names) -> list[str]:
    return [f"{name}{suffix}" for name in names for suffix in ("", "_vjp")]


BETWEEN = [name for names in FUNCTIONS.values() for name in _with_vjp(names)] + ["batch_norm_fixed"]


def operators(role: str) -> SimpleNamespace:
    """Every operator of the catalog in this role, with its VJP, and activations and norms; the
    reference where the operator's declaration, or MIRRORED, says that the role lacks it. If the
    role works on cores, also `each_on_one_core(function, items)`; if it works on a card, also
    `placed(x)` and `fetched(x)`, which bring an array there and back."""
    space = {name: getattr(refssm, name) for name in BETWEEN}
    for op in OPERATORS:
        place = "reference" if role in op.lacks else role
        space[op.name] = op.implementation(place)
        if op.differentiable:
            space[f"{op.name}_vjp"] = op.vjp(place)
    for family, names in MIRRORED.get(role, {}).items():
        mirrors = import_module(f"{PACKAGES[role]}.{family}")
        space |= {name: getattr(mirrors, name) for name in _with_vjp(names)}
    if role in CORES:
        cores = import_module(f"{PACKAGES[role]}.{CORES[role]}")
        space["each_on_one_core"] = cores.each_on_one_core
    if role in CARDS:
        places = import_module(f"{PACKAGES[role]}.{CARDS[role]}")
        space |= {"placed": places.placed, "fetched": places.fetched}
    return SimpleNamespace(**space)


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


@overridable
def corrected(q, k, v, log_g, beta):
    """`gated_delta_rule`: its errors are bounded in each column of the state."""
    return GATED_DELTA_RULE.reference(q, k, v, log_g, beta)


@overridable
def corrected_from(q, k, v, log_g, beta, S0):
    """`gated_delta_rule_stateful`."""
    return GATED_DELTA_RULE_STATEFUL.reference(q, k, v, log_g, beta, S0)


@overridable
def corrected_vjp(dy, q, k, v, log_g, beta):
    """The VJP of the first."""
    return GATED_DELTA_RULE.bare_vjp(dy, q, k, v, log_g, beta)


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
        "gated_delta_rule": corrected,
        "gated_delta_rule_stateful": corrected_from,
        "gated_delta_rule_vjp": corrected_vjp,
        "discretize_bilinear": bilinear_pair,
    }
    return SimpleNamespace(**space)
