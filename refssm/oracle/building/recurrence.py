"""The forms of a recurrence, from its step: one step after the other, from rest at each reset."""


def forms(step, varying, rest, parts=1):
    """The recurrence from rest, from a state with the last state, packed, packed with a state for
    each sequence, from a state with the states at places, and in reverse time.

    `varying` has a 1 for each argument that has an entry for every step, else a 0; `rest` gives the
    zero state for the arguments, of several `parts` a tuple. Keywords are passed on to the step;
    `chunk` changes nothing.
    """

    def at(arguments, k):
        return [x[k] if v == "1" else x for x, v in zip(arguments, varying, strict=True)]

    def at_rest(arguments):
        state = rest(*arguments)
        return list(state) if parts > 1 else [state]

    def run(arguments, state, resets, **statics):
        """The outputs, and the states before and after each step, as lists of their parts."""
        y, states = [], [state]
        for k in range(len(arguments[varying.index("1")])):
            start = at_rest(arguments) if resets and resets[k] else states[-1]
            y_k, *state = step(*at(arguments, k), *start, **statics)
            y.append(y_k)
            states.append(state)
        return y, states

    def of_parts(states):
        """Each part, of all states."""
        return ([state[i] for state in states] for i in range(parts))

    def plain(*arguments, **statics):
        return run(arguments, at_rest(arguments), None, **statics)[0]

    def stateful(*given, **statics):
        y, states = run(given[:-parts], given[-parts:], None, **statics)
        return y, *states[-1]

    def packed(*given, **statics):
        *arguments, resets = given
        return run(arguments, at_rest(arguments), resets, **statics)[0]

    def packed_stateful(*given, **statics):
        *arguments, ends = given
        arguments, starts = arguments[:-parts], arguments[-parts:]
        y, last = [], []
        for *state, end in zip(*starts, ends, strict=True):
            while len(y) < int(end):
                y_k, *state = step(*at(arguments, len(y)), *state, **statics)
                y.append(y_k)
            last.append(state)
        return y, *of_parts(last)

    def states_at(*given, **statics):
        *arguments, places = given
        y, states = run(arguments[:-parts], arguments[-parts:], None, **statics)
        return y, *of_parts([states[int(place)] for place in places])

    def backwards(*arguments, **statics):
        turned = [x[::-1] if v == "1" else x for x, v in zip(arguments, varying, strict=True)]
        return plain(*turned, **statics)[::-1]

    return plain, stateful, packed, packed_stateful, states_at, backwards
