"""If public programs disagree, the other side is a planted bug, so the diagnosis can name it."""

import pytest

from refssm.conformance.planted import planted_bugs

PLANTED = {str(d): d.what for d in planted_bugs()}
DISAGREEMENTS = {
    "A and B of LegT halved": "hippo_legt-window_of_two",
    "conjugate pairs taken once": "diagonal_ssm_real-pairs_once",
    "a mode on the real axis doubled": "diagonal_ssm_real-real_modes_once",
    "the backward kernel's first tap at lag 0": "bidirectional_convolution-lag",
    "the bilinear map inverted": "discretize_diagonal_bilinear-inverted",
    "Euler's rule for zero-order hold": "discretize_diagonal_zoh-euler_input",
    "log(1 + e^v)": "mamba_scan-softplus_naive",
    "v itself above 20": "mamba_scan-softplus_switched_at_20",
    "D after the gate": "mamba_scan-D_after_gate",
    "C where C (I − Ā^l) is wanted": "dplr_kernel-aliased",
    "heads that tile the groups": "ssd_step-groups_tiled",
    "limits of dt before the softplus": "mamba_scan-clamped_before",
    "DSS' epsilon": "dss_softmax_kernel-published",
    "no padding": "causal_convolution-circular",
    "eigenvalues clipped": "discretize_diagonal_zoh-clipped_modes",
    "their imaginary parts too": "diagonal_kernel_zoh-imaginary_clipped",
    "0/0 at the Nyquist node": "dplr_kernel-published_form",
    "the last state with B": "selective_scan_stateful-last_times_B",
    "JAX's convention of complex gradients": "cauchy_kernel-vjp_as_jax",
    "e^z − 1 for the input": "diagonal_kernel_zoh-state_only",
    "A without its minus sign": "ssd_recurrent-sign",
}


@pytest.mark.parametrize("name", DISAGREEMENTS.values(), ids=DISAGREEMENTS)
def test_the_other_side_of_a_disagreement_has_a_name_and_words(name):
    assert PLANTED[name]
