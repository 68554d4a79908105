"""Programs of delta rules: all states in four ways, outputs and gradients from them."""

from refssm.conformance.gauges.programs.linear_attention.recurrent import GRADIENTS, OUTPUTS

__all__ = ["GRADIENTS", "OUTPUTS"]
