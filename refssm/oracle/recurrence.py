"""The forms of a recurrence, from its step: one step after the other, from rest at each reset."""


def forms(step, varying, rest):
    """The recurrence from rest, from a state with the last state, packed, packed with a state for
    each sequence, from a state with the states at places, and in reverse time.

    `varying` has a 1 for each argument that has an entry for every step, else a 0; `rest` gives the
    zero state for the arguments. Keywords are passed on to the step; `chunk` changes nothing.
    """

    def at(arguments, k):
        return [x[k] if v == "1" else x for x, v in zip(arguments, varying, strict=True)]

    def run(arguments, state, resets, **statics):
        """The outputs, and the states before and after each step."""
        y, states = [], [state]
        for k in range(len(arguments[varying.index("1")])):
            start = rest(*arguments) if resets and resets[k] else states[-1]
            y_k, state = step(*at(arguments, k), start, **statics)
            y.append(y_k)
            states.append(state)
        return y, states

    def plain(*arguments, **statics):
        return run(arguments, rest(*arguments), None, **statics)[0]

    def stateful(*given, **statics):
        *arguments, state = given
        y, states = run(arguments, state, None, **statics)
        return y, states[-1]

    def packed(*given, **statics):
        *arguments, resets = given
        return run(arguments, rest(*arguments), resets, **statics)[0]

    def packed_stateful(*given, **statics):
        *arguments, starts, ends = given
        y, last = [], []
        for state, end in zip(starts, ends, strict=True):
            while len(y) < int(end):
                y_k, state = step(*at(arguments, len(y)), state, **statics)
                y.append(y_k)
            last.append(state)
        return y, last

    def states_at(*given, **statics):
        *arguments, start, places = given
        y, states = run(arguments, start, None, **statics)
        return y, [states[int(place)] for place in places]

    def backwards(*arguments, **statics):
        turned = [x[::-1] if v == "1" else x for x, v in zip(arguments, varying, strict=True)]
        return plain(*turned, **statics)[::-1]

    return plain, stateful, packed, packed_stateful, states_at, backwards
