"""Selective scans and Mamba's, wrong and right, as public bug reports had them: what is said."""

import mamba_programs as mamba
import numpy as np
import pytest
import selective_programs as selective
from reporting import first_line, refused

from refssm.adapters import neg_exp

pytestmark = pytest.mark.usefixtures("their_warnings_are_not_ours")
SINGLE = {"types": ("float32",)}


def told(name, function, *checks, **how):
    return first_line(name, function, *(checks or ("value",)), **(SINGLE | how))


@pytest.mark.long
@pytest.mark.parametrize("size", [16, 64])
def test_inputs_divided_by_decays_that_underflow_are_named(size):
    function = selective.in_chunks(selective.divided_by_decays, size)
    assert told("selective_scan", function).startswith("WRONG: inputs divided by the product")


@pytest.mark.long
def test_chunks_by_differences_of_sums_pass():
    function = selective.in_chunks(selective.by_differences, 16)
    assert told("selective_scan", function).startswith("PASS")


@pytest.mark.long
def test_rates_that_are_rounded_to_bfloat16_are_named_behind_an_adapter():
    how = {"adapters": (neg_exp("A"),), "dtypes": ("float32",)}
    line = told("selective_scan", selective.rates_of_8_bits, **how)
    assert line == "INACCURATE: A rounded to bfloat16"
    assert told("selective_scan", selective.rates_in_single, **how).startswith("PASS")


@pytest.mark.long
def test_a_last_state_without_B_is_named():
    how = {"only": selective.constant_B_from_rest}
    wrong = selective.with_B_at_the_output(lambda h, B: h)
    line = told("selective_scan_stateful", wrong, "value", "state", **how)
    assert line == "WRONG: B applied at the output, with C: the last state lacks it"
    right = selective.with_B_at_the_output(selective.times_B)
    assert told("selective_scan_stateful", right, "value", "state", **how).startswith("PASS")


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "only"),
    [(selective.padded_rows, selective.padded), (selective.always_from_rest, selective.at_rest)],
    ids=["padding", "rest"],
)
def test_kernels_that_are_right_on_the_cases_they_ask_for_pass(function, only):
    checks = "value", "state", "split", "prefix"
    assert told("selective_scan_stateful", function, *checks, only=only).startswith("PASS")


@pytest.mark.long
def test_zeros_for_the_state_of_an_empty_piece_are_said_with_its_length():
    checks = "value", "split", "empty"
    line = told("selective_scan_stateful", selective.zeros_where_empty, *checks)
    assert line.startswith("WRONG: with l=0: worst x[")


@pytest.mark.long
def test_flushing_is_offered_where_no_argument_is_subnormal():
    failures = refused("selective_scan_stateful", selective.flushing, "value", "state", **SINGLE)
    assert [r.check for r in failures] == ["value", "state"]
    assert {r.hint for r in failures} == {
        "passes if subnormal numbers may be flushed to zero: declare ftz=True"
    }


@pytest.mark.long
def test_a_step_that_is_kept_above_a_thousandth_is_named():
    wrong = mamba.scan(mamba.at_least_a_thousandth)
    assert told("mamba_scan", wrong) == "WRONG: dt clipped at 1e-3 from below"


@pytest.mark.long
def test_a_softplus_of_ones_own_with_all_digits_passes():
    assert told("mamba_scan", mamba.scan(mamba.softplus)).startswith("PASS")


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "form"), [("mamba_scan", mamba.scan), ("mamba_scan_stateful", mamba.stateful)]
)
def test_a_naive_softplus_is_named(name, form):
    line = told(name, form(mamba.naive_softplus))
    assert line.startswith("INACCURATE: log(1 + e^v)")


@pytest.mark.long
def test_a_softplus_that_is_cut_off_is_not_named_as_a_naive_one():
    def cut_off(v):
        return np.where(v < -15, 0, mamba.softplus(v)).astype(v.dtype)

    line = told("mamba_scan", mamba.scan(cut_off))
    assert line.startswith("WRONG")
    assert "log(1 + e^v)" not in line


@pytest.mark.long
def test_a_slope_of_the_softplus_that_overflows_is_named():
    right = mamba.scan(mamba.softplus)
    wrong = mamba.vjp(mamba.zero_where_it_overflows)
    line = told("mamba_scan", right, "gradient", vjp=wrong)
    assert line.startswith("WRONG: the softplus' slope e^v/(1 + e^v): 0 where e^v overflows")
    passing = told("mamba_scan", right, "gradient", vjp=mamba.vjp(mamba.logistic))
    assert passing.startswith("PASS")
