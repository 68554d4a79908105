"""Mistakes in RWKV-7, in every form, and the names that reports give them.

Each program is one loop over time whose state is values × keys, as in RWKV's kernels.
"""

import numpy as np
import pytest
from judging import judged, looks_like
from test_named_recurrences import looped, times

from refssm.conformance.calling.finding import operator_named

pytestmark = [pytest.mark.usefixtures("their_warnings_are_not_ours"), pytest.mark.long]
FORMS = ("", "_stateful", "_packed", "_packed_stateful")
NAMES = [
    *(f"delta_dplr{form}" for form in (*FORMS, "_states", "_step")),
    *(f"delta_dplr_chunked{form}" for form in FORMS),
]


def outer(v, k):
    """v kᵀ."""
    return v[..., :, None] * k[..., None, :]


def step(removed=lambda S, kept, new, a: times(S, a), write=lambda a, b: b, late=(),
         read=lambda S, after: after):  # fmt: skip
    """A step of RWKV-7, of which some parts are replaced."""

    def one(c, t, S):
        rows = {n: c.row(n, max(t - 1, c.first) if n in late else t) for n in "qkvab"}
        q, k, v, a, b = rows.values()
        kept, new = np.exp(c.row("log_g", t))[..., None, :] * S, outer(v, k)
        after = kept + outer(removed(S, kept, new, a), write(a, b)) + new
        return times(read(S, after), q), after

    return one


CAUSES = {
    "after the decay": (
        step(lambda S, kept, new, a: times(kept, a)),
        "b (aᵀ diag(e^g) S): a reads the state after its decay",
    ),
    "after the value": (
        step(lambda S, kept, new, a: times(S + new, a)),
        "a reads the state after the new value was written",
    ),
    "no rates": (step(write=lambda a, b: -a), "b = κ̂ in place of κ̂ ∘ η"),
    "not removed": (step(write=lambda a, b: 0 * b), "b (aᵀ S) left out"),
    "added": (step(write=lambda a, b: -b), "−b (aᵀ S): κ̂ for −κ̂"),
    "read before": (step(read=lambda S, after: S), "the state read before it is written"),
    "late keys": (step(late="k"), "k of the step before: k_{t−1} for k_t"),
}


def two_each():
    """Two operators of each cause, in other forms from cause to cause."""
    for i, cause in enumerate(CAUSES):
        names = NAMES if "late" not in cause else ["delta_dplr", "delta_dplr_packed"]
        yield from ((names[(i + k) % len(names)], cause) for k in (0, len(names) // 2))


@pytest.mark.parametrize(("name", "cause"), [*two_each()])
def test_a_mistake_has_its_name_in_any_form(name, cause):
    program, what = CAUSES[cause]
    told = looks_like(name, looped(name, program))
    assert told.startswith(what) or f"(or: {what}" in told


@pytest.mark.parametrize("name", NAMES[::3])
def test_the_loop_without_a_mistake_is_right(name):
    checks = ["value", "state"] if operator_named(name).form == "stateful" else ["value"]
    assert all(line.verdict == "pass" for line in judged(name, looped(name, step()), *checks))
