"""Planted bugs in HOPE operators, collected from the files of its forms."""

from refssm.conformance.planted.hope import stream
from refssm.conformance.planted.hope.kernel import ALIASED, WHOLE
from refssm.conformance.planted.hope.recency import EXPONENTIAL, POWER
from refssm.conformance.planted.hope.transfer import TRANSFER

HERE = (TRANSFER, WHOLE, ALIASED, POWER, EXPONENTIAL)
BUGS = [*(bug for planting in HERE for bug in planting.bugs), *stream.BUGS]
