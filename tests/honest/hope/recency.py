"""Honest recency biases: powers, exponentials, products one by one, and PyTorch's."""

# pyright: reportMissingImports=false
# (torch may be absent)

import numpy as np

from honest import Honest
from refssm.hope import HOPE_RECENCY_EXPONENTIAL, HOPE_RECENCY_POWER


def _indices(h):
    return np.arange(h.shape[-1], dtype=np.finfo(h.dtype).dtype)


def numpy_power(h, gamma):
    """(j + 1)**γ, as in the published code."""
    return h * (_indices(h) + 1) ** gamma[..., None]


def base_two(h, gamma):
    """2^(γ log₂(j + 1))."""
    return h * np.exp2(gamma[..., None] * np.log2(_indices(h) + 1))


def parameter_by_parameter(h, gamma):
    """A loop over j."""
    columns = [h[..., j] * np.power(h.real.dtype.type(j + 1), gamma) for j in range(h.shape[-1])]
    return np.stack(columns, axis=-1) if columns else h * gamma[..., None]


def torch_power(h, gamma):
    """PyTorch's power."""
    import torch

    h, gamma = (torch.from_numpy(np.array(a)) for a in (h, gamma))
    j = torch.arange(1, h.shape[-1] + 1, dtype=gamma.dtype)
    return (h * j ** gamma[..., None]).numpy()


def one_by_one(h, beta):
    """A loop over j."""
    columns = [h[..., j] * np.exp(-(beta * j)) for j in range(h.shape[-1])]
    return np.stack(columns, axis=-1) if columns else h * beta[..., None]


def base_two_exponential(h, beta):
    """2^(−βj log₂ e)."""
    return h * np.exp2(-beta[..., None] * _indices(h) * np.log2(h.real.dtype.type(np.e)))


def two_halves(h, beta):
    """The square of e^{−βj/2}."""
    half = np.exp(-beta[..., None] * _indices(h) / 2)
    return h * half * half


def torch_exp(h, beta):
    """PyTorch's exponential."""
    import torch

    h, beta = (torch.from_numpy(np.array(a)) for a in (h, beta))
    j = torch.arange(h.shape[-1], dtype=beta.dtype)
    return (h * torch.exp(-beta[..., None] * j)).numpy()


POWER, EXPONENTIAL = HOPE_RECENCY_POWER, HOPE_RECENCY_EXPONENTIAL
FORMS = {
    POWER: (numpy_power, base_two, parameter_by_parameter),
    EXPONENTIAL: (one_by_one, two_halves, base_two_exponential),
}
IMPLEMENTATIONS = [
    *(Honest(op.name, form.__name__, form) for op, forms in FORMS.items() for form in forms),
    Honest(POWER.name, "torch_power", torch_power, needs="torch"),
    Honest(EXPONENTIAL.name, "torch_exp", torch_exp, needs="torch"),
]
