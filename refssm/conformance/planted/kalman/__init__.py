"""Planted bugs in the Kalman filter and smoother."""

from refssm.conformance.planted.kalman.filters import FILTER, SMOOTHER

BUGS = [*FILTER.bugs, *SMOOTHER.bugs]
