"""What public code calls the arguments of operators, and how to make such arguments from ours.

In an expression `xp` is the module of arrays (torch, jax.numpy, cupy or numpy).
"""

from __future__ import annotations

from refssm._declaration.operator import Operator
from refssm.catalog import joined

STATES = "x0 h0 s0 x h s state state0 initialstate initialstates prevstate ssmstate hprev"
# other names of an argument, in small letters without _; its own name counts always
OTHERS = {
    "u": "x input inputs signal xs us hiddenstates inputsequence",
    "x": "v value values u inputs",
    "dt": "delta step steps stepsize timestep dts deltas",
    "A": "a amat lambda", "B": "b bmat btilde bbar k key keys", "C": "c cmat ctilde q query",
    "D": "d skip dskip", "z": "gate res z", "dt_bias": "deltabias bias",
    "a": "gates gate decay decays coeffs alpha lambda lambdas lambdabar abar lambdaelements",
    "b": "tokens x u inputs values v bx bu buelements xs",
    "w": "lambda lambdas poles eigenvalues a lam", "v": "weights", "k": "kernel weight filter h",
    "log_a": "a g logdecay logalpha da adt gk",
    "x0": STATES, "S0": STATES, "S": STATES, "s0": STATES,
    "resets": "reset flags starts", "l": "length seqlen lmax n", "n": "order dstate",
    "chunk": "blocklen chunksize blocksize chunklen chunksizes", "h": "markov coefficients",
    "P": "p", "Q": "q",
}  # fmt: skip
# arguments that are functions of ours: of which, and in what way
MADE = {
    "logdt": ("dt", "xp.log({dt})"),
    "logstep": ("dt", "xp.log({dt})"),
    "logdelta": ("dt", "xp.log({dt})"),
    "alog": ("A", "xp.log(-{A})"),
    "logareal": ("w", "xp.log(-{w}.real)"),
    "aimag": ("w", "{w}.imag"),
    "lambdaim": ("w", "{w}.imag"),
    "lambdaimag": ("w", "{w}.imag"),
    "areal": ("w", "{w}.real"),
    "lambdare": ("w", "{w}.real"),
    "lambdareal": ("w", "{w}.real"),
}
# parameters that an adapter has: what the test passes, and the adapter
ADAPTED = {
    "xp.log(dt)": ("dt", "log_dt()"),
    "xp.log(-A)": ("A", 'neg_exp("A")'),
    "xp.log(-w.real)": ("w.real", 'neg_exp("w")'),
}
# arguments beyond an operator's: what makes them change nothing, and how that is told
IDLE = {
    ("selective_scan", "D"): ("A[..., 0] * 0", "it gets D = 0: with D u it would be more"),
}
# switches that an operator wants, as public functions call them
SWITCHES = {
    "deltasoftplus": lambda op: "dt_bias" in op.inputs,
    "dtsoftplus": lambda op: "dt_bias" in op.inputs,
    "conjsym": lambda op: "_real" in op.name,
    "bidirectional": lambda op: "bidirectional" in op.name,
}
REVERSED = {"torch": "{}.flip(-1)"}  # else `{}[..., ::-1]`


def means(argument: str, name: str) -> bool:
    """Whether an argument of a function may be this argument of an operator."""
    told = joined(argument)
    return told == joined(name) or told in map(joined, OTHERS.get(name, "").split())


def idle(op: Operator, argument: str) -> tuple[str, str]:
    """The expression with which an argument changes nothing, and how that is told; or two ""."""
    for (name, ours), told in IDLE.items():
        if op.name == name and means(argument, ours):
            return told
    return "", ""


def switch(op: Operator, argument: str) -> str:
    """The value of a switch that the operator wants: "True", "False", or "" if it is unknown."""
    wanted = SWITCHES.get(joined(argument))
    return str(wanted(op)) if wanted else ""
