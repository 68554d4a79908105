"""Honest implementations of the family `selective_scan`."""

from honest.recurrences import forms_of
from honest.selective_scan.programs import IMPLEMENTATIONS as SCANS
from refssm.selective_scan.mamba import MAMBA
from refssm.selective_scan.selective import SELECTIVE

IMPLEMENTATIONS = [*SCANS, *forms_of(MAMBA), *forms_of(SELECTIVE)]
