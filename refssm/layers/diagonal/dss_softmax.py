"""DSS-softmax: kernels whose modes are divided by their sums over the signal [gupta2022dss].

    K_k = Re Σ_n (C_n/w_n) e^{dt w_n k} / Σ_{r<l} e^{dt w_n r},   dt = e^{log_dt}
    y = GLU(GELU(K * u + D u) W + b)

All channels share the n poles w, which may grow or decay. The kernel depends on the length l of the
signal: another length is another system. So the layer has no states.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import complex_entries, layer_signed_modes, log_steps, shifts, skips
from refssm.layers._frame import Layer, Parameters, of_one_length, parameter
from refssm.layers._parts import bank
from refssm.layers.diagonal.dss_exp import started


@dataclass(frozen=True)
class DSSSoftmax(Parameters):
    """Parameters of `dss_softmax`."""

    log_dt: np.ndarray = parameter(
        "h", "log of a step from 1e-3 to 1e-1, uniform", "system", domain=log_steps
    )
    w: np.ndarray = parameter(
        "n", "eigenvalues of HiPPO-N, Im w > 0", "system", domain=layer_signed_modes
    )
    C: np.ndarray = parameter("h n", "both parts normal", domain=complex_entries)
    D: np.ndarray = parameter("h", "normal", domain=skips)
    W: np.ndarray = parameter("h 2h", "uniform between ±1/√h")
    b: np.ndarray = parameter("2h", "uniform between ±1/√h", domain=shifts)


def init(
    rng, *, h, n=64, poles="hippo-n", steps="vector", dt_min=initial.DT_MIN, dt_max=initial.DT_MAX
) -> DSSSoftmax:
    """New parameters in double precision; the options are those of `dss_exp`."""
    w, log_dt, *others = started(rng, poles, h, n, steps=steps, dt_min=dt_min, dt_max=dt_max)
    return DSSSoftmax(*[log_dt, w + 0j, *others])


def prepared(ops, p, l):
    """The kernels for l steps, and the function from their gradient to that of the parameters."""
    dt = np.exp(p.log_dt)

    def back(dq):
        dw, dC, ddt = ops.dss_softmax_kernel_vjp(dq.K.astype(p.w.dtype), p.w, p.C, dt, l=l)
        return DSSSoftmax(ddt * dt, dw, dC, dq.D, dq.W, dq.b)

    return bank.Filters(ops.dss_softmax_kernel(p.w, p.C, dt, l=l).real, p.D, p.W, p.b), back


DSS_SOFTMAX_LAYER = Layer(
    name="dss_softmax", kind=DSSSoftmax, init=init, prepared=prepared, run=bank.run,
    stateful=of_one_length, source="gupta2022dss",
    traits=frozenset({"time-invariant", "transform"}),
    tags=("DSS_softmax layer", "DSS version softmax"),
)  # fmt: skip
