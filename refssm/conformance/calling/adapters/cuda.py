"""What the adapters of CUDA arrays share: versions and flags as text, work for a busy stream."""

# entries of an array, and how often it is read and written: some 10 ms, during which a function
# is called; work that does not wait for its stream comes too early
BUSY, ROUNDS = 1 << 24, 200


def version(number: int) -> str:
    """A version of CUDA, as 12.8 for 12080."""
    return f"{number // 1000}.{number % 1000 // 10}"


def yes(flag: bool) -> str:
    """A flag as a word."""
    return "yes" if flag else "no"


def elsewhere(kind: str, place: str, wanted: str) -> str:
    """The sentence on an output that is in another place than the arguments."""
    return f"is {kind} on {place}, want one on {wanted}: the result must stay with the arguments"
