"""A gradient that fails for views of its arguments only: the failure says that they are views."""

import numpy as np
import pytest
from judging import judged, scan

import refssm

REFUSED = "must be contiguous"


def contiguous(*arrays):
    return all(x.flags.c_contiguous for x in arrays)


def refuses(dx, a, b):
    if not contiguous(dx, a, b):
        raise RuntimeError(REFUSED)
    return refssm.linear_scan_vjp(dx, a, b)


def misreads(dx, a, b):
    da, db = refssm.linear_scan_vjp(dx, a, b)
    return (da, db) if contiguous(dx, a, b) else (da, 3 * db)


def wrong_anyhow(dx, a, b):
    da, db = refssm.linear_scan_vjp(dx, a, b)
    return da, 3 * db


def failure(vjp):
    (result,) = judged("linear_scan", scan, "gradient", vjp=vjp, types=("float32",),
                       profile="default")  # fmt: skip
    return result


@pytest.mark.parametrize(
    ("vjp", "verdict", "what"), [(refuses, "error", REFUSED), (misreads, "wrong", "worst d")]
)
def test_a_failure_for_views_alone_says_so(vjp, verdict, what):
    result = failure(vjp)
    assert result.verdict == verdict
    assert result.message.startswith("called with arguments that are not contiguous (")
    assert what in result.message
    assert result.message.endswith("; with contiguous ones it is right")


def test_a_failure_for_all_arguments_says_nothing_of_views():
    result = failure(wrong_anyhow)
    assert result.message.startswith("worst db[")
    assert "contiguous" not in result.message


def test_a_view_that_declines_is_no_failure():
    def declines(dx, a, b):
        if not contiguous(dx, a, b):
            raise NotImplementedError(REFUSED)
        return refssm.linear_scan_vjp(dx, a, b)

    result = failure(declines)
    assert result.verdict in ("pass", "thin")
    assert 0 < result.declined < result.examples


def test_a_copy_in_the_gradient_makes_it_pass():
    def copies(*arrays):
        return refuses(*(np.ascontiguousarray(x) for x in arrays))

    assert failure(copies).verdict == "pass"
