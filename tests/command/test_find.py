"""`refssm find`: the operators that fit some words."""

import pytest
from judging import run

from refssm.catalog import judged
from refssm.conformance.doctor.search import MOST, search

TAGS = [(op.name, tag) for op in judged() for tag in op.tags]
# what a user types, and the first answer
QUERIES = {
    "convolution": "causal_convolution",  # of equal ones, the name without other words
    "diagonal kernel": "diagonal_kernel_zoh",
    "s4d log dt pairs": "diagonal_kernel_zoh",
    "my S4D kernel with log dt and complex pairs": "diagonal_kernel_zoh",
    "SSMKernelDiag": "diagonal_kernel_zoh",
    "dss softmax": "dss_softmax_kernel",
    "ema mega": "ema_kernel",
    "liquid s4 kernel": "liquid_kernel",
    "h3 shift": "shift_kernel",
    "dplr kernel s4": "dplr_kernel",
    "cauchy mult": "cauchy_kernel",
    "log vandermonde": "vandermonde_kernel_real",
    "impulse response A B C": "markov_parameters",
    "rg-lru": "rg_lru",
    "associative_scan": "linear_scan",
    "jax.lax.associative_scan": "linear_scan",
    "griffin recurrence": "rg_lru",
    "parallel prefix scan": "linear_scan",
    "mingru": "min_gru",
    "scan with reset": "linear_scan_packed",
    "s5 ssm": "diagonal_ssm",
    "apply_ssm": "diagonal_ssm",
    "s5 bidirectional": "diagonal_ssm_bidirectional",
    "selective_scan_fn": "mamba_scan",
    "find selective_scan_ref": "mamba_scan",
    "selectve scan": "selective_scan",
    "selective_state_update": "mamba_step",
    "mamba decode step": "mamba_step",
    "packed mamba with cu_seqlens": "mamba_scan_packed",
    "mamba block": "mamba_layer",
    "ssd_minimal": "ssd_chunked",
    "mamba_chunk_scan_combined": "mamba2_scan",
    "mamba2 scan": "mamba2_scan",
    "Mamba-2": "mamba2_scan",
    "mamba2 decode": "mamba2_step",
    "mamba_chunk_scan_combined seq_idx": "mamba2_scan_packed",
    "mamba_chunk_scan_combined_varlen": "mamba2_scan_packed_stateful",
    "nemotron-h": "mamba2_scan",
    "bamba": "mamba2_scan",
    "segsum": "ssd_quadratic",
    "causal conv1d": "causal_conv1d",
    "conv1d silu of mamba": "causal_conv1d",
    "RMSNormGated before the gate": "rms_norm_gated",
    "MambaRMSNormGated": "gated_rms_norm",
    "qk l2norm": "l2_norm",
    "conv1d depthwise causal": "short_convolution",
    "causal_conv1d_update": "short_convolution_step",
    "hyena fftconv": "causal_convolution",
    "bidirectional s4 kernel": "bidirectional_convolution_shifted",
    "lru": "lru_layer",
    "minimal lru jax": "lru_layer",
    "legendre memory unit": "hippo_lmu",
    "hippo legs matrix": "hippo_legs",
    "nplr legs": "nplr_legs",
    "zero order hold diagonal": "discretize_diagonal_zoh",
    "bilinear discretization": "discretize_bilinear",
    "tustin": "discretize_bilinear",
    "lyapunov": "gramians",
    "frequency response": "transfer",
    "spectral filtering stu": "spectral_filters",
    "hope kernel": "hope_kernel",
}


def names(query):
    return [hit.op.name for hit in search(query).hits]


@pytest.mark.parametrize("op", judged(), ids=str)
def test_every_operator_has_tags_and_is_found_by_its_name(op):
    assert op.tags
    assert names(op.name)[0] == op.name


@pytest.mark.parametrize(("name", "tag"), TAGS)
def test_a_tag_finds_its_operator(name, tag):
    assert name in names(tag)[:3]


@pytest.mark.parametrize("query", QUERIES)
def test_what_a_user_types_finds_the_operator_first(query):
    assert names(query)[0] == QUERIES[query]


def test_a_tag_is_of_one_operator():
    tags = [tag.lower() for _, tag in TAGS]
    assert len(tags) == len({*tags})


def test_words_that_no_operator_has_find_nothing():
    assert names("xyzzy") == []
    assert names("my own function") == []  # words that say nothing


def test_the_command_says_signature_and_words_that_matched(capfd):
    result, out, err = run(capfd, "find", "gaseous", "s4d", "kernel")
    assert (result, err) == (0, "")
    first, why, *more = out.splitlines()
    assert first == "diagonal_kernel_zoh(w, B, C, dt, *, l) (n),(n),(n),()->(l)"
    assert why.startswith('    s4d: called "')
    assert more[-1].startswith("no operator has `gaseous`")
    assert len(more) <= 2 * MOST - 1
    assert max(map(len, out.splitlines())) <= 100


def test_words_that_fit_nothing_are_one_sentence_with_the_nearest_words(capfd):
    result, out, err = run(capfd, "find", "xyzzy")
    assert (result, out) == (4, "")
    said = "no operator fits `xyzzy`: none has `xyzzy`; `refssm list` prints all of them"
    assert err == f"refssm: {said}\n"
    result, out, err = run(capfd, "find", "discretise_zzz")
    assert result == 4  # the part before _ is nearly a word
    assert "discretize" in out
    assert err == "refssm: no operator fits `discretise_zzz`: none has `zzz`; the nearest follow\n"


UNKNOWN = {
    "convolution with quaternions": "quaternions",
    "flash attention softmax": "flash",
    "rotary scan": "rotary",
}


@pytest.mark.parametrize("query", UNKNOWN)
def test_where_no_operator_has_half_of_the_words_the_nearest_follow_and_the_code_is_4(capfd, query):
    result, out, err = run(capfd, "find", query)
    assert result == 4
    assert f"no operator fits `{query}`: none has `{UNKNOWN[query]}`" in err
    assert err.rstrip().endswith("the nearest follow")
    assert 2 <= len(out.splitlines()) <= 2 * MOST


def test_a_word_that_an_operator_lacks_counts_against_it():
    def score(query, name):
        return next(hit.score for hit in search(query, 99).hits if hit.op.name == name)

    assert score("mamba scan cu_seqlens", "mamba_scan") < score("mamba scan", "mamba_scan")
    assert names("mamba scan cu_seqlens")[0] == "mamba_scan_packed"


@pytest.mark.parametrize("query", QUERIES)
def test_what_a_user_types_fits(query):
    assert search(query).fits


@pytest.mark.parametrize(("name", "tag"), TAGS)
def test_a_tag_fits(name, tag):
    assert next(hit for hit in search(tag).hits if hit.op.name == name).fits
