"""The docstrings of the forms of a recurrence, made of one text for each form."""

import inspect
from collections.abc import Mapping
from textwrap import fill

TEXTS = {
    "stateful": """Signature ``{signature}``: as `{name}`, with the state before the first input.
        The next piece{step} starts from the last state, which includes the newest input (`{first}`
        if l is 0).""",
    "from": """Signature ``{signature}``: as `{name}`, with the state `{first}` before the first
        input. A long sequence may be split anywhere: the last state of one piece is the `{first}`
        of the next.""",
    "packed": """Signature ``{signature}``: as `{name}`. `resets` is true, or an integer that is not
        0, at the first step of each packed sequence; the very first step needs none. The state
        before is dropped, not multiplied by 0, so nothing leaks, not even NaN. TypeError if
        `resets` has another type.""",
    "packed_stateful": """Signature ``{signature}``: as `{name}`, for m sequences one after the
        other. Sequence i ends before step `ends[i]`, begins where the one before ends (the first
        one at step 0) and starts from the state `{firsts}`; the last one ends at l. This is
        ``cu_seqlens[1:]`` of public kernels. The last state of a sequence without steps is its
        first. ValueError if `ends` do not rise from 0 or more to l, TypeError if they are no
        integers.""",
    "packed_from": """Signature ``{signature}``: as `{name}`, for m sequences one after the other.
        Sequence i ends before step `ends[i]`, begins where the one before ends (the first one at
        step 0) and starts from the state `{firsts}`; the last one ends at l. This is
        ``cu_seqlens[1:]`` of public kernels; sequences may have no steps. ValueError if `ends` do
        not rise from 0 or more to l, TypeError if they are no integers.""",
    "states": """Signature ``{signature}``: as `{name}_stateful`, with the states after
        `places[0]`, `places[1]`, … steps in place of the last one: `{first}` after 0 steps, the
        last state after l. A server that keeps states to go on from, or to roll back to, stores
        these. ValueError if `places` do not rise from 0 or more to at most l, TypeError if they
        are no integers.""",
    "reversed": """Signature ``{signature}``: as `{name}`, with time reversed: the first step taken
        is the last one of the sequence. The backward half of a bidirectional layer.""",
}
LAST = " Types, units and errors are those of `{name}`. Source: [{citation}]."
START = "from rest."  # the end of the formula; the other forms start otherwise
STARTS = {
    "stateful": "from the state {first}; and the last state.",
    "from": "from the state {first}.",
    "packed": "from rest where a sequence begins.",
    "packed_stateful": "from one state per sequence; and the last ones.",
    "packed_from": "from one state per sequence.",
    "states": "from the state {first}; and the states at places.",
    "reversed": "from the last step to the first.",
}
GRADIENTS = {
    "stateful": "As in `{name}_vjp`, with d{last} added to the cotangent of the last state.",
    "from": "As in `{name}_vjp`; the cotangent that is left at the start is d{first}.",
    "packed": "As in `{name}_vjp`; nothing flows back from the first step of a sequence.",
    "packed_stateful": "As in `{name}_stateful_vjp`, for each sequence.",
    "packed_from": "As in `{name}_from_vjp`, for each sequence.",
    "states": "As in `{name}_stateful_vjp`, with d{last} added to the cotangents at the places.",
    "reversed": "As in `{name}_vjp`, with time reversed.",
}
RETURNS = "Returns `({gradients})`, shaped like the arguments."


def doc(form: str, of_plain: str, said: Mapping[str, str], example: str) -> str:
    """The docstring of a form: the formula, what differs, and the example."""
    formula, _, text = inspect.cleandoc(of_plain).partition("\n\n")
    if form != "plain":
        assert formula.endswith(START), f"{said['name']}: its formula ends with {START!r}"
        formula = formula.removesuffix(START) + STARTS[form].format(**said)
        text = fill(" ".join((TEXTS[form] + LAST).split()).format(**said), 100)
    return f"{formula}\n\n{text}\n\n>>> import refssm\n{inspect.cleandoc(example)}"


def vjp_doc(form: str, of_plain: str, said: Mapping[str, str]) -> str:
    """The docstring of a form's VJP."""
    first = of_plain if form == "plain" else GRADIENTS[form].format(**said)
    return f"{inspect.cleandoc(first)}\n\n{RETURNS.format(**said)}"
