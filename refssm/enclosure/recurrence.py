"""The forms of a recurrence, from sums over its past."""


def forms(sums, varying, rest):
    """The recurrence from rest, from a state with the last state, packed, and one step.

    `sums(arguments, state, resets)` gives the outputs and the last state, without a loop over
    states. `varying` has a 1 for each argument that has an entry for every step, else a 0; `rest`
    gives the zero state for the arguments. Parameters such as `chunk` change nothing.
    """

    def no_resets(arguments):
        return [False] * len(arguments[varying.index("1")])

    def plain(*arguments, **_):
        return sums(arguments, rest(*arguments), no_resets(arguments))[0]

    def stateful(*given, **_):
        *arguments, state = given
        return sums(arguments, state, no_resets(arguments))

    def packed(*given, **_):
        *arguments, resets = given
        return sums(arguments, rest(*arguments), resets)[0]

    def step(*given):
        *now, state = given
        arguments = [[x] if v == "1" else x for x, v in zip(now, varying, strict=True)]
        (y,), state = sums(arguments, state, [False])
        return y, state

    return plain, stateful, packed, step
