"""Oracles for refssm.layers."""

from refssm.oracle.layers.attention import *
from refssm.oracle.layers.convolutions import *
from refssm.oracle.layers.diagonal import *
from refssm.oracle.layers.gated import *
from refssm.oracle.layers.softmax import *
from refssm.oracle.layers.systems import *
