"""Layers: operators put together, with parameters, states, and gradients by hand.

`refssm.layers.<name>_layer` and its VJP are the functions of a layer's operator, by which the judge
judges somebody's block; so is `<name>_layer_stateful`.
"""

from refssm.layers._frame import Layer, Parameters
from refssm.layers._namespaces import operators
from refssm.layers.catalog import FUNCTIONS

__all__ = ["Layer", "Parameters", "operators"]

globals().update(FUNCTIONS)
