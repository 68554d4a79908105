"""Planted bugs of Gated DeltaNet: in what stands before and after its recurrence, and in it."""

from types import SimpleNamespace

import numpy as np

from refssm.activations import sigmoid, silu
from refssm.conformance.planted.layers.gates import with_operators
from refssm.conformance.planted.layers.parameters import planting
from refssm.layers._namespaces import bare
from refssm.layers.attention.gated_deltanet import GATED_DELTANET_LAYER
from refssm.norms import rms_norm

NAMES = ("q", "k", "v", "log_g", "beta")


def _on(**others):
    return with_operators(GATED_DELTANET_LAYER, **others)


def _rule(**changes):
    """Other arguments of the recurrence: functions of all of them by name."""

    def rule(right, *args):
        given = SimpleNamespace(**dict(zip(NAMES, args, strict=True)))
        changed = {name: change(given) for name, change in changes.items()}
        return right(*(changed.get(name, a) for name, a in zip(NAMES, args, strict=True)))

    return _on(gated_delta_rule=rule)


def _added(right, q, k, v, log_g, beta):
    """β k vᵀ is added, with no correction."""
    del right
    return bare().ssd_recurrent(beta[..., None] * v, log_g, k, q)


def _uncorrected_decay(right, q, k, v, log_g, beta):
    """The delta rule before the decay: v is compared with what the state was."""
    del right
    S, y = np.zeros_like(v, shape=(*v.shape[:-2], k.shape[-1], v.shape[-1])), []
    for t in range(v.shape[-2]):
        k_t, decay = k[..., t, :], np.exp(log_g[..., t])[..., None, None]
        missing = v[..., t, :] - np.einsum("...np,...n->...p", S, k_t)
        written = k_t[..., :, None] * (beta[..., t, None] * missing)[..., None, :]
        S = decay * S + written
        y.append(np.einsum("...np,...n->...p", S, q[..., t, :]))
    return np.stack(y, axis=-2) if y else np.zeros_like(v)


GATED_DELTANET = planting("gated_deltanet_layer")
GATED_DELTANET.plant(
    ("added", "the delta rule does not subtract", _on(gated_delta_rule=_added)),
    ("decay_late", "v is compared with the state before its decay",
     _on(gated_delta_rule=_uncorrected_decay)),
    ("undecayed", "the state does not decay", _rule(log_g=lambda a: 0 * a.log_g)),
    ("beta_twice", "2β for β, as with negative eigenvalues", _rule(beta=lambda a: 2 * a.beta)),
    ("exchanged", "queries and keys are exchanged",
     _rule(q=lambda a: a.k / a.k.dtype.type(np.sqrt(a.k.shape[-1])),
           k=lambda a: a.q * a.k.dtype.type(np.sqrt(a.k.shape[-1])))),
    ("unscaled", "queries without 1/√n",
     _rule(q=lambda a: a.q * a.q.dtype.type(np.sqrt(a.q.shape[-1])))),
    ("lengths", "queries and keys keep their lengths", _on(l2_norm=lambda right, x: x)),
    ("filter_linear", "SiLU after the filters is forgotten",
     _on(causal_conv1d=lambda right, u, k, bias: bare().short_convolution(u, k))),
    ("gate_sigmoid", "σ(z) for z σ(z)",
     _on(rms_norm_gated=lambda right, y, z, w: rms_norm(y, w) * sigmoid(z))),
    ("gate_before", "the gate before the norm, as in Mamba-2",
     _on(rms_norm_gated=lambda right, y, z, w: rms_norm(y * silu(z), w))),
    ("norm", "the norm is forgotten",
     _on(rms_norm_gated=lambda right, y, z, w: y * w * silu(z))),
)  # fmt: skip

OF_DELTANET = GATED_DELTANET.bugs
