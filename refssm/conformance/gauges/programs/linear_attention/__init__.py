"""Programs of delta rules: all states in four ways, outputs and gradients from them."""

from refssm.conformance.gauges.programs.linear_attention import dplr, recurrent

OUTPUTS = recurrent.OUTPUTS | dplr.OUTPUTS
GRADIENTS = recurrent.GRADIENTS | dplr.GRADIENTS
