"""Honest causal convolutions: sums in several orders, transforms of several lengths."""

# pyright: reportArgumentType=false, reportOperatorIssue=false, reportCallIssue=false
# pyright: reportMissingImports=false
# (scipy.fft's functions are dispatched, and torch may be absent)

import numpy as np
from scipy import fft as scipy_fft
from scipy import signal

from honest import Honest, mirror
from honest.convolution.activated import IMPLEMENTATIONS as ACTIVATED
from honest.convolution.around import IMPLEMENTATIONS as AROUND
from honest.convolution.short import IMPLEMENTATIONS as SHORT
from refssm.convolution import CAUSAL_CONVOLUTION, CAUSAL_CONVOLUTION_DIRECT


def sliced(convolve):
    """A convolution of single sequences, applied to every member of the batch."""

    def batched(u, k):
        u, k = np.broadcast_arrays(u, k)
        y = np.empty(u.shape, np.result_type(u, k))
        for i in np.ndindex(*u.shape[:-1]):
            y[i] = convolve(u[i], k[i])
        return y

    return batched


numpy_convolve = sliced(lambda u, k: np.convolve(u, k)[: u.size])
scipy_direct = sliced(lambda u, k: signal.convolve(u, k, method="direct")[: u.size])
finite_filter = sliced(lambda u, k: signal.lfilter(k, np.ones(1, k.dtype), u))
fftconvolve = sliced(lambda u, k: signal.fftconvolve(u, k)[: u.size])
oaconvolve = sliced(lambda u, k: signal.oaconvolve(u, k)[: u.size])


def lag_by_lag(u, k):
    """One shifted copy of the signal after another."""
    u, k = np.broadcast_arrays(u, k)
    y = np.zeros(u.shape, np.result_type(u, k))
    for i in range(u.shape[-1]):
        y[..., i:] += k[..., i, None] * u[..., : u.shape[-1] - i]
    return y


def last_lag_first(u, k):
    """The longest lag first."""
    u, k = np.broadcast_arrays(u, k)
    y = np.zeros(u.shape, np.result_type(u, k))
    for i in reversed(range(u.shape[-1])):
        y[..., i:] += k[..., i, None] * u[..., : u.shape[-1] - i]
    return y


def toeplitz(u, k):
    """A product with the matrix k_{i−j}, without any products above its diagonal."""
    i = np.arange(u.shape[-1])
    lag = i[:, None] - i
    return np.where(lag >= 0, k[..., np.maximum(lag, 0)] * u[..., None, :], 0).sum(-1)


def power_of_two(u, k):
    """NumPy's transform of the next power of two."""
    l, common = u.shape[-1], np.result_type(u, k)
    n = 1 << max(2 * l - 1, 1).bit_length()
    product = np.fft.fft(u.astype(common), n) * np.fft.fft(k.astype(common), n)
    y = np.fft.ifft(product)[..., :l]
    return y if np.iscomplexobj(np.zeros(0, common)) else y.real


def shortest(u, k):
    """scipy.fft of 2l − 1 points, whatever its factors."""
    l, common = u.shape[-1], np.result_type(u, k)
    n = max(2 * l - 1, 1)
    U, K = (scipy_fft.fft(x.astype(common), n) for x in (u, k))
    y = scipy_fft.ifft(U * K)[..., :l]
    return y if np.dtype(common).kind == "c" else y.real


def overlap_add(u, k):
    """Blocks of 64 samples, each convolved with the whole kernel."""
    l, common = u.shape[-1], np.result_type(u, k)
    u, k = np.broadcast_arrays(u.astype(common), k.astype(common))
    n = 64 + l
    y = np.zeros((*u.shape[:-1], l + n), common)
    for start in range(0, l, 64):
        block = np.fft.fft(u[..., start : start + 64], n) * np.fft.fft(k, n)
        piece = np.fft.ifft(block)
        y[..., start : start + n] += piece if y.dtype.kind == "c" else piece.real
    return y[..., :l]


def torch_fft(u, k):
    """By PyTorch's transform, of a power of two: others lose digits (docs/findings.md)."""
    import torch

    l, common = u.shape[-1], np.result_type(u, k)
    u, k = (torch.from_numpy(np.array(x, common)) for x in (u, k))  # a copy: writable, contiguous
    n = 1 << (2 * l - 1).bit_length()
    y = torch.fft.ifft(torch.fft.fft(u, n) * torch.fft.fft(k, n))[..., :l].numpy()
    return y if np.dtype(common).kind == "c" else y.real


DIRECT = (lag_by_lag, last_lag_first, toeplitz)
SLICED = {
    "numpy_convolve": numpy_convolve,
    "scipy_direct": scipy_direct,
    "finite_filter": finite_filter,
}
TRANSFORMS = (power_of_two, shortest, overlap_add, lag_by_lag)
TRANSFORMS_SLICED = {"fftconvolve": fftconvolve, "oaconvolve": oaconvolve}

SUM, FFT = CAUSAL_CONVOLUTION_DIRECT, CAUSAL_CONVOLUTION
IMPLEMENTATIONS = [
    *(Honest(SUM.name, form.__name__, form) for form in DIRECT),
    *(Honest(SUM.name, name, form) for name, form in SLICED.items()),
    mirror(FFT, "scipy_fft"),
    Honest(FFT.name, "direct", SUM.reference, SUM.bare_vjp),
    *(Honest(FFT.name, form.__name__, form) for form in TRANSFORMS),
    *(Honest(FFT.name, name, form) for name, form in TRANSFORMS_SLICED.items()),
    Honest(FFT.name, "torch_fft", torch_fft, needs="torch"),
    *AROUND,
    *SHORT,
    *ACTIVATED,
]
