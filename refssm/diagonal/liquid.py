"""Kernels of a liquid system, which multiplies its state by its input [hasani2022liquids4].

    x_k = (a + B u_k) x_{k−1} + B u_k,   y_k = C x_k,   from rest, mode by mode

The part of y that has degree d in the input is a sum over products of d inputs, in which only the
oldest one has a lag:

    y^d_k = Σ_{t_1<…<t_d≤k} K^d_{k−t_1−(d−1)} u_{t_1} ⋯ u_{t_d},    K^d_m = Σ_n C_n B_n^d a_n^m

Liquid-S4 keeps d = 2 and products of neighbours: y²_k = Σ_{t≤k} K²_{k−t} u_t u_{t−1}, the causal
convolution of K² with these products in their own order of time.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.diagonal.sums import against, powers, slope_against, total
from refssm.domains import coefficients, fixed_decays, liquid_degrees


def liquid_kernel(a, B, C, *, l, degree=2):
    """K_m = Σ_n C_n B_n^d a_n^m, m = 0 … l−1, d = `degree`.

    Signature ``(n),(n),(n)->(l)``: `a` the discrete poles, `B` and `C` the input and output
    coefficients, `n` modes, the keyword `l`, the length, and the keyword `degree`, the number of
    inputs in each product, ≥ 1; 1 is the kernel of the linear system. Leading axes broadcast. Any
    of float32, float64, longdouble and their complex types; the result has ``np.result_type(a, B,
    C)``. Units: `a` has none, `K` those of `C` times `B` to the power of d.

    Raises ValueError if sizes disagree or a keyword is out of range, TypeError for other types. NaN
    in `a` reaches every entry except the first; NaN in `B` or `C` reaches all. Source:
    [hasani2022liquids4].

    >>> import refssm
    >>> refssm.liquid_kernel([0.5], [3.0], [1.0], l=3)
    array([9.  , 4.5 , 2.25])
    """
    a = a.astype(np.result_type(a, B, C), copy=False)
    return total(C * B**degree, powers(a, l))


def liquid_kernel_vjp(dk, a, B, C, *, l, degree=2):
    """v = C B^d;  da = Σ_m m dk_m (v a^{m−1})*,  dB = (d C B^{d−1})* S,  dC = (B^d)* S,

    S = Σ_m dk_m (a^m)*. Returns `(da, dB, dC)`, shaped like `a`, `B` and `C`.
    """
    E = powers(a.astype(np.result_type(a, B, C), copy=False), l)
    S = against(dk, E)
    dB = (degree * C * B ** (degree - 1)).conj() * S
    da = slope_against(dk, C * B**degree, E)
    return unbroadcast_each((da, dB, (B**degree).conj() * S), (a, B, C))


LIQUID_KERNEL = Operator(
    reference=liquid_kernel,
    signature="(n),(n),(n)->(l)",
    inputs={"a": fixed_decays, "B": coefficients, "C": coefficients},
    parameters={"degree": liquid_degrees},
    outputs=("k",),
    batch="d, d, d",
    traits=frozenset({"causal", "linear:C"}),
    citation="hasani2022liquids4",
    tags=("Liquid-S4 kernel", "liquid convolution kernel", "PB kernel of products of inputs"),
)
liquid_kernel = LIQUID_KERNEL.checked(liquid_kernel)
liquid_kernel_vjp = LIQUID_KERNEL.checked_vjp(liquid_kernel_vjp)
