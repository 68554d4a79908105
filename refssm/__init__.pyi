"""The names of refssm for type checkers, which cannot see through its lazy imports."""

from refssm.associative import (
    associative_scan as associative_scan,
)
from refssm.cauchy import (
    cauchy_kernel as cauchy_kernel,
    cauchy_kernel_vjp as cauchy_kernel_vjp,
)
from refssm.convolution import (
    causal_convolution as causal_convolution,
    causal_convolution_direct as causal_convolution_direct,
    causal_convolution_direct_vjp as causal_convolution_direct_vjp,
    causal_convolution_vjp as causal_convolution_vjp,
    short_convolution as short_convolution,
    short_convolution_stateful as short_convolution_stateful,
    short_convolution_stateful_vjp as short_convolution_stateful_vjp,
    short_convolution_step as short_convolution_step,
    short_convolution_step_vjp as short_convolution_step_vjp,
    short_convolution_vjp as short_convolution_vjp,
)
from refssm.discretize import (
    discretize_bilinear as discretize_bilinear,
    discretize_bilinear_vjp as discretize_bilinear_vjp,
    discretize_diagonal_bilinear as discretize_diagonal_bilinear,
    discretize_diagonal_bilinear_vjp as discretize_diagonal_bilinear_vjp,
    discretize_diagonal_zoh as discretize_diagonal_zoh,
    discretize_diagonal_zoh_vjp as discretize_diagonal_zoh_vjp,
    discretize_zoh as discretize_zoh,
    discretize_zoh_vjp as discretize_zoh_vjp,
)
from refssm.scan import (
    dense_scan as dense_scan,
    dense_scan_from as dense_scan_from,
    dense_scan_from_vjp as dense_scan_from_vjp,
    dense_scan_vjp as dense_scan_vjp,
    diagonal_ssm as diagonal_ssm,
    diagonal_ssm_bidirectional as diagonal_ssm_bidirectional,
    diagonal_ssm_bidirectional_vjp as diagonal_ssm_bidirectional_vjp,
    diagonal_ssm_real as diagonal_ssm_real,
    diagonal_ssm_real_stateful as diagonal_ssm_real_stateful,
    diagonal_ssm_real_stateful_vjp as diagonal_ssm_real_stateful_vjp,
    diagonal_ssm_real_vjp as diagonal_ssm_real_vjp,
    diagonal_ssm_stateful as diagonal_ssm_stateful,
    diagonal_ssm_stateful_vjp as diagonal_ssm_stateful_vjp,
    diagonal_ssm_varying as diagonal_ssm_varying,
    diagonal_ssm_varying_stateful as diagonal_ssm_varying_stateful,
    diagonal_ssm_varying_stateful_vjp as diagonal_ssm_varying_stateful_vjp,
    diagonal_ssm_varying_vjp as diagonal_ssm_varying_vjp,
    diagonal_ssm_vjp as diagonal_ssm_vjp,
    linear_scan as linear_scan,
    linear_scan_from as linear_scan_from,
    linear_scan_from_vjp as linear_scan_from_vjp,
    linear_scan_packed as linear_scan_packed,
    linear_scan_packed_vjp as linear_scan_packed_vjp,
    linear_scan_vjp as linear_scan_vjp,
    linear_step as linear_step,
    linear_step_vjp as linear_step_vjp,
)
from refssm.selective_scan import (
    mamba_scan as mamba_scan,
    mamba_scan_packed as mamba_scan_packed,
    mamba_scan_packed_vjp as mamba_scan_packed_vjp,
    mamba_scan_stateful as mamba_scan_stateful,
    mamba_scan_stateful_vjp as mamba_scan_stateful_vjp,
    mamba_scan_vjp as mamba_scan_vjp,
    mamba_step as mamba_step,
    mamba_step_vjp as mamba_step_vjp,
    selective_scan as selective_scan,
    selective_scan_packed as selective_scan_packed,
    selective_scan_packed_vjp as selective_scan_packed_vjp,
    selective_scan_stateful as selective_scan_stateful,
    selective_scan_stateful_vjp as selective_scan_stateful_vjp,
    selective_scan_vjp as selective_scan_vjp,
    selective_step as selective_step,
    selective_step_vjp as selective_step_vjp,
)
from refssm.ssd import (
    ssd_chunked as ssd_chunked,
    ssd_chunked_packed as ssd_chunked_packed,
    ssd_chunked_packed_vjp as ssd_chunked_packed_vjp,
    ssd_chunked_stateful as ssd_chunked_stateful,
    ssd_chunked_stateful_vjp as ssd_chunked_stateful_vjp,
    ssd_chunked_vjp as ssd_chunked_vjp,
    ssd_quadratic as ssd_quadratic,
    ssd_quadratic_vjp as ssd_quadratic_vjp,
    ssd_recurrent as ssd_recurrent,
    ssd_recurrent_packed as ssd_recurrent_packed,
    ssd_recurrent_packed_vjp as ssd_recurrent_packed_vjp,
    ssd_recurrent_stateful as ssd_recurrent_stateful,
    ssd_recurrent_stateful_vjp as ssd_recurrent_stateful_vjp,
    ssd_recurrent_vjp as ssd_recurrent_vjp,
    ssd_step as ssd_step,
    ssd_step_vjp as ssd_step_vjp,
)
from refssm.vandermonde import (
    vandermonde_kernel as vandermonde_kernel,
    vandermonde_kernel_real as vandermonde_kernel_real,
    vandermonde_kernel_real_vjp as vandermonde_kernel_real_vjp,
    vandermonde_kernel_vjp as vandermonde_kernel_vjp,
)

__version__: str
