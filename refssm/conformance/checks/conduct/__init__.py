"""Conduct: how a function treats its arguments, and what its results must not depend on."""

from refssm.conformance.checks.conduct.arguments import ARGUMENTS
from refssm.conformance.checks.conduct.copies import copies, summed
from refssm.conformance.checks.conduct.lengths import lengths
from refssm.conformance.checks.conduct.repetition import repeat
from refssm.conformance.checks.conduct.streams import stream
from refssm.conformance.checks.law import Conduct

CONDUCT: tuple[Conduct, ...] = (copies, summed, repeat, *ARGUMENTS)  # of every implementation
OF_LENGTHS: tuple[Conduct, ...] = (lengths,)  # where the function takes lengths of rows
OF_STREAMS: tuple[Conduct, ...] = (stream,)  # where calls queue their work on a stream
