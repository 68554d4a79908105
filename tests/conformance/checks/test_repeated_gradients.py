"""The second call of a VJP, after a forward call with other values, gives the same gradients."""

import numpy as np
import pytest

from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.scan import LINEAR_SCAN

scan = LINEAR_SCAN.reference


def line(forward, vjp):
    """The result of `repeat` on a linear scan with a VJP."""
    asked = Settings(only_checks=("repeat",), shrink=False, folder=None)
    return list(results_of(Session(InProcess([Found(LINEAR_SCAN, forward, vjp)]), "here", asked)))[
        -1
    ]


def with_kept_states():
    """A scan whose VJP takes the states of the last forward call."""
    kept = []

    def forward(a, b):
        kept[:] = [scan(a, b)]
        return kept[0].copy()

    def vjp(dx, a, b):
        x = kept[0] if kept and kept[0].shape == dx.shape else scan(a, b)
        g = LINEAR_SCAN.bare_vjp(dx, a, b)[1]
        return np.concatenate([0 * g[..., :1, :], g[..., 1:, :] * x[..., :-1, :]], axis=-2), g

    return forward, vjp


def with_states_of(trusted):
    """A VJP that keeps the states while one argument stays as it was in the forward call."""
    kept = {}

    def forward(a, b):
        kept.update(x=scan(a, b), a=a.copy(), b=b.copy())
        return kept["x"].copy()

    def vjp(dx, a, b):
        now = {"a": a, "b": b}
        if not kept or not np.array_equal(kept[trusted], now[trusted]):
            kept.update(x=scan(a, b), a=a.copy(), b=b.copy())
        g = LINEAR_SCAN.bare_vjp(dx, a, b)[1]
        earlier = kept["x"][..., :-1, :]
        return np.concatenate([0 * g[..., :1, :], g[..., 1:, :] * earlier], axis=-2), g

    return forward, vjp


def with_added_gradients():
    """A VJP that adds to the gradients of earlier calls."""
    total = []

    def vjp(dx, a, b):
        da, db = LINEAR_SCAN.bare_vjp(dx, a, b)
        total.append(da)
        return sum(t for t in total if t.shape == da.shape), db

    return scan, vjp


@pytest.mark.parametrize("made", [with_kept_states, with_added_gradients])
def test_a_vjp_that_keeps_something_of_the_last_call_is_seen(made):
    forward, vjp = made()
    result = line(forward, vjp)
    assert result.verdict == "wrong"
    assert result.message.startswith("the VJP after a forward call with other values: worst da[")
    assert line(scan, vjp=LINEAR_SCAN.bare_vjp).verdict == "pass"


def test_a_vjp_that_fails_or_declines_is_not_this_check():
    for error in (ValueError, NotImplementedError):

        def vjp(dx, a, b, error=error):
            raise error("no")

        assert line(scan, vjp).verdict == "pass"


@pytest.mark.parametrize(("trusted", "changed"), [("a", "b"), ("b", "a")])
def test_a_vjp_that_trusts_states_of_which_one_argument_has_changed_is_seen(trusted, changed):
    forward, vjp = with_states_of(trusted)
    result = line(forward, vjp)
    assert result.verdict == "wrong"
    told = f"the VJP after a forward call with another value of `{changed}` alone: worst da["
    assert result.message.startswith(told)
    assert result.message.endswith("is something kept from the last call?")
