"""Conduct: how a function treats its arguments, and what its results must not depend on."""

from refssm.conformance.checks.conduct.arguments import ARGUMENTS
from refssm.conformance.checks.conduct.repetition import REPEAT
from refssm.conformance.checks.conduct.streams import STREAM
from refssm.conformance.checks.law import Conduct

CONDUCT: tuple[Conduct, ...] = (REPEAT, *ARGUMENTS)  # of every implementation
OF_STREAMS: tuple[Conduct, ...] = (STREAM,)  # where calls queue their work on a stream
