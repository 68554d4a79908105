"""How to call a function as an operator: which of our arguments becomes which of its arguments.

First, what public code calls the arguments of operators, and how to make such arguments from ours.
In an expression `xp` is the module of arrays (torch, jax.numpy, cupy or numpy).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from refssm._declaration.adapted import adapters_of
from refssm._declaration.layout import parse
from refssm._declaration.operator import Operator
from refssm.catalog import joined
from refssm.conformance.calling.calls.attempt import Function

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


KERNELS = ("diagonal_kernel_zoh", "diagonal_kernel_bilinear")  # C and B count as their product only
OF_PAIRS = tuple(f"{name}_real" for name in KERNELS)
SKIPPING = "diagonal_ssm"  # their D u is often added elsewhere
REAL_PARTS = {1: "the real part of the kernel", 2: "twice the real part of the kernel"}


@dataclass(frozen=True)
class Recipe:
    """A call of a function with the arguments of an operator."""

    op: Operator
    function: str
    passed: tuple[tuple[str, str], ...]  # its arguments: name, or "" by place, and expression
    by_name: int  # how many arguments have a name that fits
    real_part: int = 0  # the function returns so many times the real part: call it twice
    result: int | None = None  # which of several results is the output
    added: str = ""  # what the wrapper adds to the output
    notes: tuple[str, ...] = ()

    @property
    def direct(self) -> bool:
        """True if the function can be called with the operator's arguments as they are."""
        wanted = [*(("", n) for n in self.op.inputs), *((n, n) for n in self.op.static)]
        return [*self.passed] == wanted and not (
            self.real_part or self.added or self.adapters or self.result is not None
        )

    def unjudged(self, function: Function) -> tuple[str, ...]:
        """The function's arguments that the call leaves at their defaults, or makes idle."""
        by_place = sum(not name for name, _ in self.passed)
        given = {name for name, _ in self.passed}
        idle_ones = {name for name in given if name and idle(self.op, name)[0]}
        left = [a.name for a in function.arguments[by_place:] if a.name not in given - idle_ones]
        return tuple(name for name in left if not name.startswith("_"))

    def whole_chunks(self, layout: str) -> Recipe:
        """The recipe with a chunk that divides the length: the output does not depend on it."""
        first, axes = next(iter(self.op.inputs)), parse(self.op, layout).inputs[0]
        chunk = f"math.gcd(chunk, {first}.shape[{axes.index(self.op.leading)}])"
        passed = tuple((n, chunk if text == "chunk" else text) for n, text in self.passed)
        note = "it wants whole chunks: it gets one that divides the length"
        return replace(self, passed=passed, notes=(*self.notes, note))

    @property
    def only_complex(self) -> bool:
        """True if it cannot be called with real arrays."""
        texts = [text for _, text in self.passed]
        return bool(self.real_part) or any(".imag" in t or "view_as_real" in t for t in texts)

    @property
    def adapters(self) -> tuple[str, ...]:
        """The adapters of the parameters that the function takes."""
        own = map(repr, adapters_of(self.op))
        return (*own, *(ADAPTED[text][1] for _, text in self.passed if text in ADAPTED))

    @property
    def in_parameters(self) -> Recipe:
        """The call as a test makes it, behind the adapters."""
        passed = tuple((n, ADAPTED.get(text, (text,))[0]) for n, text in self.passed)
        return replace(self, passed=passed)

    def body(self, framework: str, module: str) -> str:
        """The statement that returns the output; `module` is the name of `xp`."""
        if self.real_part:
            half = f" / {self.real_part}" if self.real_part > 1 else ""
            call = self._call(framework, module)
            return (
                f"real, turned = ({call} for C in (C, 1j * C))\n"
                f"    return (real - 1j * turned){half}"
            )
        return f"return {self._call(framework, module)}{self.added}"

    def _call(self, framework: str, module: str) -> str:
        texts = []
        for name, text in self.passed:
            text = text.replace("xp.", f"{module}.")
            if text.startswith("reversed "):
                text = REVERSED.get(framework, "{}[..., ::-1]").format(
                    text.removeprefix("reversed ")
                )
            texts.append(f"{name}={text}" if name else text)
        picked = "" if self.result is None else f"[{self.result}]"
        return f"{self.function}({', '.join(texts)}){picked}"

    def source(self, name: str, framework: str, module: str = "xp") -> str:
        """A function `name` with the operator's arguments."""
        arguments = ", ".join(
            [*self.op.inputs, *(["*"] if self.op.static else []), *self.op.static]
        )
        return f"def {name}({arguments}):\n    {self.body(framework, module)}\n"


