"""A report names the parameter of an adapter, not the argument that it replaces."""

import numpy as np
import pytest

import refssm
from refssm._declaration.adapted import adapted
from refssm._declaration.parametrisations import MAPS, ROWS
from refssm.adapters import IN_WORDS, Adapter, log_dt, neg_exp, normalised, transposed
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.diagnosis.failure import call_in_words
from refssm.diagonal import DIAGONAL_KERNEL_ZOH
from refssm.testing import check


def test_every_adapter_of_one_argument_has_words():
    assert {*MAPS, *ROWS, "transposed"} <= {*IN_WORDS}


@pytest.mark.parametrize(
    ("adapter", "real", "complex_one"),
    [
        (log_dt(), "log dt", "log dt"),
        (neg_exp("w"), "log(−w)", "log(−Re w) + i Im w"),
        (normalised("k"), "k before its norm", "k before its norm"),
        (transposed("S0"), "S0 transposed", "S0 transposed"),
        (Adapter("halves"), "w", "w"),
    ],
)
def test_a_parameter_is_named_by_the_argument(adapter, real, complex_one):
    name = adapter.argument or "w"
    assert adapter.in_words(name, False) == real
    assert adapter.in_words(name, True) == complex_one
    assert adapter.in_words("other", True) == "other"


@pytest.mark.parametrize(
    ("dtype", "told"), [("float32", "log(−w): "), ("complex64", "log(−Re w) + i Im w: ")]
)
def test_a_case_in_words_has_the_parameters_of_the_function(dtype, told):
    op = adapted(DIAGONAL_KERNEL_ZOH, (log_dt(), neg_exp("w")))
    case = ordinary_case(op, dtype)
    words = call_in_words(case, case.arrays, case.statics, ())
    assert f"; {told}" in words
    assert "log dt = [" in words
    one = [np.full_like(a, 2) for a in case.arrays]
    one[-1][0] = 3
    words = call_in_words(case, one, case.statics, ())
    assert "log(−w) = 2 throughout, B=2 throughout" in words.replace(" (complex64)", "")
    plain = ordinary_case(DIAGONAL_KERNEL_ZOH, dtype)
    assert " w: " in call_in_words(plain, plain.arrays, plain.statics, ())


def test_one_other_entry_is_named_by_its_place():
    op = adapted(DIAGONAL_KERNEL_ZOH, (neg_exp("w"),))
    case = ordinary_case(op, "float32", sizes=(5, 6))
    arrays = [np.ones_like(a) for a in case.arrays]
    arrays[0][1, 2] = -18
    words = call_in_words(case, arrays, case.statics, ())
    assert "log(−w) = 1 but -18 at [1, 2], B=1 throughout" in words


@pytest.mark.long
def test_the_report_of_a_wrong_kernel_of_logarithms_names_the_logarithms():
    def kernel(w, B, C, dt, *, l):
        steps = np.exp(dt) * np.float32(1.01)
        return refssm.diagonal_kernel_zoh(w, B, C, steps.astype(dt.dtype), l=l)

    how = {"adapters": (log_dt(),), "checks": ("value",), "dtypes": ("float32",)}
    with pytest.raises(AssertionError, match=r"smallest: l=\d+ n=1.*; w=.*, log dt = "):
        check("diagonal_kernel_zoh", kernel, **how)
