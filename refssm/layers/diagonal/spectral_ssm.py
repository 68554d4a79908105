"""Spectral SSM: fixed filters of a Hankel matrix, and two learned matrices each [agarwal2023].

    φ_i = σ_i^{1/4} times the i-th eigenvector of Z (`spectral_filters`), t taps
    y_k = Σ_i (φ_i * u)_k M⁺_i + (φ⁻_i * u)_k M⁻_i + D u_k,   φ⁻_i(j) = (−1)^j φ_i(j)
    out = GLU(GELU(y) W + b)

Filters are dense: there is no recurrence. A state is the last t inputs. The filters are parameters
that are not trained, so that somebody's block may have its own.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from refssm import initial
from refssm.domains import layer_signals, markov_parameters, shifts, skips
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts import bank
from refssm.layers._parts.bank import turned
from refssm.layers._parts.mixing import flat, plus, summed
from refssm.spectral import spectral_filters


@dataclass(frozen=True)
class SpectralSSM(Parameters):
    """Parameters of `spectral_ssm`: `n` filters of `t` taps."""

    phi: np.ndarray = parameter(
        "n t", "σ^{1/4} φ, the first n eigenpairs of Z", "fixed", domain=markov_parameters
    )
    M_plus: np.ndarray = parameter("n h h", "uniform between ±1/√h")
    M_minus: np.ndarray = parameter("n h h", "uniform between ±1/√h")
    D: np.ndarray = parameter("h", "normal", domain=skips)
    W: np.ndarray = parameter("h 2h", "uniform between ±1/√h")
    b: np.ndarray = parameter("2h", "uniform between ±1/√h", domain=shifts)


def init(rng, *, h, n=8, t=64) -> SpectralSSM:
    """New parameters in double precision; with more filters than taps all others are 0."""
    sigma, vectors = spectral_filters(l=t, k=min(n, t))
    phi = np.zeros((n, t))
    phi[: len(sigma)] = sigma[:, None] ** 0.25 * vectors
    plus_, minus = (np.stack([initial.linear(rng, h, h)[0] for _ in range(n)]) for _ in range(2))
    return SpectralSSM(phi, plus_, minus, rng.standard_normal(h), *initial.linear(rng, h, 2 * h))


def _filters(p):
    """φ and φ⁻: (2n, t)."""
    return np.concatenate([p.phi, p.phi * _signs(p.phi)])


def _signs(phi):
    """(−1)^j for the taps of phi (n, t)."""
    return np.asarray(1 - 2 * (np.arange(phi.shape[-1]) % 2), phi.dtype, like=phi)


def _rows(u):
    """Every channel as a row beside which the filters are an axis: (…, h, 1, l)."""
    return turned(u)[..., None, :]


def _features(found):
    """Every channel through every filter, (…, h, 2n, l), as (…, l, h 2n)."""
    found = np.moveaxis(found, -1, -3)
    return found.reshape(*found.shape[:-2], prod(found.shape[-2:]))


def _matrices(p):
    """M⁺ and M⁻ as one matrix (h 2n, h)."""
    both = np.concatenate([p.M_plus, p.M_minus])
    return np.swapaxes(both, 0, 1).reshape(-1, both.shape[-1])


def run(ops, p, u):
    """The output, and the function from its cotangent to the gradients of `p` and of u."""
    filters, M, n = _filters(p), _matrices(p), len(p.phi)
    rows = _rows(u)
    features = _features(ops.short_convolution(rows, filters))
    y = plus(features @ M, p.D * u)

    def back(dout):
        dy, dW, db = bank.mixed_vjp(ops, dout, p, y)
        dfeatures = (dy @ M.T).reshape(*dy.shape[:-1], u.shape[-1], 2 * n)
        drows, dfilters = ops.short_convolution_vjp(np.moveaxis(dfeatures, -3, -1), rows, filters)
        dphi, dminus = np.split(dfilters, 2)
        dM = (flat(features).T @ flat(dy)).reshape(-1, 2 * n, M.shape[-1])
        dM = np.swapaxes(dM, 0, 1)
        dphi, du = dphi + dminus * _signs(p.phi), turned(drows[..., 0, :])
        return SpectralSSM(dphi, dM[:n], dM[n:], summed(dy * u), dW, db), plus(du, p.D * dy)

    return bank.mixed(ops, p, y), back


def stateful(ops, p, u, state):
    """The output for a piece from the last inputs, and the next ones."""
    before = state[0][..., None, :]
    found, newest = ops.short_convolution_stateful(_rows(u), _filters(p), before)
    y = _features(found) @ _matrices(p) + p.D * u
    return bank.mixed(ops, p, y), (newest[..., 0, :],)


SPECTRAL_SSM_LAYER = Layer(
    name="spectral_ssm", kind=SpectralSSM, init=init, run=run, stateful=stateful,
    source="agarwal2023", states={"s": ("h t", layer_signals)},
    traits=frozenset({"time-invariant"}),
    tags=("STU layer", "spectral transform unit layer", "Spectral SSM layer"),
)  # fmt: skip
