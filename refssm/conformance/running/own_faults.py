"""Faults of refssm: an exception of ours inside one check is the error of that check alone.

Other checks and other functions are judged all the same, so that one fault costs no other result.
"""

import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.usage_error import UsageError

KIND = "fault of refssm"  # of a result, also in JSON
REPORT = f"this is a {KIND}, please report it"
DEBUG = "REFSSM_DEBUG"  # set: the exception ends the run, with its traceback
HINT = f"{DEBUG}=1 ends the run there and shows the whole traceback"

T = TypeVar("T")


def guarded(make: Callable[[], T], otherwise: Callable[[str], T]) -> T:
    """What `make` returns; if it raises, what `otherwise` makes of the sentence on our fault.

    A usage error is the user's, and an OSError the machine's: the command has sentences for both.
    """
    try:
        return make()
    except (UsageError, OSError):
        raise
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        return otherwise(sentence(error))


def fault(told: str) -> Verdict:
    """The verdict on a call whose judging failed by our fault."""
    return Verdict("F", np.inf, 0.0, told, error=True, kind=KIND)


def sentence(error: Exception) -> str:
    """That this is our fault, the last line of the traceback, and where it was raised."""
    told = " ".join(traceback.format_exception_only(error)[-1].split())
    *_, last = traceback.extract_tb(error.__traceback__)
    return f"{REPORT}: {told} ({Path(last.filename).name}:{last.lineno}, {last.name})"
