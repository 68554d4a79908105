"""Mistakes in RWKV-6, in every form, and the names that reports give them.

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
    *(f"rwkv6{form}" for form in (*FORMS, "_states", "_step")),
    *(f"rwkv6_chunked{form}" for form in FORMS),
]


def step(read=lambda S, new, u, a: S + u * new, kept=lambda S, new, u, a: a * S + new,
         late=(), gates=np.exp):  # fmt: skip
    """A step of RWKV-6, of which some parts are replaced."""

    def one(c, t, S):
        r, k, v = (c.row(n, max(t - 1, c.first) if n in late else t) for n in "rkv")
        a, u = gates(c.row("log_w", t))[..., None, :], c.row("u", t)[..., None, :]
        new = v[..., :, None] * k[..., None, :]
        return times(read(S, new, u, a), r), kept(S, new, u, a)

    return one


CAUSES = {
    "no bonus": (step(lambda S, new, u, a: S), "u forgotten: r reads the state alone"),
    "bonus of one": (step(lambda S, new, u, a: S + new), "u taken as 1: the state read after"),
    "read after": (step(lambda S, new, u, a: a * S + new), "the state read after the step"),
    "read decayed": (step(lambda S, new, u, a: a * S + u * new), "the state decays before it is"),
    "bonus on all": (step(lambda S, new, u, a: u * (S + new)), "u multiplies the state that is"),
    "counted twice": (step(lambda S, new, u, a: S + (1 + u) * new), "1 + u for u: the current"),
    "bonus stored": (step(kept=lambda S, new, u, a: a * S + u * new), "u k vᵀ for k vᵀ in the"),
    "new decays": (step(kept=lambda S, new, u, a: a * (S + new)), "the decay multiplies the new"),
    "late receptances": (step(late="r"), "r of the step before: r_{t−1} for r_t"),
    "late keys": (step(late="k"), "k of the step before: k_{t−1} for k_t"),
    "first decay": (step(gates=lambda s: np.exp(s[..., :1])), "the decay of the first key used"),
    "mean decay": (
        step(gates=lambda s: np.exp(s.sum(-1, keepdims=True) / s.shape[-1])),
        "one decay used for all keys",
    ),
}  # fmt: skip


def two_each():
    """Two operators of each cause, in other forms from cause to cause."""
    for i, cause in enumerate(CAUSES):
        names = NAMES if "late" not in cause else [n for n in NAMES if not n.endswith("step")]
        yield from ((names[(i + k) % len(names)], cause) for k in (0, len(names) // 2))


@pytest.mark.parametrize(("name", "cause"), [*two_each()])
def test_a_mistake_has_its_name_in_any_form(name, cause):
    program, what = CAUSES[cause]
    told = looks_like(name, looped(name, program))
    # from rest, u on the whole state that is read is u on all that was stored
    assert told.startswith(what) or f"(or: {what}" in told


@pytest.mark.parametrize("name", NAMES[::2])
def test_the_loop_without_a_mistake_is_right(name):
    checks = ["value", "state"] if operator_named(name).form == "stateful" else ["value"]
    assert all(line.verdict == "pass" for line in judged(name, looped(name, step()), *checks))
