"""The forms of a recurrence, from sums over its past."""

from itertools import pairwise


def forms(sums, varying, rest, parts=1):
    """The recurrence from rest, from a state with the last state, packed, packed with a state for
    each sequence, from a state with the states at places, in reverse time, and one step.

    `sums(arguments, state, resets)` gives the outputs and the last state, without a loop over
    states. `varying` has a 1 for each argument that has an entry for every step, else a 0; `rest`
    gives the zero state for the arguments. A state of several `parts` is a tuple here. Keywords are
    passed on to `sums`.
    """

    def cut(arguments, window):
        """The arguments of some steps."""
        return [x[window] if v == "1" else x for x, v in zip(arguments, varying, strict=True)]

    def no_resets(arguments):
        return [False] * len(arguments[varying.index("1")])

    def alone(arguments, state, statics):
        return sums(arguments, state, no_resets(arguments), **statics)

    def plain(*arguments, **statics):
        return alone(arguments, rest(*arguments), statics)[0]

    def stateful(*given, **statics):
        y, state = alone(given[:-parts], _whole(given[-parts:]), statics)
        return y, *_apart(state, parts)

    def packed(*given, **statics):
        *arguments, resets = given
        return sums(arguments, rest(*arguments), resets, **statics)[0]

    def packed_stateful(*given, **statics):
        *arguments, ends = given
        arguments, states = arguments[:-parts], arguments[-parts:]
        pieces = [slice(*pair) for pair in pairwise([0, *ends])]
        pairs = zip(pieces, zip(*states, strict=True), strict=True)
        found = [alone(cut(arguments, w), _whole(x), statics) for w, x in pairs]
        return [y_k for y, _ in found for y_k in y], *_of_parts([x for _, x in found], parts)

    def states_at(*given, **statics):
        *arguments, places = given
        arguments, state = arguments[:-parts], _whole(arguments[-parts:])
        found = [alone(cut(arguments, slice(place)), state, statics)[1] for place in places]
        return alone(arguments, state, statics)[0], *_of_parts(found, parts)

    def backwards(*arguments, **statics):
        return plain(*cut(arguments, slice(None, None, -1)), **statics)[::-1]

    def step(*given, **statics):
        now, state = given[:-parts], _whole(given[-parts:])
        arguments = [[x] if v == "1" else x for x, v in zip(now, varying, strict=True)]
        (y,), state = alone(arguments, state, statics)
        return y, *_apart(state, parts)

    return plain, stateful, packed, packed_stateful, states_at, backwards, step


def _whole(state):
    """The parts of a state as `sums` takes them: the only one, or a tuple."""
    return tuple(state) if len(state) > 1 else state[0]


def _apart(state, parts):
    return state if parts > 1 else (state,)


def _of_parts(states, parts):
    """Each part, of all states."""
    return ([_apart(state, parts)[i] for state in states] for i in range(parts))
