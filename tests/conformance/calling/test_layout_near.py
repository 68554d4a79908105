"""A layout that no operator has: what is wrong with which argument, and the nearest valid one."""

from refssm.conformance.calling.finding import operator_named

SCAN, ZOH = operator_named("linear_scan"), operator_named("discretize_zoh")
LAST = "b n l, b n l -> b n l"
WRONG = {
    "an unknown axis": (
        "b n t, b n l -> b n l",
        "gives `a` the axes b n t, wanted b l n in some order: `t` is no axis of `a`, "
        f"`l` is missing; did you mean '{LAST}'?",
    ),
    "a missing axis": (
        "b n l, b l -> b n l",
        "gives `b` the axes b l, wanted b l n in some order: `n` is missing; "
        f"did you mean '{LAST}'?",
    ),
    "an axis twice": (
        "b n l, b n l -> b n n l",
        "gives `x` the axes b n n l, wanted b l n in some order: `n` is there twice, wanted "
        f"once; did you mean '{LAST}'?",
    ),
    "a bracket that stays open": (
        "(b n l, (b n) l -> b n l",
        "gives `a` the axes (b n l, wanted b l n in some order: Imbalanced parentheses in "
        "expression: \"(b n l\"; did you mean 'b n l, (b n) l -> b n l'?",
    ),
    "other names": (
        "batch time n, batch time n -> batch time n",
        "gives `a` the axes batch time n, wanted b l n in some order: `batch` is no axis of `a`, "
        "`time` is no axis of `a`, `b` is missing, `l` is missing; "
        "did you mean 'b l n, b l n -> b l n'?",
    ),
    "letters without spaces": (
        "bnl, bnl -> bnl",
        "gives `a` the axes bnl, wanted l n in some order: `bnl` is no axis of `a`, `l` is "
        f"missing, `n` is missing; did you mean '{LAST}'?",
    ),
    "a semicolon": (
        "b n l; b n l -> b n l",
        f"must have 2 arguments and 1 outputs, as 'b l n, b l n -> b l n'; did you mean '{LAST}'?",
    ),
    "one array": (
        "b l n -> b l n",
        "must have 2 arguments and 1 outputs, as 'b l n, b l n -> b l n'",
    ),
}
