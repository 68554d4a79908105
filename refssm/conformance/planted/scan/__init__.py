"""Planted bugs of the family `scan`."""

from refssm.conformance.planted.cancelling import beside_forms
from refssm.conformance.planted.recurrences import planted_in
from refssm.conformance.planted.scan.dense import DENSE, DENSE_FROM, VARYING
from refssm.conformance.planted.scan.diagonal import DIAGONAL
from refssm.conformance.planted.scan.linear import LINEAR, LINEAR_FROM
from refssm.conformance.planted.scan.packed import PACKED, STEP
from refssm.scan import linear

PLANTINGS = [LINEAR, LINEAR_FROM, PACKED, STEP, DENSE, DENSE_FROM, *VARYING, *DIAGONAL]
BUGS = [bug for planting in PLANTINGS for bug in planting.bugs] + beside_forms("scan")
BUGS += planted_in(linear.LINEAR, "float32")