def recipes(function: Function, op: Operator) -> Iterator[Recipe]:
    """The ways to call a function as an operator, the likeliest first."""
    for passed, by_name, notes in (_by_name(function, op), _by_place(function, op)):
        if passed is None:
            continue
        recipe = Recipe(op, function.name, passed, by_name, notes=notes)
        if by_name and op.name.startswith(SKIPPING) and "D" not in (text for _, text in passed):
            note = "it has no D: the wrapper adds D u"
            recipe = replace(recipe, added=" + u @ D.swapaxes(-1, -2)", notes=(*notes, note))
        yield recipe
        if any(means(name, "k") and joined(name) == "weight" for name in _names(function)):
            flipped = tuple((n, "reversed k" if text == "k" else text) for n, text in passed)
            yield replace(recipe, passed=flipped, notes=(*notes, "its taps are in reverse order"))
        if op.name in KERNELS:
            yield from _of_real_parts(recipe)
        if op.name in OF_PAIRS:
            yield replace(recipe, passed=_all_paired(recipe.passed, True))


def _of_real_parts(recipe: Recipe) -> Iterator[Recipe]:
    """For kernels that return a real part: for complex C and for pairs of real numbers."""
    for pairs in (False, True):
        for factor, told in REAL_PARTS.items():
            passed = _all_paired(recipe.passed, pairs)
            note = f"it returns {told}: it is called with C and with iC"
            yield replace(recipe, passed=passed, real_part=factor, notes=(*recipe.notes, note))


def _all_paired(passed, pairs: bool) -> tuple[tuple[str, str], ...]:
    return tuple((name, _paired(text, pairs)) for name, text in passed)


def _paired(text: str, pairs: bool) -> str:
    """The expression for C, as pairs of real numbers if it is that."""
    if "C" not in text.replace(" * B", ""):
        return text
    return f"xp.view_as_real({text})" if pairs else text


def _names(function: Function) -> list[str]:
    return [argument.name for argument in function.arguments]


def _by_name(function: Function, op: Operator):
    """Each argument by its name; None if one that must be given has no meaning, or one of ours is
    left."""
    left, passed, count, notes, by_place = [*op.inputs, *op.static], [], 0, (), True
    for argument in function.arguments:
        text, used = _meaning(argument.name, left, op)
        if text is None:
            text = switch(op, argument.name)
            if not text and not argument.default:
                text, told = idle(op, argument.name)
                notes = (*notes, told)
            if not text and not argument.default:
                return None, 0, ()
            by_place = by_place and bool(text) and not argument.default
            if text and text != argument.default:
                passed.append((argument.name, text))
            continue
        count += 1
        left = [name for name in left if name != used or _also(argument.name, function, used)]
        place = by_place and not argument.keyword
        passed.append(("" if place else argument.name, text))
    used = "".join(text for _, text in passed)
    left = [name for name in left if name not in used]
    if op.name in (*KERNELS, *OF_PAIRS) and left == ["B"]:
        passed = [(n, "C * B" if text == "C" else text) for n, text in passed]
        left, notes = [], (*notes, "it has no B: it gets C·B for C")
    if op.name.startswith(SKIPPING) and left == ["D"] and len(op.outputs) == 1:
        left = []
    return (None, 0, ()) if left else (tuple(passed), count, notes)


def _meaning(name: str, left: list[str], op: Operator) -> tuple[str | None, str]:
    """The expression for an argument of this name, and which of ours it uses up."""
    made = MADE.get(joined(name))
    if made and made[0] in op.inputs:
        return made[1].format(**{made[0]: made[0]}), made[0]
    exact = [own for own in left if joined(own) == joined(name)]
    for own in [*(o for o in exact if o == name), *exact, *(o for o in left if means(name, o))]:
        return own, own
    return None, ""


def strangers(function: Function, op: Operator) -> tuple[list[str], list[str]]:
    """The function's arguments that must be given and mean nothing to an operator, and the
    operator's that the function does not take."""
    left, unknown = [*op.inputs, *op.static], []
    for argument in function.arguments:
        text, used = _meaning(argument.name, left, op)
        if text is not None:
            left = [name for name in left if name != used]
        elif not (argument.default or switch(op, argument.name) or idle(op, argument.name)[0]):
            unknown.append(argument.name)
    return unknown, left


def _also(name: str, function: Function, used: str) -> bool:
    """True if another argument of the function is made from the same one of ours."""
    made = [n for n in _names(function) if n != name and MADE.get(joined(n), ("",))[0] == used]
    return joined(name) in MADE and bool(made)


def _by_place(function: Function, op: Operator):
    """All arguments that must be given in the operator's order, if there are as many."""
    wanted = [*op.inputs, *op.static]
    given = [a for a in function.arguments if not a.default]
    if len(given) != len(wanted) or any(a.keyword for a in given[: len(op.inputs)]):
        return None, 0, ()
    names = [a.name if own in op.static else "" for a, own in zip(given, wanted, strict=True)]
    return tuple(zip(names, wanted, strict=True)), 0, ("its arguments were taken in order",)
