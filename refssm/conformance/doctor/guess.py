"""Guess which operator a function is, and try the guesses on small arrays.

The axes of an operator are tried in the layouts that public code has, the likeliest first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from refssm._declaration.adapted import adapters_of, with_steps
from refssm._declaration.layout import Axes, canonical, in_layout, parse
from refssm._declaration.operator import Operator
from refssm.catalog import joined, judged
from refssm.conformance.calling.calls.attempt import Attempt, Function
from refssm.conformance.calling.one_call import Outcome
from refssm.conformance.calling.worker import Plain
from refssm.conformance.cases.case import Case, ordinary_case
from refssm.conformance.checks.checks import types_of
from refssm.conformance.doctor.recipes import Recipe, recipes
from refssm.conformance.doctor.search import search
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import grade_outputs

MOST = 40
PLACES = ("after", "own", "last", "first")  # of time among the axes of an array


def layouts(op: Operator) -> list[str]:
    """The canonical layout, then others: time first or last, without batch axes, merged heads."""
    usual = canonical(op)
    arrays, count = [*usual.inputs, *usual.outputs], len(usual.inputs)
    found = dict.fromkeys([str(usual)])
    for omitted in _omitted(op.batch_names):
        for place in PLACES:
            for merged in (False, True):
                axes = [_arranged(op, a, place, omitted, merged) for a in arrays]
                sides = (", ".join(side) for side in (axes[:count], axes[count:]))
                text = " -> ".join(sides)
                if _fits(op, text):
                    found.setdefault(text)
    return [*found][:MOST]


def _omitted(batch: Axes) -> Iterator[Axes]:
    """Batch axes that a function may lack: none, some, all of them; the inner ones first."""
    for count in range(len(batch) + 1):
        yield from combinations(reversed(batch), count)


def _arranged(op: Operator, array: Axes, place: str, omitted: Axes, merged: bool) -> str:
    """The axes of one array with time at a place."""
    axes = [axis for axis in array if axis != "1" and axis not in omitted]
    time = op.leading
    if time in axes and place != "own":
        axes.remove(time)
        outer = int(axes[:1] == [*op.batch_names[:1]])
        axes.insert({"after": outer, "last": len(axes), "first": 0}[place], time)
    text = " ".join(axes)
    return text.replace("g h", "(g h)") if merged else text


def _fits(op: Operator, text: str) -> bool:
    from refssm._declaration.layout import in_layout

    try:
        parse(in_layout(op, text), text)
    except ValueError:
        return False
    return True


MOST_HITS, MOST_OPERATORS, MOST_CALLS = 40, 8, 200
SMALL, BLOCKS = (5, 3, 4, 2), (64, 4, 5, 2)  # core dimensions of the cases
SURE, RUNS, NAMED = "sure", "runs", "named"  # how much of a guess was seen
RANKS = (NAMED, RUNS, SURE)
RIGHT = "ABN"


@dataclass(frozen=True)
class Guess:
    """One operator that a function may be, and what was tried."""

    recipe: Recipe
    how: str = NAMED
    layout: str = ""
    framework: str = ""
    message: str = ""  # the last error, or the wrong values
    types: tuple[str, ...] = ()  # in which it gave the reference's values
    others: tuple[str, ...] = ()  # in which it did not
    gradient: bool = False  # the framework's autodiff went through it

    @property
    def op(self) -> Operator:
        """The operator."""
        return self.recipe.op


@dataclass
class Guesses:
    """What is known of one function: guesses, best first."""

    function: Function
    guesses: list[Guess] = field(default_factory=list)
    words: tuple[tuple[str, str], ...] = ()  # of its name, that the first guess's operator has
    called: Operator | None = None  # the operator that has its name, but not its arguments
    calls: int = 0
    died: str = ""  # how a call ended the child, after which nothing more was tried


def diagnose(function: Function, worker: Callable[[], Plain]) -> Guesses:
    """The operators that a function may be; `worker` gives a living child."""
    told = Guesses(function)
    if function.kind or function.operator:
        return told
    worker().begin()
    hits = {hit.op.name: hit for hit in search(function.name.replace("_", " "), MOST_HITS).hits}
    hits |= {hit.op.name: hit for hit in search(function.name, MOST_HITS).hits}
    for recipe in _candidates(function, hits):
        if told.calls >= MOST_CALLS or told.died:
            break
        if _better(told.guesses, recipe):
            told.guesses.append(_tried(recipe, told, worker))
    # by place alone, wrong values and errors say nothing
    told.guesses = [g for g in told.guesses if g.recipe.by_name or g.how == SURE]
    # a function called once is nearer to its operator than one that is called twice
    told.guesses.sort(key=lambda guess: (-RANKS.index(guess.how), guess.recipe.real_part))
    if told.guesses and told.guesses[0].how == SURE:
        first = told.guesses[0]
        told.guesses = [g for g in told.guesses if g.how == SURE]
        told.guesses[0] = _more(first, told, worker)
    if told.guesses and (hit := hits.get(told.guesses[0].op.name)):
        told.words = hit.words
    if not told.guesses:
        told.called = _of_name(function.name, hits)
    return told


def _of_name(name: str, hits) -> Operator | None:
    """The operator that is called so, or that has this name as a tag."""
    alike = {joined(name), joined(f"{name}_fn"), joined(name.removesuffix("_fn"))}
    for hit in hits.values():
        if alike & {joined(hit.op.name), *map(joined, hit.op.tags)}:
            return hit.op
    return None


def _candidates(function: Function, hits) -> Iterator[Recipe]:
    """Ways to call the function as operators: those that fit by name and arguments first."""
    found = []
    for op in (taken for own in judged() for taken in (own, *with_steps(own))):
        score = hits[op.name].score if op.name in hits else 0.0
        for recipe in recipes(function, op):
            names = recipe.by_name / max(1, len(op.inputs) + len(op.static))
            if score or names > 0.6:
                found.append((score * (0.5 + names) + 4 * names, recipe))
    found.sort(key=lambda pair: -pair[0])
    kept = [*dict.fromkeys(recipe.op.name for _, recipe in found)][:MOST_OPERATORS]
    return iter(recipe for _, recipe in found if recipe.op.name in kept)


def _better(guesses: list[Guess], recipe: Recipe) -> bool:
    """True if another way of calling may still say more about this operator."""
    return not any(g.op is recipe.op and g.how == SURE for g in guesses)


def _tried(recipe: Recipe, told: Guesses, worker) -> Guess:
    """The guess after calls in all layouts and frameworks, until one gives the right values."""
    best = Guess(recipe, framework=told.function.frameworks[0])
    for framework in told.function.frameworks:
        for layout in layouts(recipe.op):
            guess = _called(recipe, framework, layout, told, worker)
            if told.died:
                return replace(best, message=told.died)
            if RANKS.index(guess.how) > RANKS.index(best.how) or not best.message:
                best = guess
            if best.how == SURE or told.calls >= MOST_CALLS:
                return best
    return best


def _called(recipe, framework, layout, told: Guesses, worker) -> Guess:
    """The guess after one call, or after another that picks one of several results."""
    op = in_layout(recipe.op, layout)
    case = ordinary_case(op, _types(recipe)[0], _sizes(op))
    guess = Guess(recipe, NAMED, layout, framework)
    guess = _judged(guess, op, case, _call(guess, case, told, worker))
    if guess.how == NAMED and "tuple" in guess.message and len(op.outputs) == 1:
        for result in (0, 1):
            other = replace(guess, recipe=replace(recipe, result=result))
            other = _judged(other, op, case, _call(other, case, told, worker))
            if RANKS.index(other.how) > RANKS.index(guess.how):
                guess = other
    return guess


def _judged(guess: Guess, op: Operator, case: Case, outcome: Outcome) -> Guess:
    """The guess after one call with this outcome."""
    if outcome.status != "ok":
        return replace(guess, how=NAMED, message=outcome.message)
    verdict = _graded(op, case, outcome)
    if verdict.grade in RIGHT:
        return replace(guess, how=SURE, types=(case.type.name,), message="")
    fits = not verdict.kind.startswith(("shape or type", "number of"))
    return replace(guess, how=RUNS if fits else NAMED, message=verdict.message)


def _types(recipe: Recipe) -> list[str]:
    """The types in which an operator may be called so."""
    return [t for t in types_of(recipe.op) if not recipe.only_complex or t.startswith("complex")]


def _sizes(op: Operator) -> tuple[int, ...]:
    """Core dimensions of the cases; a function that works in chunks wants whole ones."""
    return BLOCKS if "chunk" in op.static else SMALL


def _graded(op: Operator, case: Case, outcome: Outcome):
    gauged = expect(op, case.arrays, case.statics)
    return grade_outputs(op, case.arrays, outcome.outputs, gauged)


def _call(guess: Guess, case: Case, told: Guesses, worker, **how) -> Outcome:
    """One call in the child; a crash or a hang ends the diagnosis."""
    told.calls += 1
    wrapper = guess.recipe.source("wrapped", guess.framework)
    given = (told.function.name, guess.op.name, wrapper, guess.framework, guess.layout)
    tried = Attempt(*given, vjp=how.get("vjp", False), adapters=adapters_of(guess.op))
    arrays = [*how.pop("cotangents", ()), *case.arrays]
    outcome = worker().attempt(tried, arrays, case.statics, dtype=case.type.name, **how)
    if outcome.died:
        told.died = outcome.message
    return outcome


def _more(guess: Guess, told: Guesses, worker) -> Guess:
    """The guess after calls in the other types, and of the gradient by autodiff."""
    if "chunk" in guess.op.static:
        guess = _with_whole_chunks(guess, told, worker)
    op, types = in_layout(guess.op, guess.layout), list(guess.types)
    for dtype in _types(guess.recipe):
        seeds = (2,) if dtype in types else (2, 1)  # two cases of each type
        right = all(_agrees(guess, op, dtype, seed, told, worker) for seed in seeds)
        if told.died or right != (dtype in types):
            types = [t for t in types if t != dtype] + [dtype] * right
        if told.died:
            break
    if guess.framework in ("torch", "jax") and op.differentiable and not told.died:
        case = ordinary_case(op, guess.types[0], _sizes(op))
        ones = [np.ones(s, t) for s, t in zip(*_outputs(op, case), strict=True)]
        outcome = _call(guess, case, told, worker, vjp=True, cotangents=ones)
        guess = replace(guess, gradient=outcome.status == "ok")
    others = tuple(t for t in _types(guess.recipe) if t not in types)
    types = tuple(t for t in types_of(op) if t in types)
    how = guess.how if types else RUNS  # one case agreed, and another one does not
    return replace(guess, how=how, types=types, others=others)


def _agrees(guess: Guess, op: Operator, dtype, seed: int, told: Guesses, worker) -> bool:
    """Whether a call of one small case gives the reference's values."""
    case = ordinary_case(op, dtype, _sizes(op), seed=seed)
    outcome = _call(guess, case, told, worker)
    return outcome.status == "ok" and _graded(op, case, outcome).grade in RIGHT


def _with_whole_chunks(guess: Guess, told: Guesses, worker) -> Guess:
    """The guess with a wrapper for lengths that are no multiple of the chunk, if it needs one."""
    op = in_layout(guess.op, guess.layout)
    case = ordinary_case(op, guess.types[0], SMALL)
    if _judged(guess, op, case, _call(guess, case, told, worker)).how == SURE or told.died:
        return guess
    other = replace(guess, recipe=guess.recipe.whole_chunks(guess.layout))
    fits = _judged(other, op, case, _call(other, case, told, worker)).how == SURE
    return other if fits else guess


def _outputs(op: Operator, case: Case):
    return op.output_shapes(*case.arrays, **case.statics), op.output_types(*case.arrays)
