"""Planted bugs in layers: in parameters, in gradients, in states, and between the operators."""

from refssm.conformance.planted.layers.attention import OF_ATTENTION
from refssm.conformance.planted.layers.convolutions import OF_CONVOLUTIONS
from refssm.conformance.planted.layers.deltanet import OF_DELTANET
from refssm.conformance.planted.layers.diagonal import OF_DIAGONAL
from refssm.conformance.planted.layers.gated import OF_GATED
from refssm.conformance.planted.layers.gates import OF_DIRECTIONS, OF_GATES
from refssm.conformance.planted.layers.parameters import OF_GRADIENTS, OF_PARAMETERS, OF_STATES
from refssm.conformance.planted.layers.softmax import OF_SOFTMAX

BUGS = [
    *OF_PARAMETERS,
    *OF_GATES,
    *OF_DIRECTIONS,
    *OF_ATTENTION,
    *OF_DELTANET,
    *OF_SOFTMAX,
    *OF_CONVOLUTIONS,
    *OF_GATED,
    *OF_DIAGONAL,
    *OF_GRADIENTS,
    *OF_STATES,
]
