"""The smallest input of programs from public bug reports is what one would write by hand."""

import mamba_programs as mamba
import other_programs as other
import pytest
import selective_programs as selective
from reporting import refused

pytestmark = pytest.mark.usefixtures("their_warnings_are_not_ours")
SINGLE = {"types": ("float32",), "shrink": True}


def smallest(name, function, check, **how):
    """The smallest input that a report shows of the first failure."""
    return refused(name, function, check, **(SINGLE | how))[0].smallest


@pytest.mark.long
def test_operands_that_are_exchanged_backwards_show_in_two_steps():
    told = smallest("diagonal_ssm_bidirectional", other.both_ways(other.exchanged), "value")
    assert told.startswith("l=2 p=1 n=1 m=1;")


@pytest.mark.long
def test_a_decay_that_underflows_shows_in_one_step_that_is_large():
    function = selective.in_chunks(selective.divided_by_decays, 64)
    told = smallest("selective_scan", function, "value")
    assert told.startswith("l=1 n=1;")
    assert "A=-100" in told


@pytest.mark.long
def test_a_step_that_is_kept_above_a_thousandth_shows_in_one_step_that_is_small():
    function = mamba.scan(mamba.at_least_a_thousandth)
    told = smallest("mamba_scan", function, "value")
    assert told.startswith("l=1 n=1;")
    assert "dt=-" in told


@pytest.mark.long
def test_a_slope_of_the_softplus_that_overflows_shows_in_one_step_that_is_large():
    how = {"vjp": mamba.vjp(mamba.zero_where_it_overflows)}
    told = smallest("mamba_scan", mamba.scan(mamba.softplus), "gradient", **how)
    assert told.startswith("l=1 n=1;")
    assert float(told.partition("dt=")[2].partition(",")[0]) > 88.7  # where e^v overflows
