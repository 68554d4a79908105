"""Planted bugs in layers: in parameters, in gradients, in states, and between the operators."""

from refssm.conformance.planted.layers.attention import OF_ATTENTION
from refssm.conformance.planted.layers.deltanet import OF_DELTANET
from refssm.conformance.planted.layers.diagonal import OF_DIAGONAL
from refssm.conformance.planted.layers.gates import OF_DIRECTIONS, OF_GATES
from refssm.conformance.planted.layers.parameters import OF_GRADIENTS, OF_PARAMETERS, OF_STATES

BUGS = [
    *OF_PARAMETERS,
    *OF_GATES,
    *OF_DIRECTIONS,
    *OF_ATTENTION,
    *OF_DELTANET,
    *OF_DIAGONAL,
    *OF_GRADIENTS,
    *OF_STATES,
]
