"""scipy.signal.dlsim: a linear scan with A = diag a, B = C = I.

Its recurrence is x_{k+1} = A x_k + B u_k, one step behind refssm's, so a zero sample is appended
and the first output dropped.
"""

import numpy as np
from scipy.signal import dlsim

from refssm.subjects import constant_in_time
from refssm.testing import implements


@implements("linear_scan", only=constant_in_time, dtypes=("float64",))
def linear_scan(a, b):
    """dlsim for each member of the batch."""
    if b.shape[-2] == 0:
        raise NotImplementedError("dlsim wants at least one sample")
    a, b = np.broadcast_arrays(a, b)
    x, I = np.empty(b.shape), np.eye(b.shape[-1])
    for i in np.ndindex(*b.shape[:-2]):
        system = (np.diag(a[i][0]), I, I, 0 * I, 1.0)
        u = np.concatenate([b[i], np.zeros_like(b[i][:1])])
        x[i] = dlsim(system, u)[1][1:]
    return x
