"""The exception for a target or an option that cannot be judged."""


class UsageError(Exception):
    """The target cannot be judged as given; the message is one sentence, the exit code 4."""
