"""refssm: numerical truth for state-space sequence models.

The reference operators are NumPy functions named as in the literature; `refssm verify` judges
anybody's implementation of them.
"""

import sys
from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"

# what each family exports; `__init__.pyi` says the same to type checkers
_FAMILIES = {
    "associative": ("associative_scan",),
    "bounds": (
        "markov_perturbation_bound",
        "pole_perturbation_bound",
        "residue_perturbation_bound",
    ),
    "cauchy": (
        "cauchy_kernel",
        "cauchy_kernel_vjp",
        "resolvent_at_roots",
        "resolvent_at_roots_vjp",
    ),
    "convolution": (
        "bidirectional_convolution",
        "bidirectional_convolution_shifted",
        "bidirectional_convolution_shifted_vjp",
        "bidirectional_convolution_vjp",
        "causal_convolution",
        "causal_convolution_direct",
        "causal_convolution_direct_vjp",
        "causal_convolution_vjp",
        "circular_convolution",
        "circular_convolution_vjp",
        "short_convolution",
        "short_convolution_stateful",
        "short_convolution_stateful_vjp",
        "short_convolution_step",
        "short_convolution_step_vjp",
        "short_convolution_vjp",
    ),
    "diagonal": (
        "diagonal_kernel_bilinear",
        "diagonal_kernel_bilinear_vjp",
        "diagonal_kernel_zoh",
        "diagonal_kernel_zoh_vjp",
        "dss_exp_kernel",
        "dss_exp_kernel_vjp",
        "dss_softmax_kernel",
        "dss_softmax_kernel_vjp",
        "ema_kernel",
        "ema_kernel_vjp",
        "shift_kernel",
        "shift_kernel_vjp",
    ),
    "discretize": (
        "discretize_backward",
        "discretize_backward_vjp",
        "discretize_bilinear",
        "discretize_bilinear_vjp",
        "discretize_diagonal_backward",
        "discretize_diagonal_backward_vjp",
        "discretize_diagonal_bilinear",
        "discretize_diagonal_bilinear_vjp",
        "discretize_diagonal_euler",
        "discretize_diagonal_euler_vjp",
        "discretize_diagonal_foh",
        "discretize_diagonal_foh_vjp",
        "discretize_diagonal_gbt",
        "discretize_diagonal_gbt_vjp",
        "discretize_diagonal_impulse",
        "discretize_diagonal_impulse_vjp",
        "discretize_diagonal_mamba",
        "discretize_diagonal_mamba_vjp",
        "discretize_diagonal_zoh",
        "discretize_diagonal_zoh_vjp",
        "discretize_euler",
        "discretize_euler_vjp",
        "discretize_foh",
        "discretize_foh_vjp",
        "discretize_gbt",
        "discretize_gbt_vjp",
        "discretize_impulse",
        "discretize_impulse_vjp",
        "discretize_mamba",
        "discretize_mamba_vjp",
        "discretize_zoh",
        "discretize_zoh_vjp",
    ),
    "dplr": (
        "dplr_kernel",
        "dplr_kernel_aliased",
        "dplr_kernel_aliased_vjp",
        "dplr_kernel_vjp",
    ),
    "hippo": (
        "hippo_chebt",
        "hippo_fourier",
        "hippo_fourier_diagonal",
        "hippo_fourier_naive",
        "hippo_from_measure",
        "hippo_from_measure_scaled",
        "hippo_lagt",
        "hippo_legs",
        "hippo_legt",
        "hippo_lmu",
        "hippo_project",
        "hippo_project_legs",
        "hippo_project_legs_vjp",
        "hippo_project_vjp",
        "hippo_reconstruct_fourier",
        "hippo_reconstruct_fourier_vjp",
        "hippo_reconstruct_lagt",
        "hippo_reconstruct_lagt_vjp",
        "hippo_reconstruct_legs",
        "hippo_reconstruct_legs_vjp",
        "hippo_reconstruct_legt",
        "hippo_reconstruct_legt_vjp",
        "hippo_reconstruct_lmu",
        "hippo_reconstruct_lmu_vjp",
        "hippo_rescale",
        "hippo_rescale_vjp",
        "lru_ring",
        "s4d_inv",
        "s4d_legs",
        "s4d_lin",
        "s4d_quad",
        "s4d_real",
    ),
    "nplr": (
        "block_diagonal",
        "normal_legs",
        "nplr_fourier",
        "nplr_fourier_naive",
        "nplr_lagt",
        "nplr_legs",
        "nplr_legt",
    ),
    "scan": (
        "dense_scan",
        "dense_scan_from",
        "dense_scan_from_vjp",
        "dense_scan_vjp",
        "diagonal_ssm",
        "diagonal_ssm_bidirectional",
        "diagonal_ssm_bidirectional_vjp",
        "diagonal_ssm_real",
        "diagonal_ssm_real_stateful",
        "diagonal_ssm_real_stateful_vjp",
        "diagonal_ssm_real_vjp",
        "diagonal_ssm_stateful",
        "diagonal_ssm_stateful_vjp",
        "diagonal_ssm_varying",
        "diagonal_ssm_varying_stateful",
        "diagonal_ssm_varying_stateful_vjp",
        "diagonal_ssm_varying_vjp",
        "diagonal_ssm_vjp",
        "linear_scan",
        "linear_scan_from",
        "linear_scan_from_vjp",
        "linear_scan_packed",
        "linear_scan_packed_vjp",
        "linear_scan_vjp",
        "linear_step",
        "linear_step_vjp",
    ),
    "selective_scan": (
        "mamba_scan",
        "mamba_scan_packed",
        "mamba_scan_packed_vjp",
        "mamba_scan_stateful",
        "mamba_scan_stateful_vjp",
        "mamba_scan_vjp",
        "mamba_step",
        "mamba_step_vjp",
        "selective_scan",
        "selective_scan_packed",
        "selective_scan_packed_vjp",
        "selective_scan_stateful",
        "selective_scan_stateful_vjp",
        "selective_scan_vjp",
        "selective_step",
        "selective_step_vjp",
    ),
    "ssd": (
        "ssd_chunked",
        "ssd_chunked_packed",
        "ssd_chunked_packed_vjp",
        "ssd_chunked_stateful",
        "ssd_chunked_stateful_vjp",
        "ssd_chunked_vjp",
        "ssd_quadratic",
        "ssd_quadratic_vjp",
        "ssd_recurrent",
        "ssd_recurrent_packed",
        "ssd_recurrent_packed_vjp",
        "ssd_recurrent_stateful",
        "ssd_recurrent_stateful_vjp",
        "ssd_recurrent_vjp",
        "ssd_step",
        "ssd_step_vjp",
    ),
    "vandermonde": (
        "vandermonde_kernel",
        "vandermonde_kernel_real",
        "vandermonde_kernel_real_vjp",
        "vandermonde_kernel_vjp",
    ),
    "hope": (
        "hope_kernel",
        "hope_kernel_aliased",
        "hope_kernel_aliased_vjp",
        "hope_kernel_vjp",
        "hope_transfer",
        "hope_transfer_vjp",
    ),
    "krylov": (
        "krylov_kernel",
        "krylov_kernel_vjp",
    ),
}
_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names}

__all__ = sorted(_FAMILY_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    if name not in _FAMILY_OF:
        raise AttributeError(f"module 'refssm' has no attribute {name!r}")
    return getattr(import_module(f"refssm.{_FAMILY_OF[name]}"), name)


def __dir__():
    return [*__all__, "__version__"]


class _Package(ModuleType):
    """Keeps the operator where its family has the same name: `refssm.selective_scan` is both."""

    def __setattr__(self, name, value):
        if not (name in _FAMILY_OF and isinstance(value, ModuleType)):  # set by importing it
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
