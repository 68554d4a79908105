"""Enclosures for refssm.linear_attention."""

from refssm.enclosure.linear_attention.delta_dplr import *
from refssm.enclosure.linear_attention.gates import *
from refssm.enclosure.linear_attention.recurrences import *
from refssm.enclosure.linear_attention.stages import *
