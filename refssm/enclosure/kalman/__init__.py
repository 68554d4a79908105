"""Enclosures for refssm.kalman."""

from refssm.enclosure.kalman.precisions import *
