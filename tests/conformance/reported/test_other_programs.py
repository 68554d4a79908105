"""Other operators, wrong and right, as public bug reports had them: what is said."""

import numpy as np
import other_programs as other
import pytest
import selective_programs as selective
from reporting import causes, first_line, refused

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.testing import Budget, Declaration

pytestmark = pytest.mark.usefixtures("their_warnings_are_not_ours")
SINGLE = {"types": ("float32",)}
SUMS = {"dtypes": ("float16",), "accuracy": Budget(computes="float32"), "types": ("float16",)}


def told(name, function, *checks, **how):
    return first_line(name, function, *(checks or ("value",)), **(SINGLE | how))


@pytest.mark.long
def test_operands_that_a_reverse_scan_exchanges_are_named():
    name = "diagonal_ssm_bidirectional"
    line = told(name, other.both_ways(other.exchanged))
    assert line == "WRONG: the backward scan's operator with its sides exchanged"
    assert told(name, other.both_ways(other.affine)).startswith("PASS")


@pytest.mark.long
def test_eigenvectors_in_place_of_an_exponential_are_named_where_there_are_none():
    line = told("discretize_zoh", other.by_eigenvectors)
    assert line == "ERROR: eigenvectors in place of an exponential"
    assert told("discretize_zoh", other.by_one_exponential).startswith("PASS")


@pytest.mark.long
def test_a_sum_in_float16_that_claims_float32_is_named_as_such_and_no_view_is_blamed():
    named = causes("linear_scan", other.sums_of(None), "value", "nan", "strides", **SUMS)
    assert [*named] == ["value[float16]", "nan[float16]", "strides[float16]"]
    assert named.pop("strides[float16]") == ""  # a call without views is wrong, too
    for cause in named.values():
        assert cause.startswith("float16 arithmetic")
        assert "carry" not in cause


@pytest.mark.long
def test_a_sum_in_float32_passes_as_float16_with_that_budget():
    assert told("linear_scan", other.sums_of(np.float32), "value", "nan", **SUMS).startswith("PASS")


@pytest.mark.long
def test_a_sum_in_bfloat16_that_claims_float32_is_no_lost_carry():
    pytest.importorskip("ml_dtypes")
    how = SUMS | {"dtypes": ("bfloat16",), "types": ("bfloat16",)}
    (failure,) = refused("linear_scan", other.sums_of(None), "value", **how)
    assert failure.cause.startswith(("bfloat16 arithmetic", "the state kept in bfloat16"))


@pytest.mark.long
def test_short_transforms_are_named_in_values_and_in_gradients():
    name, right, wrong = "causal_convolution", other.with_transforms(1), other.with_transforms(2)
    value = told(name, wrong)
    assert value == "WRONG: padding to 2l − 2 points: the last product wraps onto y_0"
    gradient = told(name, right, "gradient", vjp=other.gradient_with_transforms(2))
    assert gradient == "WRONG: transforms of 2l − 2 points: the last product wraps around"
    vjp = other.gradient_with_transforms(1)
    assert told(name, right, "value", "gradient", vjp=vjp).startswith("PASS")


@pytest.mark.long
def test_a_gradient_that_refuses_views_is_said_to_have_got_views():
    scan = operator_named("linear_scan").reference
    line = told("linear_scan", scan, "gradient", vjp=other.only_in_one_piece)
    assert line.startswith("ERROR: called with arguments that are not contiguous")


@pytest.mark.long
def test_infinities_that_become_nan_are_not_named_as_an_argument_left_out():
    checks = "value", "nan"
    line = told("diagonal_kernel_bilinear_real", other.infinity_becomes_nan, *checks)
    assert line.startswith("WRONG: with ")
    assert "got nan (NaN), want infinite" in line


@pytest.mark.long
def test_of_real_poles_no_conjugate_is_said_to_be_missing():
    line = told("hankel_singular_values_diagonal", other.by_eigenvalues)
    assert line == "WRONG: LAPACK's values of P Q, in full precision"


@pytest.mark.long
def test_an_eigenvalue_is_not_judged_in_norm():
    def half_of_the_last(*, k, l):
        sigma, phi = operator_named("spectral_filters").reference(k=k, l=l)
        return np.where(np.arange(k) == k - 1, sigma / 2, sigma), phi

    (failure,) = refused("spectral_filters", half_of_the_last, "value")
    assert failure.message.startswith("worst eigenvalue ")
    assert "in norm" not in failure.message


@pytest.mark.long
def test_an_argument_that_is_left_out_is_named():
    def without_B(w, B, C, dt, *, l):
        return operator_named("diagonal_kernel_bilinear_real").reference(w, 0 * B + 1, C, dt, l=l)

    assert "B" in told("diagonal_kernel_bilinear_real", without_B).partition(": ")[2]


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_s4s_algorithm_on_a_damped_circle_passes_repetition(seed):
    how = {"types": ("complex64",), "seed": seed}
    assert told("dplr_kernel", other.on_a_damped_circle, "repeat", **how).startswith("PASS")


@pytest.mark.long
def test_results_of_other_operators_are_kept_where_a_state_of_an_empty_piece_is_zeros():
    programs = {
        "linear_scan": operator_named("linear_scan").reference,
        "selective_scan_stateful": selective.zeros_where_empty,
    }
    found = [
        Found(operator_named(name), function, None, declared=Declaration(name))
        for name, function in programs.items()
    ]
    how = {"types": ("float32",), "only_checks": ("value", "split"), "shrink": False}
    session = Session(InProcess(found), "here", Settings(folder=None, **how))
    verdicts = {(r.operator, r.check): r.verdict for r in results_of(session)}
    assert verdicts["linear_scan", "value"] == "pass"
    assert verdicts["selective_scan_stateful", "value"] == "pass"
    assert set(verdicts.values()) <= {"pass", "wrong", "skipped"}
