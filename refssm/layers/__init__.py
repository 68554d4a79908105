"""Layers: operators put together, with parameters, states, and gradients by hand."""

from refssm.layers._layer import Layer, Parameters, operators

__all__ = ["Layer", "Parameters", "operators"]
