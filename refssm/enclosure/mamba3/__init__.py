"""Enclosures for refssm.mamba3."""

from refssm.enclosure.mamba3.siso import *
