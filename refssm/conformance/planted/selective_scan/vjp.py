"""Planted bugs in the gradients of selective scans."""

import numpy as np

from refssm.broadcasting import unbroadcast, unbroadcast_each
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.planted import Deviation
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.selective_scan.back import sigmoid, star, vjp_of
from refssm.conformance.planted.selective_scan.base import (
    EACH,
    GATED,
    LONG,
    PACKED,
    SCAN,
    STATEFUL,
    STEP,
)

DEVIATIONS = []
FEW = ("selective_scan", "mamba_scan_stateful", "selective_step")


def plant(on, name, what, dtype="float32", **how):
    """A wrong gradient of a right implementation."""
    for op in on:
        right, check = operator_named(op).reference, f"gradient[{dtype}]"
        DEVIATIONS.append(Deviation(op, f"vjp_{name}", check, what, right, vjp_of(op, how)))


def _input_part(p):
    return (star(p, "u") * star(p, "B") * p.g).sum(-1)


def _rate_part(p):
    return (star(p, "A") * p.e).sum(-1)


plant(EACH, "dt_by_input_only", "ddt without the decay's part, A e", dt=_input_part)
plant(EACH, "dt_by_decay_only", "ddt without the input's part, u B g", dt=_rate_part)
plant(FEW, "u_without_step", "du = Σ B g", u=lambda p: (star(p, "B") * p.g).sum(-1))
plant(
    FEW,
    "u_by_own_output",
    "du from the output of its own step only",
    u=lambda p: (p.dt * star(p, "B") * star(p, "C") * p.dy).sum(-1),
)
plant(
    LONG,
    "rate_of_last_step",
    "dA of the last step only, not their sum",
    A=lambda p: (p.dt * p.e)[..., -1, :],
)
plant(FEW, "rate_without_step", "dA = Σ e", A=lambda p: p.e.sum(-2))
plant(
    SCAN,
    "rate_one_late",
    "dA with e_(k+1)",
    A=lambda p: (p.dt[..., :-1, :] * p.e[..., 1:, :]).sum(-2),
)
plant(
    FEW,
    "rate_by_new_state",
    "dA with x_k for x_(k−1)",
    A=lambda p: (p.dt * star(p, "a") * star(p, "x") * p.g).sum(-2),
)
plant(
    FEW,
    "rate_undecayed",
    "dA with x_(k−1) for a x_(k−1)",
    A=lambda p: (p.dt * p.past * p.g).sum(-2),
)
plant(FEW, "C_by_old_state", "dC = x_(k−1)* dy", C=lambda p: p.past * p.dy)
plant(FEW, "B_without_step", "dB = u* g", B=lambda p: star(p, "u") * p.g)
plant(EACH, "sign_of_B", "dB with the other sign", B=lambda p: -p.dt * star(p, "u") * p.g)


def _only_first(which):
    """One argument gets the gradient of the first of those that share it, not the sum."""

    def fold(gradients, args):
        folded = list(unbroadcast_each(gradients, args))
        lead = gradients[which].ndim - args[which].ndim
        g = gradients[which][(0,) * lead]
        shared = [i for i, n in enumerate(args[which].shape) if n == 1 != g.shape[i]]
        for axis in shared:
            g = np.take(g, [0], axis=axis)
        folded[which] = unbroadcast(g, args[which])
        return tuple(folded)

    return fold


