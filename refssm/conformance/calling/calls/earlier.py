"""Earlier calls with the same arguments, which had other values then.

A result that is kept by the identity or the address of an argument is the earlier one; a buffer
that is used again changes the earlier outputs.
"""

from itertools import combinations

import numpy as np

from refssm.conformance.calling.adapters.numpy_arrays import Unusable
from refssm.conformance.calling.calls.run import CalledOnce

CALLS = 3  # a ring of two or three buffers is seen


class Earlier:
    """Calls with the same arguments before the judged one, and what they returned."""

    def __init__(self, run: CalledOnce):
        self.run, self.results = run, []

    def calls(self, values, before, statics) -> list:
        """The arguments of some calls with `values`; then they hold the values `before`."""
        made, kind = self.run.made, self.run.kind
        first, given = [made.give(a, kind) for a in values], [made.copied(x) for x in before]
        for _ in range(CALLS):
            for x, value in zip(given, first, strict=True):
                made.refill(x, value)
            self.results.append(self.run.outputs(given, statics))
        for x, value in zip(given, before, strict=True):
            made.refill(x, value)
        made.finish()
        return given

    def shared_with(self, outputs) -> bool:
        """True if the outputs of two calls share memory."""
        made, returned = self.run.made, [returned for returned, _ in self.results]
        pairs = combinations([*returned, outputs], 2)
        return any(made.share(x, y) for one, other in pairs for x in one for y in other)

    def changed(self) -> bool:
        """True if the outputs of an earlier call have other numbers now."""
        return any(
            not _same_numbers(x, y)
            for outputs, taken in self.results
            if outputs  # () where the call was made slice by slice
            for x, y in zip(self.run.taken(outputs), taken, strict=True)
        )


def _same_numbers(x, y) -> bool:
    """True if two outputs are equal, or no arrays of numbers."""
    if isinstance(x, Unusable) or isinstance(y, Unusable):
        return True
    return np.array_equal(x, y, equal_nan=True)
