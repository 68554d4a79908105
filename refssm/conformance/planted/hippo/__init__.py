"""Planted bugs in HiPPO's operators and their gradients, collected."""

from refssm.conformance.planted.hippo import fourier, memory, polynomials, reconstruct

FILES = (polynomials, fourier, memory, reconstruct)
BUGS = [bug for file in FILES for planting in file.PLANTINGS for bug in planting.bugs]
