"""Oracles for refssm.mamba3."""

from refssm.oracle.mamba3.siso import *
