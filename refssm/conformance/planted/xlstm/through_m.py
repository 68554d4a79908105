"""The gradients of mLSTM by differentiation of every operation, also of m and its maximum.

What of it goes to m at a step cancels but for roundings. `constant` names places in which m is
taken as a constant, which leaves a part: "forget", "input" (the gates) or "floor", e^{−m}.
"""

import numpy as np

from refssm.conformance.planted.xlstm.programs import GivenSteps, adjoint, inner


def through_m(right, cotangents, g: GivenSteps, *, constant=()):
    """The gradients by name, by `right`, the VJP with m as a constant."""
    left = cotangents[3]

    def change(now):
        nonlocal left
        parts = _parts(now)
        b, total = now.log_f + now.m_before, left
        for name, part in parts.items():
            total = total if name in constant else total - part
        below = b < now.i
        of_b = parts["forget"] + np.where(below, 0, total)
        left = np.where(now.resets, 0, of_b)
        return {"i": parts["input"] + np.where(below, total, 0), "log_f": of_b}

    found = right(cotangents, g, change=change)
    return found | {"m0": left}


def _parts(now):
    """The terms of −dm of one step."""
    floor = np.exp(-now.m)
    below = np.abs(inner(now.s, now.q)) < floor
    kept = (now.S_before * now.dS).sum((-1, -2)) + (now.s_before * now.ds).sum(-1)
    return {
        "forget": kept,
        "input": now.found["i"],
        "floor": np.where(below, floor * now.dd, 0),
    }


def differentiated(cotangents, g: GivenSteps):
    """The right gradients in this way."""
    return through_m(adjoint, cotangents, g)


def constant_in(place: str):
    """A bug: m is a constant in one place."""
    return lambda right, cotangents, g: through_m(right, cotangents, g, constant=(place,))
