"""What is raised where something cannot be judged as it is given."""


class UsageError(Exception):
    """The target cannot be judged as given: one sentence, exit code 4."""
