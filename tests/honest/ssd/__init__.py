"""Honest implementations of the family `ssd`."""

from honest.recurrences import forms_of
from honest.ssd.programs import IMPLEMENTATIONS as SCANS
from refssm.ssd.chunked import CHUNKED
from refssm.ssd.recurrent import SSD

IMPLEMENTATIONS = [*SCANS, *forms_of(SSD), *forms_of(CHUNKED, SSD.step)]
