"""Programs by which bounds are measured: right, of different kinds, without BLAS and LAPACK
(but for gramians).

By operator: `OUTPUTS` of the forward call, `GRADIENTS` of the VJP, with the cotangents first. Each
is within 16 of the best on every preset of its operator. A program returns None for a case that it
does not take.

`AGAIN_OUTPUTS` and `AGAIN_GRADIENTS` have further programs, which run before a result is refused:
those that round the decays of all steps to one side, that take the sine of a rounded angle, that
round the nodes of a transform, and that turn the state to another basis.
"""

from refssm.conformance.gauges.programs import (
    cauchy,
    discretize,
    dplr,
    dplr_gradients,
    hankel,
    hippo,
    hope,
    krylov,
    linear_attention,
    scan,
)

_OUTPUTS = (discretize, dplr, hankel, hippo, hope, krylov, linear_attention, scan)
_GRADIENTS = (
    cauchy, discretize, dplr_gradients, hankel, hippo, hope, krylov, linear_attention, scan,
)  # fmt: skip
OUTPUTS = {name: made for family in _OUTPUTS for name, made in family.OUTPUTS.items()}
GRADIENTS = {name: made for family in _GRADIENTS for name, made in family.GRADIENTS.items()}
AGAIN_OUTPUTS = {
    name: made for family in (dplr, hankel, scan) for name, made in family.AGAIN_OUTPUTS.items()
}
AGAIN_GRADIENTS = {
    name: made
    for family in (dplr_gradients, hope, scan)
    for name, made in family.AGAIN_GRADIENTS.items()
}
