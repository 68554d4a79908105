"""Honest implementations of the family `ssd`."""

from honest.libraries import in_libraries
from honest.recurrences import forms_of
from honest.ssd.mamba2 import IMPLEMENTATIONS as CALLS
from honest.ssd.programs import IMPLEMENTATIONS as SCANS
from refssm.ssd.chunked import CHUNKED
from refssm.ssd.mamba2 import MAMBA2
from refssm.ssd.recurrent import SSD

FORMS = [*forms_of(SSD), *forms_of(CHUNKED, SSD.step), *forms_of(MAMBA2)]
PEERS = in_libraries("recurrences", ["mamba2_scan", "mamba2_step"])
IMPLEMENTATIONS = [*SCANS, *CALLS, *FORMS, *PEERS]
