"""The error rule of a cascade of all-passes.

Followed operation by operation its bounds grow by 1/dt a stage; the errors do not, for a stage passes
on what it gets without making it larger. Importing this module registers the rule.
"""

import numpy as np

from refssm.conformance.tracked import FUNCTIONS, Tracked, lifted, met
from refssm.conformance.tracked_rules import rule
from refssm.hope.all_passes import all_pass_responses

CHARGE = 4  # roundings a stage: two products and two sums


@rule(FUNCTIONS, all_pass_responses)
def _all_pass_responses(dt, count, l):
    """4j for all entries of s_j, which are at most 1, and |∂s_j/∂dt| = j |s_{j−1} − s_{j+1}|/(2 dt)."""
    dt = lifted(dt)
    more = all_pass_responses(dt.value, count + 1, l)
    s, j = more[..., :-1, :], np.arange(count)[:, None]
    before = np.concatenate([0 * s[..., :1, :], s[..., :-1, :]], axis=-2)
    slopes = j * np.abs(before - more[..., 1:, :]) / (2 * dt.value[..., None, None])
    met(np.abs(s))
    carried = slopes[..., None] * dt.errors[..., None, None, :]
    return Tracked(s, CHARGE * j[..., None] + carried)
