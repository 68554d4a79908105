"""What stands on a function without asking it: a mock or a lazy object would run code to answer.

Imports nothing, for pytest loads it in every session.
"""

from __future__ import annotations


def vars_of(thing) -> dict:
    """The instance dictionary, empty where there is none or where asking for it raises."""
    try:
        return vars(thing)
    except Exception:
        return {}


def marks_of(thing) -> list:
    """Its pytest marks called `refssm`."""
    marks = vars_of(thing).get("pytestmark")
    return [m for m in marks if m.name == "refssm"] if isinstance(marks, list) else []
