"""The exception for a target or an option that cannot be judged."""


class UsageError(Exception):
    """The target cannot be judged as given; the message is one sentence, the exit code 4."""


class Several(UsageError):
    """A file has several functions of one operator; `parts` are the target and operator of each."""

    def __init__(self, message: str, parts: tuple[tuple[str, str], ...]):
        super().__init__(message)
        self.parts = parts
