"""Planted bugs in spectral filters."""

import numpy as np

from refssm.conformance.planted.arithmetic import single
from refssm.conformance.planted.planting import Planting, of_each_result, of_result
from refssm.spectral import SPECTRAL_FILTERS

FILTERS = Planting(SPECTRAL_FILTERS, "float64")


def _positive(sigma, phi):
    """The filters with positive first entries."""
    return sigma, phi * np.where(phi[:, :1] < 0, -1, 1)


def _usual(s):
    return 2 / (s**3 - s)


def _lapack(entry, start=1, then=_positive):
    """The k largest eigenpairs, by LAPACK, of a matrix with entries entry(s), s = i + j."""

    def filters(right, *, l, k):
        i = np.arange(start, start + l)
        sigma, V = np.linalg.eigh(entry(np.add.outer(i, i).astype(float)))
        return then(sigma[::-1][:k], np.ascontiguousarray(V[:, ::-1][:, :k].T))

    return filters


def _of_one_more(right, *, l, k):
    """The filters of l + 1 samples, cut to l."""
    sigma, phi = right(l=l + 1, k=k)
    return sigma, np.ascontiguousarray(phi[:, :l])


FILTERS.plant(
    ("eigh", "LAPACK's eigenvalues: noise below 1e-17", _lapack(_usual)),
    ("eigh_as_it_comes", "the same, any signs", _lapack(_usual, then=lambda s, x: (s, x))),
    ("eigh_clipped", "the same, none below 0",
     _lapack(_usual, then=lambda s, x: _positive(np.maximum(s, 0), x))),
    ("cut_off", "0 below u σ_1", of_result(lambda s, x: (np.where(s < 2.0**-52 * s[0], 0, s), x))),
    ("from_zero", "i + j + 1 for i + j", _lapack(lambda s: 2 / ((s + 1) ** 3 - s - 1), 0)),
    ("from_two", "i, j from 2", _lapack(_usual, 2)),
    ("without_two", "1/(s³ − s)", _lapack(lambda s: _usual(s) / 2)),
    ("cube_only", "2/s³", _lapack(lambda s: 2 / s**3)),
    ("sum", "2/(s³ + s)", _lapack(lambda s: 2 / (s**3 + s))),
    ("hilbert", "1/(s − 1)", _lapack(lambda s: 1 / (s - 1))),
    ("scaled", "φ σ^¼, as the filters are used",
     of_result(lambda s, x: (s, x * s[:, None] ** 0.25))),
    ("scaled_by_root", "φ √σ", of_result(lambda s, x: (s, x * np.sqrt(s)[:, None]))),
    ("singular_values", "√σ", of_result(lambda s, x: (np.sqrt(s), x))),
    ("squared", "σ²", of_result(lambda s, x: (s**2, x))),
    ("normalised", "σ/σ_1", of_result(lambda s, x: (s / s[0], x))),
    ("ascending", "the smallest of them first", of_result(lambda s, x: (s[::-1], x[::-1]))),
    ("vectors_ascending", "vectors in the other order", of_result(lambda s, x: (s, x[::-1]))),
    ("columns", "one eigenvector a column", of_result(lambda s, x: (s, x.T.copy()))),
    ("reversed", "time reversed", of_result(lambda s, x: (s, x[:, ::-1]))),
    ("negative", "first entries negative", of_result(lambda s, x: (s, -x))),
    ("last_positive", "last entries positive", of_result(lambda s, x: (s, x * np.sign(x[:, -1:])))),
    ("largest_positive", "largest entries positive", of_result(lambda s, x:
     (s, x * np.sign(np.take_along_axis(x, np.abs(x).argmax(1)[:, None], 1))))),
    ("moduli", "|φ|", of_result(lambda s, x: (s, np.abs(x)))),
    ("of_length_l", "φ √l", of_result(lambda s, x: (s, x * np.sqrt(x.shape[1])))),
    # the matrix with signs (−1)^{i+j}
    ("alternating", "φ_j (−1)^j", of_result(lambda s, x: (s, x * (-1.0) ** np.arange(x.shape[1])))),
    ("of_one_more", "filters of l + 1 samples", _of_one_more),
    ("in_single", "single precision inside", of_each_result(lambda x: single(x).astype(float))),
    ("narrow", "single precision returned", of_each_result(single)),
)  # fmt: skip
BUGS = FILTERS.bugs
