"""The impulse responses of all stages of a cascade of all-passes.

    s_{j+1,k} = ρ s_{j+1,k−1} + s_{j,k−1} − ρ s_{j,k},   s_{0,k} = 1 for k = 0, else 0

Stage j+1 filters the output of stage j by (x − ρ)/(1 − ρ x), x the delay. Its modulus is 1 on the
whole circle, so s_j has the 2-norm 1 for every j.
"""

import numpy as np

from refssm._numerics.overridable import overridable


def pole(dt):
    """ρ = (1 − dt)/(1 + dt)."""
    return (1 - dt) / (1 + dt)


@overridable
def all_pass_responses(dt, count, l):
    """s_{j,k}, j < count, k < l: (…, count, l), at least in double precision.

    Wave t has the entries with j + k = t; it follows from the two waves before it. The judge's
    tracked arrays bring their own rule (`__array_function__`): moduli of the terms would grow
    without bound, the errors do not.
    """
    rho = pole(dt.astype(np.result_type(dt, np.float64)))[..., None]
    wave = np.broadcast_to((np.arange(count) == 0).astype(rho.dtype), (*dt.shape, count))
    waves, earlier = [wave], np.zeros_like(wave)
    for _ in range(l + count - 2):
        later = np.zeros_like(wave)
        later[..., 1:] = rho * (wave[..., 1:] - wave[..., :-1]) + earlier[..., :-1]
        earlier, wave = wave, later
        waves.append(wave)
    j, k = np.arange(count)[:, None], np.arange(l)
    return np.stack(waves, axis=-2)[..., j + k, j]
