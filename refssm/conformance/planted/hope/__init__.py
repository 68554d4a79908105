"""Planted bugs in HOPE operators."""

from refssm.conformance.planted.hope import stream
from refssm.conformance.planted.hope.transfer import ALIASED, EXPONENTIAL, POWER, TRANSFER, WHOLE

HERE = (TRANSFER, WHOLE, ALIASED, POWER, EXPONENTIAL)
BUGS = [*(bug for planting in HERE for bug in planting.bugs), *stream.BUGS]
