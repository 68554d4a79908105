"""What a chunk's triangular system costs if it is solved by a program that exchanges rows.

`numpy.linalg.solve` and `inv` divide by the largest entry of a column. I + L has ones on its
diagonal and is lower triangular, so rows are exchanged only where some |L_ij| = β |k_i·k_j| e^{…}
is above 1, which takes a β above 1. After an exchange each solution has a rounding error of the
largest right-hand side, also of later steps: such a program is right in norm, and neither entry by
entry nor strictly causal. A right-hand side is β (v − Sᵀ k) with S the state before the chunk, in
the reverse pass dY q + dS k with the cotangent of the state behind it. A system may be of the whole
sequence.
"""

import numpy as np

from refssm.conformance.gauges.rules import tree


def of_written(columns, terms, S, resets):
    """The errors of what each step writes: K0 has none, the second gauge one for each column."""
    largest = columns._norm(S, -2)
    for w in columns._windows(terms, S[None]):
        *_, all_S = columns._states(terms.at(w), S, resets[..., w])
        largest = np.maximum(largest, columns._norm(all_S, -2).max(-2))
        S = all_S[..., -1, :, :]
    return _charged(terms, np.abs(terms.v), columns._norm(terms.k), largest)


def of_taken_back(columns, terms, dy, G, resets):
    """The same of the cotangents of what each step writes."""
    largest = columns._norm(G, -2)
    for w in reversed(columns._windows(terms, G[None])):
        all_G, *_, G = columns._cotangents(dy[..., w, :], G, terms.at(w), resets[..., w])
        largest = np.maximum(largest, columns._norm(all_G, -2).max(-2))
    sides = columns._norm(terms.q) * np.abs(dy)
    return _charged(terms, sides, columns._norm(terms.k), largest)


def _charged(terms, sides, sizes, largest):
    """The roundings of a system of all steps, whose right-hand sides are at most as large."""
    longest = sizes.max(-2, initial=0)
    exchanged = (terms.beta[..., None] * sizes * longest[..., None, :] > 1).any(-2)
    total = sides.max(-2, initial=0) + longest * largest
    made = np.where(exchanged, tree(sides.shape[-2]) * total, 0)
    return np.stack([0 * made, made])
