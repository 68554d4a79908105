"""Oracles for refssm.gated_units."""

from refssm.oracle.gated_units.steps import *
