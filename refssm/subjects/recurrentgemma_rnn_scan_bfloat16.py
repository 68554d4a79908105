# pyright: reportMissingImports=false
"""RecurrentGemma's `rnn_scan` in PyTorch, in bfloat16: it accumulates in float32."""

import torch

from refssm.subjects.clones import module
from refssm.testing import Budget, implements

rnn_scan = module("recurrentgemma", "recurrentgemma.torch.layers").rnn_scan

DECLARED = {
    "framework": "torch",
    "dtypes": ("bfloat16",),
    "accuracy": Budget(computes="float32"),
}


@implements("linear_scan_packed", layout="b l n, b l n, b l -> b l n", **DECLARED)
def linear_scan_packed(a, b, resets):
    """rnn_scan with resets, from rest."""
    return rnn_scan(b, a, resets, None)[0]


@implements("linear_scan_from", layout="b l n, b l n, b n -> b l n", **DECLARED)
def linear_scan_from(a, b, x0):
    """rnn_scan without resets, from a state in float32."""
    return rnn_scan(b, a, torch.zeros(b.shape[:2], dtype=torch.bool), x0.float())[0]
