"""Conduct: how a function treats its arguments, and what its results must not depend on."""

from refssm.conformance.checks.conduct.arguments import ARGUMENTS
from refssm.conformance.checks.conduct.repetition import repeat
from refssm.conformance.checks.conduct.streams import stream
from refssm.conformance.checks.law import Conduct

CONDUCT: tuple[Conduct, ...] = (repeat, *ARGUMENTS)  # of every implementation
OF_STREAMS: tuple[Conduct, ...] = (stream,)  # where calls queue their work on a stream
