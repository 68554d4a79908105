"""Honest implementations of the family `scan`."""

from honest.recurrences import forms_of
from honest.scan.linear import IMPLEMENTATIONS as SCANS
from honest.scan.varying import IMPLEMENTATIONS as VARYING
from refssm.scan.linear import LINEAR

IMPLEMENTATIONS = [*SCANS, *VARYING, *forms_of(LINEAR)]
