"""The exception for a target or an option that cannot be judged, and how it shows a value."""

SHOWN = 80  # characters of a wrong value


def shown(value: object, most: int = SHOWN) -> str:
    """A wrong value as short text."""
    try:
        text = repr(value)
    except RecursionError:
        return "a deeply nested value"
    return text if len(text) <= most else f"{text[:most]}…"


class UsageError(Exception):
    """The target cannot be judged as given; the message is one sentence, the exit code 4."""


class Several(UsageError):
    """A file has several functions of one operator; `parts` are the target and operator of each."""

    def __init__(self, message: str, parts: tuple[tuple[str, str], ...]):
        super().__init__(message)
        self.parts = parts
