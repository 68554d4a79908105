"""All layers by name, and the operators by which the judge judges blocks."""

from refssm.layers._derived import operators_of, public_functions
from refssm.layers.attention.attention import ATTENTION_LAYER
from refssm.layers.attention.bigbird import BIGBIRD_LAYER
from refssm.layers.attention.gated_deltanet import GATED_DELTANET_LAYER
from refssm.layers.attention.linear_attention import LINEAR_ATTENTION_LAYER
from refssm.layers.attention.mamba2 import MAMBA2_LAYER
from refssm.layers.attention.retnet import RETNET_LAYER
from refssm.layers.convolutions.dilated_convolution import DILATED_CONVOLUTION_LAYER
from refssm.layers.convolutions.long_convolution import LONG_CONVOLUTION_LAYER
from refssm.layers.convolutions.multiscale_convolution import MULTISCALE_CONVOLUTION_LAYER
from refssm.layers.diagonal.dss_exp import DSS_EXP_LAYER
from refssm.layers.diagonal.dss_softmax import DSS_SOFTMAX_LAYER
from refssm.layers.diagonal.liquid_s4 import LIQUID_S4_LAYER
from refssm.layers.diagonal.s5_discrete import S5_DISCRETE_LAYER
from refssm.layers.diagonal.spectral_ssm import SPECTRAL_SSM_LAYER
from refssm.layers.diagonal.stable_ssm import (
    STABLE_SSM_BEST_LAYER,
    STABLE_SSM_EXP_LAYER,
    STABLE_SSM_SOFTPLUS_LAYER,
)
from refssm.layers.gated.gss import GSS_LAYER
from refssm.layers.gated.h3 import H3_LAYER
from refssm.layers.gated.mega_ema import MEGA_EMA_LAYER
from refssm.layers.gated.rglru import RGLRU_LAYER
from refssm.layers.hippo_rnn import HIPPO_RNN_LAYER
from refssm.layers.hope import HOPE_LAYER
from refssm.layers.hope_bidirectional import HOPE_BIDIRECTIONAL_LAYER
from refssm.layers.lru import LRU_LAYER
from refssm.layers.mamba import MAMBA_LAYER
from refssm.layers.rnn import RNN_LAYER
from refssm.layers.s4 import S4_LAYER
from refssm.layers.s4d import S4D_LAYER
from refssm.layers.s4d_bilinear import S4D_BILINEAR_LAYER
from refssm.layers.s5 import S5_LAYER
from refssm.layers.s5_bidirectional import S5_BIDIRECTIONAL_LAYER
from refssm.layers.s5_irregular import S5_IRREGULAR_LAYER

LAYERS = (
    S4_LAYER, S4D_LAYER, S4D_BILINEAR_LAYER, S5_LAYER, S5_BIDIRECTIONAL_LAYER, S5_IRREGULAR_LAYER,
    MAMBA_LAYER, HOPE_LAYER, HOPE_BIDIRECTIONAL_LAYER, LRU_LAYER, RNN_LAYER, HIPPO_RNN_LAYER,
    LINEAR_ATTENTION_LAYER, RETNET_LAYER, MAMBA2_LAYER, GATED_DELTANET_LAYER,
    ATTENTION_LAYER, BIGBIRD_LAYER, LONG_CONVOLUTION_LAYER, MULTISCALE_CONVOLUTION_LAYER,
    DILATED_CONVOLUTION_LAYER, H3_LAYER, RGLRU_LAYER, GSS_LAYER, MEGA_EMA_LAYER, DSS_EXP_LAYER,
    DSS_SOFTMAX_LAYER, STABLE_SSM_EXP_LAYER, STABLE_SSM_SOFTPLUS_LAYER, STABLE_SSM_BEST_LAYER,
    S5_DISCRETE_LAYER, LIQUID_S4_LAYER, SPECTRAL_SSM_LAYER,
)  # fmt: skip
NAMED = {layer.name: layer for layer in LAYERS}

_PAIRS = [(op, layer) for layer in LAYERS if layer.judged for op in operators_of(layer)]
OPERATORS = tuple(op for op, _ in _PAIRS)
FUNCTIONS = {
    name: function for op, layer in _PAIRS for name, function in public_functions(op, layer).items()
}
