"""Honest short convolutions with a bias and SiLU: other sums, other forms of SiLU, PyTorch."""

# pyright: reportMissingImports=false
# (torch may be absent)

import numpy as np
from scipy.special import expit

from honest import Honest
from honest.convolution.short import (
    SUMS,
    each_sequence,
    from_inputs,
    from_rest,
    joined,
    newest_first,
    packed_back,
    rolled,
    windows,
    windows_back,
)
from honest.libraries import in_libraries
from refssm._numerics.broadcasting import unbroadcast, with_batch
from refssm.convolution import (
    CAUSAL_CONV1D,
    CAUSAL_CONV1D_PACKED,
    CAUSAL_CONV1D_STATEFUL,
    CAUSAL_CONV1D_STEP,
    SHORT_CONVOLUTION_PACKED,
)


def as_expit(a):
    """a by SciPy's logistic function."""
    return a * expit(a)


def as_quotient(a):
    """a/(1 + e^{−a}), as PyTorch; infinite below −88 in single precision, and 0 then."""
    with np.errstate(over="ignore"):
        return a / (1 + np.exp(-a))


def as_exp(a):
    """a e^{min(a, 0)}/(1 + e^{−|a|})."""
    return a * np.exp(np.minimum(a, 0)) / (1 + np.exp(-np.abs(a)))


def slope(a):
    """σ + a σ (1 − σ), the last factor as σ(−a)."""
    return expit(a) + a * expit(a) * expit(-a)


GATES = (as_expit, as_quotient, as_exp)


def from_nothing(sums, gate):
    """The sums from rest, the bias added at the end."""

    def program(u, k, bias):
        return gate(from_rest(sums)(u, k) + bias[..., None])

    return program


def from_bias(past, k, bias):
    """The bias first, as the start of each sum; then the newest tap first."""
    t, l = k.shape[-1], past.shape[-1] - k.shape[-1] + 1
    batch = np.broadcast_shapes(past.shape[:-1], k.shape[:-1], bias.shape)
    y = np.zeros((*batch, l), np.result_type(past, k)) + bias[..., None]
    for j in range(t):
        y = y + past[..., t - 1 - j : t - 1 - j + l] * k[..., j, None]
    return y


def bias_first(u, k, bias):
    """From the bias on."""
    k = k[..., : u.shape[-1]]
    return as_expit(from_bias(joined(np.zeros_like(u, shape=k.shape[-1] - 1), u), k, bias))


def bias_first_stateful(u, k, bias, s0):
    """From the bias on; the state is a copy of inputs."""
    past = joined(s0, u)
    y = as_exp(from_bias(past[..., 1:], k, bias))
    return y, with_batch(past[..., past.shape[-1] - k.shape[-1] :], 1, y.shape[:-1])


def windows_vjp(dy, u, k, bias):
    """By windows of the cotangent times the slope."""
    g = dy * slope(from_rest(windows)(u, k) + bias[..., None])
    du, dk, _ = windows_back(g, None, u, k, np.zeros_like(k))
    return du, dk, unbroadcast(np.einsum("...l->...", g), bias)


def stateful(sums, gate):
    """Sums from the state."""

    def program(u, k, bias, s0):
        y, s = from_inputs(sums)(u, k, s0)
        y = gate(y + bias[..., None])
        return y, with_batch(s, 1, y.shape[:-1])

    return program


def stateful_vjp(dy, ds, u, k, bias, s0):
    """The same from the state."""
    g = dy * slope(from_inputs(windows)(u, k, s0)[0] + bias[..., None])
    du, dk, ds0 = windows_back(g, ds, u, k, s0)
    return du, dk, unbroadcast(np.einsum("...l->...", g), bias), ds0


def packed(sums, gate):
    """Each sequence alone."""

    def program(u, k, bias, resets):
        return gate(each_sequence(sums)(u, k, resets) + bias[..., None])

    return program


def packed_vjp(dy, u, k, bias, resets):
    """By the numbers of the sequences."""
    g = dy * slope(SHORT_CONVOLUTION_PACKED.reference(u, k, resets) + bias[..., None])
    du, dk, _ = packed_back(g, u, k, resets)
    return du, dk, unbroadcast(np.einsum("...l->...", g), bias), None


def step(sums, gate):
    """One input."""

    def program(u, k, bias, s):
        y, s = sums(u, k, s)
        y = gate(y + bias)
        return y, with_batch(s, 1, y.shape)

    return program


def of_length_one(u, k, bias, s):
    """A piece of one input."""
    y, s = bias_first_stateful(u[..., None], k, bias, s)
    return y[..., 0], s


def of_length_one_vjp(dy, ds, u, k, bias, s):
    """The gradients of `of_length_one`."""
    du, dk, dbias, ds = stateful_vjp(dy[..., None], ds, u[..., None], k, bias, s)
    return du[..., 0], dk, dbias, ds


def torch_conv1d(u, k, bias):
    """PyTorch's Conv1d with one channel a group, padded at both ends; weights reversed."""
    import torch
    from torch.nn import functional as F

    t, l, batch = k.shape[-1], u.shape[-1], np.broadcast_shapes(u.shape[:-1], k.shape[:-1])
    kind = np.result_type(u, k, bias)
    rows = np.broadcast_to(u, (*batch, l)).reshape(1, -1, l)
    taps = np.broadcast_to(k[..., ::-1], (*batch, t)).reshape(-1, 1, t)
    each = np.broadcast_to(bias, batch).reshape(-1)
    x, weight, b = (torch.from_numpy(np.array(a, kind)) for a in (rows, taps, each))
    y = F.silu(F.conv1d(x, weight, b, padding=t - 1, groups=rows.shape[1])[..., :l])
    return y.numpy().reshape(*batch, l)


PLAIN, STATEFUL = CAUSAL_CONV1D.name, CAUSAL_CONV1D_STATEFUL.name
PACKED, STEP = CAUSAL_CONV1D_PACKED.name, CAUSAL_CONV1D_STEP.name
PAIRS = tuple(zip(SUMS, (*GATES, as_expit), strict=True))
IMPLEMENTATIONS = [
    Honest(PLAIN, "windows", from_nothing(windows, as_expit), windows_vjp),
    Honest(PLAIN, "bias_first", bias_first),
    *(Honest(PLAIN, sums.__name__, from_nothing(sums, gate)) for sums, gate in PAIRS),
    Honest(PLAIN, "torch_conv1d", torch_conv1d, needs="torch"),
    *in_libraries("layers", [PLAIN]),
    Honest(STATEFUL, "windows", stateful(windows, as_quotient), stateful_vjp),
    Honest(STATEFUL, "bias_first", bias_first_stateful),
    *(Honest(STATEFUL, sums.__name__, stateful(sums, gate)) for sums, gate in PAIRS),
    Honest(PACKED, "each_sequence", packed(windows, as_exp), packed_vjp),
    Honest(PACKED, "each_by_numpy", packed(SUMS[1], as_quotient)),
    Honest(PACKED, "each_by_steps", packed(SUMS[3], as_expit)),
    Honest(STEP, "rolled", step(rolled, as_expit)),
    Honest(STEP, "newest_first", step(newest_first, as_quotient)),
    Honest(STEP, "of_length_one", of_length_one, of_length_one_vjp),
]
