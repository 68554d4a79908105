"""Planted bugs in layers: in parameters, in gradients, in states, and between the operators."""

from refssm.conformance.planted.layers import gates, gradients, parameters, states

BUGS = [*parameters.BUGS, *gates.BUGS, *gradients.BUGS, *states.BUGS]
