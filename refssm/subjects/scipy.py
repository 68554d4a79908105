"""SciPy: filters, convolutions, discretization, and the matrix exponential."""

import numpy as np
from scipy import linalg, signal

from refssm.subjects import constant_in_time
from refssm.testing import implements


def _filtered(a, b, x0):
    """x_k = a x_{k-1} + b_k channel by channel, from x_{-1} = x0, in the common type."""
    dtype = np.result_type(a, b, x0)
    x = np.empty(b.shape, dtype)
    for i in np.ndindex(*b.shape[:-2], b.shape[-1]):
        channel = (*i[:-1], slice(None), i[-1])
        pole = a[(*i[:-1], 0, i[-1])].astype(dtype)
        start = (pole * x0[i]).reshape(1)
        one = np.ones(1, dtype)
        denominator = np.array([1, -pole], dtype)
        x[channel], _ = signal.lfilter(one, denominator, b[channel].astype(dtype), zi=start)
    return x


@implements("linear_scan", only=constant_in_time)
def lfilter(a, b):
    """lfilter([1], [1, −a], b) along time."""
    if b.shape[-2] == 0:
        raise NotImplementedError("lfilter has no filter for no samples here")
    return _filtered(a, b, np.zeros_like(b[..., 0, :]))


@implements("linear_scan_from", only=constant_in_time)
def lfilter_from(a, b, x0):
    """lfilter with the initial condition zi = a x0."""
    if b.shape[-2] == 0:
        raise NotImplementedError("lfilter has no filter for no samples here")
    return _filtered(a, b, x0)


@implements("linear_scan", only=constant_in_time, dtypes=("float64",))
def dlsim(a, b):
    """dlsim with A = diag a, B = C = I, for each member of the batch.

    Its recurrence is x_{k+1} = A x_k + B u_k, one step behind refssm's, so a zero sample is
    appended and the first output dropped.
    """
    if b.shape[-2] == 0:
        raise NotImplementedError("dlsim wants at least one sample")
    a, b = np.broadcast_arrays(a, b)
    x, I = np.empty(b.shape), np.eye(b.shape[-1])
    for i in np.ndindex(*b.shape[:-2]):
        system = (np.diag(a[i][0]), I, I, 0 * I, 1.0)
        u = np.concatenate([b[i], np.zeros_like(b[i][:1])])
        x[i] = signal.dlsim(system, u)[1][1:]
    return x


@implements("causal_convolution")
def fftconvolve(u, k):
    """fftconvolve along time, cut to the length of the signal."""
    u, k = np.broadcast_arrays(u, k)
    return signal.fftconvolve(u, k, axes=-1)[..., : u.shape[-1]]


@implements("causal_convolution")
def oaconvolve(u, k):
    """oaconvolve along time, by overlap-add, cut to the length of the signal."""
    u, k = np.broadcast_arrays(u, k)
    return signal.oaconvolve(u, k, axes=-1)[..., : u.shape[-1]]


@implements("causal_convolution_direct")
def causal_convolution_direct(u, k):
    """convolve(…, method="direct"), sequence by sequence."""
    if u.shape[-1] == 0:
        raise NotImplementedError("convolve takes no empty sequences")
    u, k = np.broadcast_arrays(u, k)
    y = np.empty(u.shape, np.result_type(u, k))
    for i in np.ndindex(*u.shape[:-1]):
        y[i] = signal.convolve(u[i], k[i], method="direct")[: u.shape[-1]]
    return y


def _discretized(A, B, dt, method):
    """Ā and B̄ of one system; C and D are zeros, because cont2discrete needs them."""
    n, m = B.shape
    C, D = np.zeros((1, n)), np.zeros((1, m))
    return tuple(signal.cont2discrete((A, B, C, D), float(dt), method)[:2])  # pyright: ignore


@implements("discretize_zoh", dtypes=("float64", "complex128"))
def cont2discrete_zoh(A, B, dt):
    """cont2discrete(…, "zoh")."""
    return _discretized(A, B, dt, "zoh")


@implements("discretize_bilinear", dtypes=("float64", "complex128"))
def discretize_bilinear(A, B, dt):
    """cont2discrete(…, "bilinear")."""
    return _discretized(A, B, dt, "bilinear")


@implements("discretize_zoh")
def expm(A, B, dt):
    """The blocks of expm(dt [[A, B], [0, 0]]), for one system."""
    n, m = B.shape
    G = dt * np.block([[A, B], [np.zeros((m, n + m), B.dtype)]])
    E = linalg.expm(G)
    return E[:n, :n], E[:n, n:]
