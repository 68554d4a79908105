"""Plug-ins by the names that they had before each library had one file: kept for one version.

Saved failures and settings have such names.

A line of the table has a file of today, then plug-ins that are in it now, each with those functions
that were called like their operator and have another name today.
"""

from functools import cache
from typing import NamedTuple

BEFORE, TODAY = "refssm.conformance.subjects.", "refssm.subjects."
FORMS = ("_stateful", "_from")
PLACES = """
accelerated_scan: accelerated_scan_ref
accelerated_scan_triton: accelerated_scan_triton linear_scan=triton_scan
accelerated_scan_warp: accelerated_scan_kernels linear_scan=warp_scan
annotated_s4: annotated_s4_kernels, annotated_s4_scan, annotated_s4_dplr, annotated_s4_dss
annotated_s4: annotated_s4_s4d diagonal_kernel_zoh_real=s4d_kernel
annotated_s4: annotated_s4_s4d_zoh diagonal_kernel_zoh_real=s4d_kernel_zoh
causal_conv1d: causal_conv1d_kernels
control: control_c2d, control_gram, control_response
dss: dss_kernel
flash_linear_attention: flash_linear_attention_naive ssd_recurrent=naive_recurrent_simple_gla \
 ssd_quadratic=naive_parallel_simple_gla ssd_chunked=naive_chunk_simple_gla
flash_linear_attention: flash_linear_attention_simple_gla ssd_chunked=chunk_simple_gla \
 ssd_recurrent=fused_recurrent_simple_gla ssd_quadratic=parallel_simple_gla
flash_linear_attention: flash_linear_attention_gla_naive selective_scan=naive_recurrent_gla
flash_linear_attention: flash_linear_attention_gla selective_scan=fused_recurrent_gla
flash_linear_attention: flash_linear_attention_gla_chunk selective_scan=chunk_gla
flash_linear_attention: flash_linear_attention_hgrn_naive ssd_recurrent=naive_recurrent_hgrn
flash_linear_attention: flash_linear_attention_hgrn ssd_recurrent=fused_recurrent_hgrn
flash_linear_attention: flash_linear_attention_hgrn_chunk ssd_recurrent=chunk_hgrn
h3: h3_diagonal, h3_ema, h3_shift
hippo_code: hippo_code_measures, hippo_code_memory, hippo_code_transitions
hippo_code: hippo_code_unroll dense_scan=unroll_recursive
hippo_code: hippo_code_variable_unroll dense_scan=unroll_iterative
hope_ssm: hope_kernel
jax_kernels: jax_formulas cauchy_kernel=cauchy_formula resolvent_at_roots=resolvent_formula \
 hope_transfer=hope_formula
jax_kernels: jax_kernels cauchy_kernel=cauchy_unrolled resolvent_at_roots=resolvent_unrolled \
 vandermonde_kernel_real=vandermonde_formula
jax_kernels: jax_vandermonde_blocks vandermonde_kernel_real=vandermonde_blocks
jax_kernels: jax_hope hope_transfer=hope_horner
jax_kernels: jax_dplr dplr_kernel=dplr_resolvents, jax_dplr_powers dplr_kernel=dplr_powers
jax_scans: jax_associative_scan linear_scan=associative_scan, jax_scan linear_scan=lax_scan
jax_scans: jax_associative_dense, jax_convolve, jax_selective_scan, jax_ssd
jax_scans: jax_convolutions short_convolution=shifted_inputs
jax_scans: jax_depthwise short_convolution=depthwise
liquid_s4: liquid_s4_kernels
lrnnx: lrnnx_discretization
mamba: mamba_ref selective_scan=selective_scan_ref mamba_scan=mamba_scan_ref \
 selective_step=selective_step_ref mamba_step=mamba_step_ref \
 ssd_chunked_stateful=ssd_chunked_stateful_ref
mamba: mamba_ref_complex selective_scan=selective_scan_complex
mamba: mamba_triton mamba_scan=mamba_scan_triton mamba_step=mamba_step_triton \
 selective_step=selective_step_triton
mamba: mamba_triton_heads ssd_chunked_stateful=ssd_chunked_stateful_triton
mamba2_minimal: mamba2_minimal_ssd
mamba_c: mamba_c_layer
mamba_minimal: mamba_minimal_block, mamba_minimal_scan
mamba_np: mamba_np_block, mamba_np_scan
mamba_py: mamba_py_block, mamba_py_pscan
mamba_py: mamba_py_scan mamba_scan=parallel_scan, mamba_py_scan_seq mamba_scan=sequential_scan
mamba_ssm: mamba_ssm_ref
mamba_ssm_kernels: mamba_ssm_kernels
mambapy: mambapy_mamba, mambapy_pscan
minimal_lru: minimal_lru
proger_accelerated_scan: accelerated_scan_tree linear_scan=ref_scan
proger_accelerated_scan: accelerated_scan_scalar linear_scan=scalar_scan
proger_accelerated_scan: accelerated_scan_complex linear_scan=complex_scan
recurrentgemma_jax: recurrentgemma_scan_native linear_scan=native_scan linear_step=native_step
recurrentgemma_jax: recurrentgemma_scan_associative linear_scan=associative_scan \
 linear_step=associative_step
recurrentgemma_jax: recurrentgemma_scan_pallas linear_scan=pallas_scan
recurrentgemma_torch: recurrentgemma_rnn_scan linear_scan=rnn_scan \
 linear_scan_packed=rnn_scan_packed
recurrentgemma_torch: recurrentgemma_rnn_scan_bfloat16 linear_scan_packed=bfloat16_packed \
 linear_scan_from=bfloat16_from
s4: s4_cauchy, s4_diagonal, s4_dplr, s4_hippo, s4_s4d, s4_vandermonde
s4: s4_fftconv causal_convolution=fftconv, s4_toeplitz fast=toeplitz_fast plain=toeplitz
s4: s4_krylov krylov_kernel=krylov, s4_krylov_sequential krylov_kernel=krylov_sequential
s4_extension: s4_extension
s4torch: s4torch_layer
s5: s5_ssm, s5_ssm_init
s5_pytorch: s5_pytorch_block, s5_pytorch_ssm
scipy: scipy_signal linear_scan=lfilter causal_convolution=fftconvolve \
 discretize_zoh=cont2discrete_zoh
scipy: scipy_dlsim linear_scan=dlsim, scipy_oaconvolve causal_convolution=oaconvolve
scipy: scipy_linalg discretize_zoh=expm
stablessm: stable_ssm_kernel diagonal_kernel_zoh_real=kernel_exp
stablessm: stable_ssm_softplus diagonal_kernel_zoh_real=kernel_softplus
torch_associative: torch_associative_dense
torch_associative: torch_associative_scan linear_scan=associative_scan
torch_kernels: torch_dplr, torch_dplr_resolvents, torch_kernels
torch_scans: torch_conv1d, torch_fft, torch_selective_scan, torch_ssd
torch_scans: torch_loop linear_scan=loop
transformers: transformers_mamba, transformers_mamba2, transformers_mamba_block
"""


class Place(NamedTuple):
    """Where a plug-in is today, and the functions that have another name."""

    file: str
    functions: dict[str, str]

    def function(self, name: str) -> str:
        """Today's name of a function, also of one that starts from a state."""
        form = next((f for f in FORMS if name.endswith(f)), "")
        plain = name.removesuffix(form)
        usual = self.functions[plain] + form if plain in self.functions else name
        return self.functions.get(name, usual)


@cache
def places() -> dict[str, Place]:
    """Today's place of each plug-in by its former name."""
    found = {}
    for line in PLACES.strip().splitlines():
        file, _, plugins = line.partition(": ")
        for name, *pairs in map(str.split, plugins.split(",")):
            found[name] = Place(file, dict(pair.split("=") for pair in pairs))
    return found


def now(target: str, operator: str = "") -> str:
    """Today's target for a target of a former name; others as they are.

    `operator`: the operator of a saved failure, whose target names no function.
    """
    path, _, function = target.partition("::")
    _, before, name = path.removesuffix(".py").replace("/", ".").partition(BEFORE)
    place = places().get(name) if before else None
    if place is None:
        return target
    function = place.function(function or operator)
    return f"{TODAY}{place.file}" + (f"::{function}" if function else "")
