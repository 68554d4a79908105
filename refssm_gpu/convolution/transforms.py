"""Circular convolution and its gradients on the period p, which every convolution here reduces to.

    y = F⁻¹(F(u) F(κ)),   du = F⁻¹(F(κ)* F(dy)),   dκ = F⁻¹(F(u)* F(dy))

Each array is transformed once. The gradient of an array with fewer leading axes is summed over the
batch before its inverse transform, so that is as small as the array.
"""

from __future__ import annotations

from collections.abc import Sequence

from refssm_gpu._algebra.parts import conj
from refssm_gpu._algebra.transforms import half_spectrum, real_signal
from refssm_gpu._launching.arrays import Array, folded, is_complex, namespace, unbroadcast


def convolved(u: Array, k: Array, p: int) -> Array:
    """Σ_j k_{(i−j) mod p} u_j, i < p; arrays shorter than p end with zeros."""
    u, k = of_one_type(u, k)
    return _signal(_spectrum(u, p) * _spectrum(k, p), u, p)


def correlated(dy: Array, u: Array, k: Array, p: int) -> tuple[Array, Array]:
    """Gradients of `convolved` with respect to u and k, p entries each, before their real part."""
    dy, u, k = of_one_type(dy, u, k)
    spectrum = _spectrum(dy, p)
    both = (conj(_spectrum(x, p)) * spectrum for x in (k, u))
    summed = (folded(d, (*x.shape[:-1], d.shape[-1])) for d, x in zip(both, (u, k), strict=True))
    du, dk = (_signal(d, u, p) for d in summed)
    return du, dk


def of_one_type(*arrays: Array) -> list[Array]:
    """The arrays in the type to which they promote."""
    xp = namespace(*arrays)
    common = xp.result_type(*arrays)
    return [xp.astype(x, common, copy=False) for x in arrays]


def gradients(cotangents: Sequence[Array], primals: Sequence[Array]) -> tuple[Array, ...]:
    """The first entries of each, real for a real argument."""
    each = zip(cotangents, primals, strict=True)
    return tuple(unbroadcast(d[..., : x.shape[-1]], x) for d, x in each)


def _spectrum(u: Array, p: int) -> Array:
    """The transform; a real array's second half is conjugate to the first and left out."""
    xp, compound = namespace(u), is_complex(u)
    if 0 in u.shape:  # cuFFT has no plan for nothing
        kind = xp.result_type(u, xp.complex64)
        return xp.zeros((*u.shape[:-1], p if compound else p // 2 + 1), dtype=kind)
    return xp.fft.fft(u, n=p) if compound else half_spectrum(u, p)


def _signal(spectrum: Array, like: Array, p: int) -> Array:
    """The inverse of `_spectrum`, real if `like` is."""
    xp = namespace(spectrum)
    if 0 in spectrum.shape:
        return xp.zeros((*spectrum.shape[:-1], p), dtype=like.dtype)
    return xp.fft.ifft(spectrum, n=p) if is_complex(like) else real_signal(spectrum, p)
