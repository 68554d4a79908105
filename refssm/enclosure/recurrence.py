"""The forms of a recurrence, from sums over its past."""

from itertools import pairwise


def forms(sums, varying, rest):
    """The recurrence from rest, from a state with the last state, packed, packed with a state for
    each sequence, from a state with the states at places, in reverse time, and one step.

    `sums(arguments, state, resets)` gives the outputs and the last state, without a loop over
    states. `varying` has a 1 for each argument that has an entry for every step, else a 0; `rest`
    gives the zero state for the arguments. Parameters such as `chunk` change nothing.
    """

    def cut(arguments, window):
        """The arguments of some steps."""
        return [x[window] if v == "1" else x for x, v in zip(arguments, varying, strict=True)]

    def no_resets(arguments):
        return [False] * len(arguments[varying.index("1")])

    def alone(arguments, state):
        return sums(arguments, state, no_resets(arguments))

    def plain(*arguments, **_):
        return alone(arguments, rest(*arguments))[0]

    def stateful(*given, **_):
        *arguments, state = given
        return alone(arguments, state)

    def packed(*given, **_):
        *arguments, resets = given
        return sums(arguments, rest(*arguments), resets)[0]

    def packed_stateful(*given, **_):
        *arguments, states, ends = given
        pieces = [slice(*pair) for pair in pairwise([0, *ends])]
        found = [alone(cut(arguments, w), x) for w, x in zip(pieces, states, strict=True)]
        return [y_k for y, _ in found for y_k in y], [x for _, x in found]

    def states_at(*given, **_):
        *arguments, state, places = given
        found = [alone(cut(arguments, slice(place)), state)[1] for place in places]
        return alone(arguments, state)[0], found

    def backwards(*arguments, **_):
        return plain(*cut(arguments, slice(None, None, -1)))[::-1]

    def step(*given):
        *now, state = given
        arguments = [[x] if v == "1" else x for x, v in zip(now, varying, strict=True)]
        (y,), state = alone(arguments, state)
        return y, state

    return plain, stateful, packed, packed_stateful, states_at, backwards, step