def _mean(which):
    """The mean over those that share it, not the sum."""

    def fold(gradients, args):
        folded = list(unbroadcast_each(gradients, args))
        count = max(gradients[which].size // max(args[which].size, 1), 1)
        folded[which] = folded[which] / folded[which].real.dtype.type(count)
        return tuple(folded)

    return fold


plant(FEW, "B_of_first_channel", "dB of the first channel only", fold=_only_first(3))
plant(FEW, "C_mean_of_channels", "dC the mean over the channels", fold=_mean(4))
plant(FEW, "rate_of_first_batch", "dA of the first member of the batch only", fold=_only_first(2))
plant(SCAN, "carry_lost_64", "g starts anew at chunks of 64", forget=64)
plant(SCAN, "decay_one_late", "a_(k+2) for a_(k+1) in the adjoint", after=1)
plant(SCAN, "in_bfloat16", "the adjoint carried in bfloat16", cast=bfloat16)
plant(STATEFUL, "in_float16", "the adjoint carried in float16", cast=float16)
plant(
    (*STATEFUL, *STEP),
    "state_dropped",
    "the cotangent of the last state dropped",
    dx=lambda dx: 0 * dx,
)
plant((*STATEFUL, *STEP), "start_missing", "dx0 = 0", x0=lambda p: 0 * p.first)
plant((*STATEFUL, *STEP), "start_undecayed", "dx0 = g_0", x0=lambda p: p.g[..., 0, :])
plant(
    STATEFUL,
    "start_detached",
    "dx0 without the last state's part",
    x0=lambda p: p.first - np.prod(star(p, "a"), axis=-2) * p.dx,
)
plant(
    STATEFUL,
    "state_at_every_step",
    "the last state's cotangent at every step",
    B=lambda p: p.dt * star(p, "u") * (p.g + p.dx[..., None, :] * _not_last(p.g)),
)
plant(
    STATEFUL,
    "start_ignored_in_rate",
    "dA as if x0 were 0",
    A=lambda p: (p.dt * p.e)[..., 1:, :].sum(-2),
)


def _not_last(g):
    return np.arange(g.shape[-2])[:, None] < g.shape[-2] - 1


COMPLEX = {
    "decay": ("a", "a for a* in the adjoint"),
    "C": ("C", "C for C* in the adjoint"),
    "B": ("B", "B for B* in du and ddt"),
    "u": ("u", "u for u* in dB and ddt"),
    "A": ("A", "A for A* in ddt"),
    "state": ("x", "x for x* in dC and dA"),
}
for _name, (_part, _what) in COMPLEX.items():
    _on = ("selective_scan", "mamba_scan_packed", "selective_step")
    plant(_on, f"{_name}_not_conjugated", _what, "complex64", plain=(_part,))
plant(
    ("selective_scan", "mamba_step"),
    "as_jax",
    "the conjugate convention",
    "complex64",
    fold=lambda gradients, args: tuple(g.conj() for g in unbroadcast_each(gradients, args)),
)
plant(
    ("selective_scan", "mamba_step"),
    "real_parts",
    "dB and dC real",
    "complex64",
    B=lambda p: (p.dt * star(p, "u") * p.g).real + 0 * p.g,
    C=lambda p: (star(p, "x") * p.dy).real + 0 * p.g,
)
plant(
    ("selective_scan_stateful",),
    "imaginary_dt",
    "|·| for Re in ddt",
    "complex64",
    dt=lambda p: np.abs(_input_part(p) + _rate_part(p)),
)


plant(PACKED, "leaks", "the gradient of one sequence in the one before", resets=np.zeros_like)
plant(
    PACKED,
    "reset_late",
    "the adjoint cut one step late",
    resets=lambda r: np.concatenate([0 * r[..., :1], r[..., :-1]], axis=-1) != 0,
)
plant(
    PACKED,
    "decay_at_reset",
    "ddt of the decay at a reset too",
    dt=lambda p: (
        star(p, "u") * star(p, "B") * p.g + star(p, "A") * np.exp(p.dt * p.A).conj() * p.past * p.g
    ).sum(-1),
)

plant(
    GATED, "softplus_forgotten", "ddt without the softplus' derivative", slope=lambda q: 1 + 0 * q.v
)
plant(
    GATED,
    "softplus_of_step",
    "the softplus' derivative σ(Δ), at its value",
    slope=lambda q: sigmoid(q.step),
)
plant(GATED[::2], "softplus_relu", "1 for v > 0, else 0", slope=lambda q: (q.v > 0) + 0 * q.v)
plant(GATED[1::2], "softplus_twice", "σ(v)²", slope=lambda q: sigmoid(q.v) ** 2)
plant(GATED[:3], "bias_not_summed", "ddt_bias of the last step only", bias=lambda q: q.ddt[..., -1])
plant(
    GATED[:3], "D_not_summed", "dD of the last step only", D=lambda q: (q.u.conj() * q.ds)[..., -1]
)
plant(GATED[::2], "bias_missing", "ddt_bias = 0", bias=lambda q: 0 * q.ddt.sum(-1))
plant(GATED, "D_ungated", "dD without the gate", D=lambda q: (q.u.conj() * q.dy).sum(-1))
plant(
    GATED, "skip_ungated", "du = D* dy beside the scan", skip=lambda q: q.D[..., None].conj() * q.dy
)
plant(GATED[1::2], "skip_missing", "du without D*", skip=lambda q: 0 * q.ds)
plant(
    GATED,
    "gate_without_skip",
    "dz from C x alone, without D u",
    dz=lambda q: q.y.conj() * q.dy * (q.open + q.gate * (1 - q.open)),
)
plant(
    GATED,
    "gate_as_sigmoid",
    "dz = s dy z σ(1 − σ)",
    dz=lambda q: q.s.conj() * q.dy * q.gate * (1 - q.open),
)
plant(GATED[::2], "gate_constant", "dz = s dy σ(z)", dz=lambda q: q.s.conj() * q.dy * q.open)
plant(GATED[1::2], "gate_by_sigmoid", "ds = σ(z) dy", ds=lambda q: q.open * q.dy)
plant(GATED[::2], "gate_ignored", "ds = dy", ds=lambda q: q.dy)
plant(
    GATED[1::2],
    "gate_not_conjugated",
    "dz = Re s dy …, without the conjugate",
    "complex64",
    dz=lambda q: q.s * q.dy * (q.open + q.gate * (1 - q.open)),
)
