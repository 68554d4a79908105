"""The doctor's report, and the tests that it writes."""

import os
from pathlib import Path
from shlex import quote

from refssm.conformance.calling.calls.attempt import IMPORTS
from refssm.conformance.doctor.guess import NAMED, RUNS, SURE, Guess, Guesses
from refssm.conformance.doctor.recipes import strangers

SHORT = {"torch": "torch", "jax": "jnp", "cupy": "cupy", "numpy": "np"}
SAYS = {
    SURE: "fits: two small cases agree",
    RUNS: "likely: it runs and returns the right shapes, but other values than the reference",
    NAMED: "unsure: only its name and its arguments fit, no call returned",
}
MOST = 3  # other operators that are named


def lines(told: Guesses, target: str, written: str, later: bool = False) -> list[str]:
    """What is known of one function, in lines; `later`: the file `written` does not exist yet."""
    function = told.function
    head = f"{function.name}({', '.join(map(_argument, function.arguments))})"
    if function.kind:
        return [f"{function.name}", f"  {function.kind}"]
    if function.operator:
        return [head, f"  {function.operator}, as its name or its author says; not tried",
                f"  refssm verify {quote(f'{target}::{function.name}')}"]  # fmt: skip
    if not told.guesses:
        died = [f"  the last call {told.died}"] if told.died else []
        return [head, f"  {_unknown(told)}", *died]
    guess = told.guesses[0]
    found = [head, f"  {guess.op}, {SAYS[guess.how]}{_in(guess)}", f"  why: {_why(told, guess)}"]
    found += [f"  {note}" for note in guess.recipe.notes]
    if left := guess.recipe.unjudged(function):
        found.append(f"  not judged: {', '.join(left)}, which {guess.op} does not have")
    if guess.recipe.result is not None:
        found.append(f"  only result {guess.recipe.result} of those that it returns is judged")
    if guess.how != SURE and guess.message:
        found.append(f"  the last call {guess.message}" if told.died else f"  {guess.message}")
    if others := _others(told):
        found.append(others)
    if guess.how == NAMED:
        found.append(f"  what it wants: refssm show {guess.op}")
    else:
        first = f"   (first: --write {written})" * (later and not guess.recipe.direct)
        found.append(f"  {command(guess, target, written)}{first}")
    return found


def _unknown(told: Guesses) -> str:
    """That nothing fits, and what an operator of its name would want."""
    op = told.called
    if op is None:
        return "unknown: no operator has its name or its arguments; `refssm find WORDS` searches"
    strange, left = strangers(told.function, op)
    wants = [f"it wants `{', '.join(strange)}`"] if strange else []
    wants += [f"it does not take `{', '.join(left)}`"] if left else []
    why = " and ".join(wants) or "no call gave its shapes"
    ours = ", ".join([*op.inputs, *op.static])
    return f"unknown: by its name {op}, but {why}; write a function of ({ours}) that calls it"


def command(guess: Guess, target: str, written: str) -> str:
    """The command that judges a function: itself if it can be called so, else its test's."""
    place = f"{target}::{guess.recipe.function}"
    if not guess.recipe.direct:  # the mark in the test says the rest
        return f"refssm verify {quote(f'{written}::test_{guess.recipe.function}')}"
    parts = ["refssm", "verify", quote(place), "--as", guess.op.name]
    parts += ["--framework", guess.framework] * (guess.framework != "numpy")
    parts += ["--kinds complex"] * guess.recipe.only_complex
    parts += [f"--dtype {name}" for name in guess.types] * bool(guess.others)
    parts += ["--layout", f'"{guess.layout}"'] * (not guess.op.constructor)
    return " ".join([*parts, *["--vjp"] * guess.gradient])


