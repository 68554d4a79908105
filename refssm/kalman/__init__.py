"""Kalman filter and smoother of linear Gaussian systems [kalman1960, rauch1965].

    x_k = A x_{k−1} + w_k,   w_k ~ N(0, Q)
    y_k = C x_k + v_k,       v_k ~ N(0, R),     x_{−1} ~ N(m0, P0)

The first step is a step like all others: x_{−1} is the state before the first measurement, so a
filter goes on from the last mean and covariance of another one. The filter knows y_0 … y_k of x_k,
the smoother all measurements. Both are exact: the distribution of x_k is Gaussian.
"""

from refssm._declaration.names import export
from refssm.kalman.filtering import *
from refssm.kalman.parallel import *
from refssm.kalman.smoothing import *

export(globals())
