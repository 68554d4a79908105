"""The forms of a recurrence, from its step: one step after the other, from rest at each reset."""


def forms(step, varying, rest):
    """The recurrence from rest, from a state with the last state, and packed.

    `varying` has a 1 for each argument that has an entry for every step, else a 0; `rest` gives the
    zero state for the arguments. Parameters such as `chunk` change nothing.
    """

    def run(arguments, state, resets):
        y, l = [], len(arguments[varying.index("1")])
        for k in range(l):
            now = [x[k] if v == "1" else x for x, v in zip(arguments, varying, strict=True)]
            y_k, state = step(*now, rest(*arguments) if resets and resets[k] else state)
            y.append(y_k)
        return y, state

    def plain(*arguments, **_):
        return run(arguments, rest(*arguments), None)[0]

    def stateful(*given, **_):
        *arguments, state = given
        return run(arguments, state, None)

    def packed(*given, **_):
        *arguments, resets = given
        return run(arguments, rest(*arguments), resets)[0]

    return plain, stateful, packed