def tests(diagnoses: list[Guesses], target: str, written: Path) -> str:
    """A pytest file with a marked function for each that runs; refssm's plug-in judges them."""
    shown = [told for told in diagnoses if told.guesses and told.guesses[0].how != NAMED]
    guesses = [told.guesses[0] for told in shown]
    modules = dict.fromkeys(t.function.module for t in shown)
    folders = dict.fromkeys(t.function.folder for t in shown)
    needs = {IMPORTS[g.framework]: SHORT[g.framework] for g in guesses if _uses(g)}
    standard = "import math\n\n" * any("math." in g.recipe.body("", "") for g in guesses)
    imports = [f"import {m} as {s}" if m != s else f"import {m}" for m, s in needs.items()]
    head = f'"""Written by `refssm doctor {target}`: run it with pytest."""\n\n'
    paths = [f for f in folders if Path(f) != written.resolve().parent]
    if paths:
        standard = standard.rstrip("\n") + "\n" * bool(standard)
        standard += "import sys\nfrom pathlib import Path\n\n"
    # a test is found beside its own file: the folder of the code is another one
    added = "".join(f"sys.path.insert(0, {_relative(f, written)})\n" for f in paths)
    froms = "\n".join(f"from {m} import {_names(m, shown)}" for m in modules)
    libraries = "\n".join(sorted([*imports, "import pytest"]))
    used = sorted({a.partition("(")[0] for g in guesses for a in g.recipe.adapters})
    froms += f"\nfrom refssm.adapters import {', '.join(used)}" * bool(used)
    body = "".join(f"\n\n{_test(told)}" for told in shown)
    return f"{head}{standard}{libraries}\n{chr(10) * bool(added)}{added}\n{froms}\n{body}"


def _test(told: Guesses) -> str:
    guess = told.guesses[0]
    mark = [f'"{guess.op}"']
    mark += [f'framework="{guess.framework}"'] * (guess.framework != "numpy")
    mark += [f'layout="{guess.layout}"'] * (not guess.op.constructor)
    mark += ['kinds="complex"'] * guess.recipe.only_complex
    mark += [f"adapters={_tuple_of(guess.recipe.adapters)}"] * bool(guess.recipe.adapters)
    mark += [f"dtypes={_tuple(guess.types)}"] * bool(guess.others)
    mark += ["vjp=True"] * guess.gradient
    left = guess.recipe.unjudged(told.function)
    mark += [f"unjudged={_tuple(left)}"] * bool(left)
    joined = "".join(f"    {part},\n" for part in mark)
    name, module = f"test_{guess.recipe.function}", SHORT[guess.framework]
    source = guess.recipe.in_parameters.source(name, guess.framework, module)
    return f"@pytest.mark.refssm(\n{joined})\n{source}"


def _tuple_of(texts: tuple[str, ...]) -> str:
    """The source of a tuple of expressions."""
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"


def _tuple(names: tuple[str, ...]) -> str:
    return str(names).replace("'", '"')


def _uses(guess: Guess) -> bool:
    return "xp." in guess.recipe.in_parameters.body(guess.framework, "xp")


def _names(module: str, shown: list[Guesses]) -> str:
    return ", ".join(sorted(t.function.name for t in shown if t.function.module == module))


def _relative(folder: str, written: Path) -> str:
    """The folder of the code as an expression in the test's file."""
    path = os.path.relpath(folder, written.resolve().parent)
    return f'str(Path(__file__).parent / "{Path(path).as_posix()}")'


def _in(guess: Guess) -> str:
    types = f" in {', '.join(guess.types)}" if guess.types else ""
    types += f", not in {', '.join(guess.others)}" if guess.others else ""
    gradient = ", and autodiff goes through it" if guess.gradient else ""
    return f"{types}{gradient}"


def _why(told: Guesses, guess: Guess) -> str:
    """Words of the name, and arguments."""
    words = [f"the words of its name: {', '.join(word for word, _ in told.words)}"]
    words *= bool(told.words)
    words += [f"{guess.recipe.by_name} arguments have names that fit"] * bool(guess.recipe.by_name)
    words += [f"{told.calls} calls, {guess.framework} arrays"]
    return "; ".join(words)


def _others(told: Guesses) -> str:
    """Which other operators fit as well."""
    first = told.guesses[0]
    alike = [g.op.name for g in told.guesses[1:] if g.how == first.how and g.op is not first.op]
    alike = list(dict.fromkeys(alike))[:MOST]
    if not alike:
        return ""
    number = "two" if len(alike) == 1 else "several"
    return f"  {number} operators fit: {', '.join([first.op.name, *alike])}; the first is shown"


def _argument(argument) -> str:
    return f"{argument.name}={argument.default}" if argument.default else argument.name
