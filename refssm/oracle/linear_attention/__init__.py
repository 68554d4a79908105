"""Oracles for refssm.linear_attention."""

from refssm.oracle.linear_attention.delta_dplr import *
from refssm.oracle.linear_attention.gates import *
from refssm.oracle.linear_attention.recurrences import *
from refssm.oracle.linear_attention.stages import *
