"""Planted bugs in layers: in parameters, in gradients, in states, and between the operators."""

from refssm.conformance.planted.layers import directions, gates, gradients, parameters, states

BUGS = [*parameters.BUGS, *gates.BUGS, *directions.BUGS, *gradients.BUGS, *states.BUGS]
