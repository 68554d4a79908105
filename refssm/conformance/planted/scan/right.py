"""Right scans into which bugs are planted."""

import numpy as np


def hillis_steele(a, b):
    """The associative scan by log₂ l passes over all steps."""
    a, x = (y.astype(np.result_type(a, b)) for y in np.broadcast_arrays(a, b))
    step = 1
    while step < x.shape[-2]:
        x[..., step:, :] = a[..., step:, :] * x[..., :-step, :] + x[..., step:, :]
        a[..., step:, :] = a[..., step:, :] * a[..., :-step, :]
        step *= 2
    return x


def started(scan):
    """The scan from a state: a_0 x0 is added to the first input."""

    def scan_from(a, b, x0):
        first = a[..., :1, :] * x0[..., None, :] + b[..., :1, :]
        return scan(a, np.concatenate([first, b[..., 1:, :]], axis=-2))

    return scan_from
