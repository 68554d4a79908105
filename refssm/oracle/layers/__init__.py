"""Oracles for refssm.layers."""

from refssm.oracle.layers.attention import *
from refssm.oracle.layers.diagonal import *
from refssm.oracle.layers.systems import *
