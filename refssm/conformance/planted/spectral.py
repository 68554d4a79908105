"""Planted bugs in spectral filters."""

import numpy as np

from refssm.conformance.planted import Deviation
from refssm.spectral import SPECTRAL_FILTERS

right = SPECTRAL_FILTERS.reference


def _of(Z, k):
    """The k largest eigenpairs of Z by LAPACK, first entries positive."""
    sigma, V = np.linalg.eigh(Z)
    phi = V[:, ::-1][:, :k].T
    return sigma[::-1][:k], phi * np.where(phi[:, :1] < 0, -1, 1)


def _matrix(l, entry, start=1):
    s = np.add.outer(np.arange(start, start + l), np.arange(start, start + l)).astype(float)
    return entry(s)


def _entries(entry, start=1):
    """Another matrix."""
    return lambda l, k: _of(_matrix(l, entry, start), k)


def _usual(s):
    return 2 / (s**3 - s)


def eigh_as_it_comes(l, k):
    """Signs are LAPACK's."""
    sigma, V = np.linalg.eigh(_matrix(l, _usual))
    return sigma[::-1][:k], np.ascontiguousarray(V[:, ::-1][:, :k].T)


def eigh_clipped(l, k):
    """Negative ones set to 0."""
    sigma, phi = _of(_matrix(l, _usual), k)
    return np.maximum(sigma, 0), phi


def alternating(l, k):
    """The matrix with signs (−1)^{i+j}."""
    sigma, phi = right(l=l, k=k)
    return sigma, phi * (-1.0) ** np.arange(l)


def of_one_more(l, k):
    """The filters of l + 1 samples, cut."""
    sigma, phi = right(l=l + 1, k=k)
    return sigma, np.ascontiguousarray(phi[:, :l])


def in_single(l, k):
    """Single precision inside."""
    return tuple(x.astype(np.float32).astype(float) for x in right(l=l, k=k))


def _change(change):
    """Of the right filters."""
    return lambda l, k: change(*right(l=l, k=k))


def _last_positive(sigma, phi):
    return sigma, phi * np.sign(phi[:, -1:])


def _largest_positive(sigma, phi):
    largest = np.take_along_axis(phi, np.abs(phi).argmax(1)[:, None], 1)
    return sigma, phi * np.sign(largest)


def _smallest_lost(sigma, phi):
    return np.where(sigma < 2.0**-52 * sigma[0], 0, sigma), phi


BUGS = [
    ("eigh", "LAPACK's eigenvalues: noise below 1e-17", _entries(_usual)),
    ("eigh_as_it_comes", "the same, any signs", eigh_as_it_comes),
    ("eigh_clipped", "the same, none below 0", eigh_clipped),
    ("cut_off", "0 below u σ_1", _change(_smallest_lost)),
    ("from_zero", "i + j + 1 for i + j", _entries(lambda s: 2 / ((s + 1) ** 3 - s - 1), 0)),
    ("from_two", "i, j from 2", _entries(_usual, 2)),
    ("without_two", "1/(s³ − s)", _entries(lambda s: _usual(s) / 2)),
    ("cube_only", "2/s³", _entries(lambda s: 2 / s**3)),
    ("sum", "2/(s³ + s)", _entries(lambda s: 2 / (s**3 + s))),
    ("hilbert", "1/(s − 1)", _entries(lambda s: 1 / (s - 1))),
    ("scaled", "φ σ^¼, as the filters are used", _change(lambda s, x: (s, x * s[:, None] ** 0.25))),
    ("scaled_by_root", "φ √σ", _change(lambda s, x: (s, x * np.sqrt(s)[:, None]))),
    ("singular_values", "√σ", _change(lambda s, x: (np.sqrt(s), x))),
    ("squared", "σ²", _change(lambda s, x: (s**2, x))),
    ("normalised", "σ/σ_1", _change(lambda s, x: (s / s[0], x))),
    ("ascending", "the smallest of them first", _change(lambda s, x: (s[::-1], x[::-1]))),
    ("vectors_ascending", "vectors in the other order", _change(lambda s, x: (s, x[::-1]))),
    ("columns", "one eigenvector a column", _change(lambda s, x: (s, x.T.copy()))),
    ("reversed", "time reversed", _change(lambda s, x: (s, x[:, ::-1]))),
    ("negative", "first entries negative", _change(lambda s, x: (s, -x))),
    ("last_positive", "last entries positive", _change(_last_positive)),
    ("largest_positive", "largest entries positive", _change(_largest_positive)),
    ("moduli", "|φ|", _change(lambda s, x: (s, np.abs(x)))),
    ("of_length_l", "φ √l", _change(lambda s, x: (s, x * np.sqrt(x.shape[1])))),
    ("alternating", "φ_j (−1)^j", alternating),
    ("of_one_more", "filters of l + 1 samples", of_one_more),
    ("in_single", "single precision inside", in_single),
    ("narrow", "single precision returned", _change(
        lambda s, x: (s.astype(np.float32), x.astype(np.float32))
    )),
]  # fmt: skip


def _keywords(function):
    return lambda *, l, k: function(l, k)


DEVIATIONS = [
    Deviation("spectral_filters", n, "value[float64]", w, _keywords(f)) for n, w, f in BUGS
]
