"""Planted bugs in HiPPO's operators and their gradients, collected."""

from refssm.conformance.planted.hippo import fourier, memory, polynomials, reconstruct

BUGS = [
    bug
    for file in (polynomials, fourier, memory, reconstruct)
    for p in file.PLANTINGS
    for bug in p.bugs
]
