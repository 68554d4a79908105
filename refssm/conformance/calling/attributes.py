"""Read an object's attributes without running its `__getattr__`.

A mock or a lazy object would run code there. This module imports nothing, because pytest loads it
in every session.
"""


def vars_of(thing) -> dict:
    """The instance dictionary; empty if there is none or reading it raises."""
    try:
        return vars(thing)
    except Exception:
        return {}


def marks_of(thing) -> list:
    """The pytest marks called `refssm` on an object."""
    marks = vars_of(thing).get("pytestmark")
    return [m for m in marks if m.name == "refssm"] if isinstance(marks, list) else []
