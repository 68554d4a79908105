"""Discretization: turn a continuous system into a recurrence, by one of eight rules.

    x'(t) = A x(t) + B u(t)   →   x_k = Ā x_{k−1} + B̄ u_k

Rational: the generalized bilinear map, Ā = (I − α dt A)⁻¹ (I + (1 − α) dt A), with Euler's rule (α
= 0), the trapezoidal one (½, Tustin) and backward Euler (1) by name. Exponential, Ā = e^{dt A}: the
input is constant over a step, piecewise linear, or impulses; or B̄ = dt B as in Mamba. Each rule
exists for a matrix and for a diagonal A. A leading axis on `dt` gives one system per time step.
"""

from refssm._declaration.names import export
from refssm.discretize.diagonal import *
from refssm.discretize.hold import *
from refssm.discretize.rational import *

export(globals())
