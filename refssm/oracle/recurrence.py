"""The forms of a recurrence, from its step: one step after the other, from rest at each reset."""


def forms(step, varying, rest):
    """The recurrence from rest, from a state with the last state, packed, packed with a state for
    each sequence, from a state with the states at places, and in reverse time.

    `varying` has a 1 for each argument that has an entry for every step, else a 0; `rest` gives the
    zero state for the arguments. Parameters such as `chunk` change nothing.
    """

    def at(arguments, k):
        return [x[k] if v == "1" else x for x, v in zip(arguments, varying, strict=True)]

    def run(arguments, state, resets):
        """The outputs, and the states before and after each step."""
        y, states = [], [state]
        for k in range(len(arguments[varying.index("1")])):
            start = rest(*arguments) if resets and resets[k] else states[-1]
            y_k, state = step(*at(arguments, k), start)
            y.append(y_k)
            states.append(state)
        return y, states

    def plain(*arguments, **_):
        return run(arguments, rest(*arguments), None)[0]

    def stateful(*given, **_):
        *arguments, state = given
        y, states = run(arguments, state, None)
        return y, states[-1]

    def packed(*given, **_):
        *arguments, resets = given
        return run(arguments, rest(*arguments), resets)[0]

    def packed_stateful(*given, **_):
        *arguments, starts, ends = given
        y, last = [], []
        for state, end in zip(starts, ends, strict=True):
            while len(y) < int(end):
                y_k, state = step(*at(arguments, len(y)), state)
                y.append(y_k)
            last.append(state)
        return y, last

    def states_at(*given, **_):
        *arguments, start, places = given
        y, states = run(arguments, start, None)
        return y, [states[int(place)] for place in places]

    def backwards(*arguments, **_):
        turned = [x[::-1] if v == "1" else x for x, v in zip(arguments, varying, strict=True)]
        return plain(*turned)[::-1]

    return plain, stateful, packed, packed_stateful, states_at, backwards
