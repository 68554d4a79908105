"""Makers of tables, pictures and figures for the pages, `python -m docs.build.NAME` in a clone.

A maker without a library that it needs says which, in one sentence.
"""

import sys
from types import TracebackType


def _in_one_sentence(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print what is missing; other errors as Python does."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        name = error.name.partition(".")[0]
        sys.stderr.write(f"this needs {name}: pip install -e '.[dev]' in a clone of refssm\n")
    else:
        sys.__excepthook__(kind, error, trace)


if sys.argv[0] == "-m":  # as it is while `python -m` imports the packages of its module
    sys.excepthook = _in_one_sentence
