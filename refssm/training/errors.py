"""The exception for a run that cannot be as it was asked for."""


class TrainingError(ValueError):
    """The run cannot be as asked; the message is one sentence for the user."""
