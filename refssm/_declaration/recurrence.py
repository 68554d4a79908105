"""A recurrence is its step: its operators follow from it, and their functions in every role.

    y_k, S_k = step(x_k, S_{k-1})

`name` runs from rest, `name_stateful` from a state (`name_from` where the states are the outputs),
`name_packed` over sequences one after another, `name_packed_stateful` (`name_packed_from`) over
sequences with a state each, `name_states` returns the states at given places, `name_reversed` runs
from the last step to the first; the step is an operator of its own. What differs between
recurrences is declared; signatures, leading axes, traits, docstrings and arguments follow.

A role brings two functions. What a form does not have is None:

    run(arguments, state, resets, **statics) -> outputs, and the last state if there is a first
    back(cotangents, arguments, state, resets, **statics) -> gradients for arguments and state

A state may have several parts. Then `state` is a tuple of arrays, which the step and the functions
take and return as so many arguments and results: `run` returns the output and each last part.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from refssm._declaration import form_texts
from refssm._declaration.contract import TRACED, Contract
from refssm._declaration.operator import Operator
from refssm._declaration.pieces import ByPieces
from refssm._declaration.stepping import Steps
from refssm._numerics.broadcasting import at

if TYPE_CHECKING:
    from refssm.domains import Domain

TIME = "l"  # the axis of a sequence
COUNT = "m"  # the axis of sequences, or of places
STATEFUL = ("stateful", "packed_stateful", "states")  # the forms that return states, too


def follows_from_step(*_, **__):
    """Stands for functions that follow from the step."""
    raise NotImplementedError


@dataclass(frozen=True)
class State:
    """What a recurrence carries from one step to the next, or one part of it."""

    letter: str  # "x": x0 before the first step, x before another one, x_next after it
    dims: str  # core dimensions: "n", "p,n"
    batch: str  # leading axes, as in `Operator.batch`
    domain: Domain


class Pair(NamedTuple):
    """A function and its VJP."""

    forward: Callable[..., Any]
    vjp: Callable[..., Any]


class Marks(NamedTuple):
    """Domains of the arguments that say where sequences begin or end, and where states are kept."""

    resets: Domain
    ends: Domain
    places: Domain


class Extra(NamedTuple):
    """An argument that a form has besides those of the form from rest."""

    name: str
    dims: str
    batch: str
    domain: Domain


@dataclass(frozen=True, eq=False)
class Recurrence:
    """What is declared of a recurrence, once.

    `linear` has the groups of arguments in which the outputs are linear together with the state,
    "B", or some outputs without it, "C->y"; `linear_from_rest` those that are so only from rest.
    Of a state of several parts, an entry names the parts and the output itself: "v,S->y".
    `tags` and `examples` have the keys plain, stateful, packed, packed_stateful, states, reversed,
    step: the forms that there are.
    """

    name: str
    signature: str  # of the form from rest
    inputs: Mapping[str, Domain]
    batch: str
    state: State | tuple[State, ...]  # several parts: their numbers are of one step
    marks: Marks
    linear: tuple[str, ...]
    doc: str  # of the form from rest; its first line ends with "from rest."
    vjp_doc: str
    citation: str
    citation_of_packed: str
    tags: Mapping[str, tuple[str, ...]]
    examples: Mapping[str, str]  # doctests, without the import
    step: Pair | None = None  # one step and its VJP, by hand; None if another recurrence has it
    # one step after the other, if there is no faster way
    run: Callable[..., Any] = follows_from_step
    back: Callable[..., Any] = follows_from_step
    step_inputs: Mapping[str, Domain] = field(default_factory=dict)  # drawn otherwise for a step
    outputs: tuple[str, ...] = ("y",)
    linear_from_rest: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    traits: frozenset[str] = frozenset({"causal"})
    same_as: Recurrence | None = None  # the recurrence whose rounding errors count
    contract: Contract = TRACED

    def __post_init__(self):
        if self.run is follows_from_step and self.step:
            by_steps = self.by_steps(*self.step)
            object.__setattr__(self, "run", by_steps.run)
            object.__setattr__(self, "back", by_steps.back)

    def by_steps(self, step: Callable, step_vjp: Callable) -> Steps:
        """`run` and `back` from one step and its VJP."""
        count = len(self.inputs)
        *dims, out = (tuple(filter(None, d.split(","))) for d in (*self._dims, self._output_dims))
        states = [tuple(filter(None, part.dims.split(","))) for part in self.states]
        return Steps(step, step_vjp, dims[:count], out, states, self._all_states)

    @property
    def states(self) -> tuple[State, ...]:
        """The parts of the state; most recurrences have one."""
        return (self.state,) if isinstance(self.state, State) else self.state

    @cached_property
    def operators(self) -> tuple[Operator, ...]:
        """The forms in the order of `_forms`, then the step if it is declared here."""
        return tuple(map(self._operator, self._functions))

    def public(self) -> Iterator[Pair]:
        """The functions with argument checks, in the order of `operators`."""
        for op, (forward, vjp) in zip(self.operators, self._functions.values(), strict=True):
            yield Pair(op.checked(forward), op.checked_vjp(vjp))

    def mirrors(self, run: Callable, back: Callable, mirror: Callable) -> Iterator[Pair]:
        """The functions of a mirror, each through its decorator `mirror(operator)`."""
        pairs = self._forms(run, back)
        if self.step:
            pairs["step"] = self._step_by_scan(run, back)
        for op, (forward, vjp) in zip(self.operators, pairs.values(), strict=True):
            yield Pair(mirror(op)(forward), mirror(op)(vjp))

    def by_pieces(self, run: Callable, back: Callable) -> dict[str, Pair]:
        """The functions of the operators that run piece by piece, by the operators' names."""
        made = self._forms_by_pieces(run, back)
        return {self._name(form): pair for form, pair in made.items() if form in self.tags}

    @cached_property
    def _functions(self) -> dict[str, Pair]:
        """The bare functions of the reference by form, with their docstrings."""
        made = self._forms(self.run, self.back)
        for form, (forward, vjp) in made.items():
            forward.__doc__, vjp.__doc__ = self._doc(form), self._vjp_doc(form)
        return made | ({"step": self.step} if self.step else {})

    def _forms(self, run: Callable, back: Callable) -> dict[str, Pair]:
        """The functions of a role by form, without the step."""
        count, outputs, together = len(self.inputs), len(self.outputs), self._together

        def plain(*args, **statics):
            return run(args, None, None, **statics)[0]

        def plain_vjp(*args, **statics):
            gradients = back(args[:outputs], args[outputs:], None, None, **statics)
            return tuple(gradients[:count])

        def stateful(*args, **statics):
            results = run(args[:count], together(args[count:]), None, **statics)
            return results[0] if self._all_states else tuple(results)

        def stateful_vjp(*args, **statics):
            cotangents, arguments, state = self._of_vjp(args)
            return tuple(back(cotangents, arguments, together(state), None, **statics))

        def packed(*args, **statics):
            return run(args[:-1], None, args[-1], **statics)[0]

        def packed_vjp(*args, **statics):
            gradients = back(args[:outputs], args[outputs:-1], None, args[-1], **statics)
            return *gradients[:count], None

        made = {
            "plain": Pair(plain, plain_vjp),
            "stateful": Pair(stateful, stateful_vjp),
            "packed": Pair(packed, packed_vjp),
            **self._forms_by_pieces(run, back),
        }
        by_step = self.step if run is self.run else None  # what runs it may be of another file
        module = by_step.forward.__module__ if by_step else run.__module__
        return {
            form: self._named(form, pair, module)
            for form, pair in made.items()
            if form in self.tags
        }

    def _forms_by_pieces(self, run: Callable, back: Callable) -> dict[str, Pair]:
        """The forms that run piece by piece, or backwards."""
        axes, out = [_time_axis(dims) for dims in self._dims], _time_axis(self._output_dims)
        ranks, outputs = [_rank(part.dims) for part in self.states], len(self.outputs)
        count = len(axes)

        passing = self._passing if run is self.run else run

        def pieces(form):
            name, only_states = self._name(form), self._all_states
            return ByPieces(name, run, back, passing, axes, out, ranks, only_states)

        def packed_stateful(*args, **statics):
            *given, ends = args
            by_sequence = pieces("packed_stateful").sequences
            made = by_sequence(given[:count], given[count:], ends, **statics)
            return made[0] if self._all_states else made

        def packed_stateful_vjp(*args, **statics):
            *given, ends = args
            by_sequence = pieces("packed_stateful").sequences_back
            return *by_sequence(*self._of_vjp(given), ends, **statics), None

        def states(*args, **statics):
            *given, places = args
            at_places = pieces("states").at_places
            return at_places(given[:count], given[count:], places, **statics)

        def states_vjp(*args, **statics):
            *given, places = args
            at_places = pieces("states").at_places_back
            return *at_places(*self._of_vjp(given), places, **statics), None

        def reversed_(*args, **statics):
            return pieces("reversed").backwards(args, **statics)

        def reversed_vjp(*args, **statics):
            return pieces("reversed").backwards_back(args[:outputs], args[outputs:], **statics)

        return {
            "packed_stateful": Pair(packed_stateful, packed_stateful_vjp),
            "states": Pair(states, states_vjp),
            "reversed": Pair(reversed_, reversed_vjp),
        }

    def _passing(self, *args, **statics):
        """As `run`; by the recurrence it is the same as, since chunks of 1 step take long."""
        by = self.same_as or self
        return by.run(*args, **{name: n for name, n in statics.items() if name in by.parameters})

    def _step_by_scan(self, run: Callable, back: Callable) -> Pair:
        """The step of a mirror as its scan of length 1."""
        *axes, out = (_time_axis(dims) for dims in (*self._dims, self._output_dims))
        count, together = len(self.inputs), self._together

        def step(*args, **statics):
            """A scan of length 1."""
            arguments = _lengthened(args[:count], axes)
            y, *state = run(arguments, together(args[count:]), None, **statics)
            return _only(y, out) if self._all_states else (_only(y, out), *state)

        def step_vjp(*args, **statics):
            """A scan of length 1."""
            (dy, *rest), arguments, state = self._of_vjp(args)
            given = (*_lengthened((dy,), [out]), *rest), _lengthened(arguments, axes)
            gradients = back(*given, together(state), None, **statics)
            of_all = [*axes, *(0 for _ in state)]
            return tuple(_only(g, axis) for g, axis in zip(gradients, of_all, strict=True))

        return self._named("step", Pair(step, step_vjp), run.__module__)

    def _together(self, parts: Sequence[Any]) -> Any:
        """The parts of a state as `run` and `back` take them: the only one, or a tuple."""
        return tuple(parts) if len(self.states) > 1 else parts[0]

    def _of_vjp(self, args: Sequence[Any]) -> tuple[Any, Any, Any]:
        """Cotangents, arguments and parts of the state."""
        first, parts = len(args) - len(self.inputs) - len(self.states), len(self.states)
        return args[:first], args[first:-parts], args[-parts:]

    def _named(self, form: str, pair: Pair, module: str) -> Pair:
        """The functions of a form, with their names and the arguments they take."""
        statics = self._keywords
        cotangents = [f"d{y}" for y in self._outputs(form)]
        for function, end, more in ((pair.forward, "", []), (pair.vjp, "_vjp", cotangents)):
            function.__name__ = function.__qualname__ = f"{self._name(form)}{end}"
            function.__module__ = module
            names = [*more, *self._inputs(form)]
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters = [*(inspect.Parameter(name, kind) for name in names), *statics]
            function.__signature__ = inspect.Signature(parameters)  # pyright: ignore
        return pair

    @property
    def _keywords(self) -> list[inspect.Parameter]:
        """The keyword arguments, each with its default if `run` or the step has one."""
        own = dict(inspect.signature(self.run).parameters)
        own |= inspect.signature(self.step.forward).parameters if self.step else {}
        return [own[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in self.parameters]

    def _operator(self, form: str) -> Operator:
        """The declaration of one form."""
        groups = [self.batch, *(extra.batch for extra in self._extras(form))]
        return Operator(
            reference=self._functions[form].forward,
            signature=self._signature(form),
            inputs=self._inputs(form),
            parameters=self.parameters,
            outputs=self._outputs(form),
            form=self._kind(form) if form in ("stateful", "step") else "",
            batch=", ".join(groups),
            traits=self._traits(form),
            definition=self._definition(form),
            contract=self.contract,
            citation=self._citation(form),
            tags=self.tags[form],
        )

    @property
    def _all_states(self) -> bool:
        """True if the outputs are the states: the form from a state returns no other."""
        return self.outputs == tuple(part.letter for part in self.states)

    def _kind(self, form: str) -> str:
        """The form's own name: those from a state are called "from" where states are outputs."""
        return form.replace("stateful", "from") if self._all_states else form

    def _name(self, form: str) -> str:
        if form == "step":
            assert self.step is not None
            return self.step.forward.__name__
        return self.name if form == "plain" else f"{self.name}_{self._kind(form)}"

    def _extras(self, form: str) -> list[Extra]:
        """The arguments that the form from rest does not have."""
        now = [Extra(part.letter, part.dims, part.batch, part.domain) for part in self.states]
        first = [part._replace(name=f"{part.name}0") for part in now]
        each = [part._replace(dims=f"{COUNT},{part.dims}".rstrip(",")) for part in first]
        outermost = self.batch.replace(",", " ").split()[0]
        return {
            "stateful": first,
            "packed": [Extra("resets", TIME, outermost, self.marks.resets)],
            "packed_stateful": [*each, Extra("ends", COUNT, "", self.marks.ends)],
            "states": [*first, Extra("places", COUNT, "", self.marks.places)],
            "step": now,
        }.get(form, [])

    def _inputs(self, form: str) -> dict[str, Domain]:
        inputs = {**self.inputs, **(self.step_inputs if form == "step" else {})}
        return inputs | {extra.name: extra.domain for extra in self._extras(form)}

    def _outputs(self, form: str) -> tuple[str, ...]:
        if form not in (*STATEFUL, "step"):
            return self.outputs
        last = tuple(self._last(form, part) for part in self.states)
        return last if self._all_states else (*self.outputs, *last)

    @staticmethod
    def _last(form: str, part: State) -> str:
        """What a form calls a part of the last state."""
        return f"{part.letter}_next" if form == "step" else part.letter

    @property
    def _dims(self) -> list[str]:
        """The core dimensions of each input of the form from rest, "l,n"."""
        return re.findall(r"\(([^)]*)\)", self.signature)[: len(self.inputs)]

    @property
    def _output_dims(self) -> str:
        """The core dimensions of the output."""
        return re.findall(r"\(([^)]*)\)", self.signature)[-1]

    def _signature(self, form: str) -> str:
        dims, outputs = self._dims, [self._output_dims]
        if form == "step":
            dims, outputs = [_without_time(d) for d in dims], [_without_time(outputs[0])]
        dims = [*dims, *(extra.dims for extra in self._extras(form))]
        if form in (*STATEFUL, "step") and not self._all_states:
            several = f"{COUNT}," if form in ("packed_stateful", "states") else ""
            outputs += [f"{several}{part.dims}".rstrip(",") for part in self.states]
        return "->".join(",".join(f"({d})" for d in side) for side in (dims, outputs))

    def _traits(self, form: str) -> frozenset[str]:
        extras, stateful = self._extras(form), form in (*STATEFUL, "step")
        linear = [] if stateful else [*self.linear_from_rest]
        for text in self.linear:
            arguments, _, output = text.partition("->")
            if len(self.states) > 1:
                linear += self._linear_in_parts(form, arguments.split(","), output)
            elif not stateful:
                linear.append(arguments)
            elif output:
                linear.append(text)
            else:
                linear.append(f"{arguments},{extras[0].name}")
        others = frozenset() if form == "step" else self.traits
        if form in ("plain", "stateful") and "stateful" in self.tags:
            others = others | {"state"}
        if form == "reversed":
            others = others - {"causal"} | {"anticausal"}
        return frozenset(others | {f"linear:{text}" for text in linear})

    def _linear_in_parts(self, form: str, arguments: Sequence[str], output: str) -> list[str]:
        """A group that names parts of the state, as the form calls them; [] if it lacks the output.

        A form from rest has no parts: what is linear in them, too, is linear in the others.
        """
        parts = dict(zip((part.letter for part in self.states), self.states, strict=True))
        stateful = form in (*STATEFUL, "step")
        if output in parts and not stateful:
            return []
        first = [extra.name for extra in self._extras(form)]
        given = {letter: name for letter, name in zip(parts, first, strict=False) if stateful}
        named = [given.get(a, a) for a in arguments if stateful or a not in parts]
        output = self._last(form, parts[output]) if output in parts else output
        return [f"{','.join(named)}->{output}"]

    def _definition(self, form: str) -> Callable[..., Any] | None:
        """The function whose rounding errors count, without this one's parameters."""
        if self.same_as is None:
            return None
        reference = self.same_as._functions[form].forward
        return lambda *args, **statics: reference(*args)

    def _citation(self, form: str) -> str:
        return self.citation_of_packed if form.startswith("packed") else self.citation

    def _said(self, form: str) -> dict[str, str]:
        """What stands in the braces of a docstring."""
        names = [extra.name for extra in self._extras(form)[: len(self.states)]]
        return {
            "name": self.name,
            "signature": self._signature(form),
            "first": ", ".join(names),
            "firsts": ", ".join(f"{name}[i]" for name in names),
            "last": ", d".join(part.letter for part in self.states),
            "step": f", or `{self._name('step')}`," if self.step else "",
            "citation": self._citation(form),
            "gradients": ", ".join(
                "None" if name in Marks._fields else f"d{name}" for name in self._inputs(form)
            ),
        }

    def _doc(self, form: str) -> str:
        """The docstring of a form."""
        return form_texts.doc(self._kind(form), self.doc, self._said(form), self.examples[form])

    def _vjp_doc(self, form: str) -> str:
        """The docstring of a form's VJP."""
        return form_texts.vjp_doc(self._kind(form), self.vjp_doc, self._said(form))


def _without_time(dims: str) -> str:
    """ "l,n" -> "n"."""
    return ",".join(d for d in dims.split(",") if d != TIME)


def _rank(dims: str) -> int:
    """The number of core dimensions."""
    return len(list(filter(None, dims.split(","))))


def _time_axis(dims: str) -> int:
    """The axis of time, counted from the end; 0 if there is none."""
    names = dims.split(",")
    return names.index(TIME) - len(names) if TIME in names else 0


def _lengthened(arrays: Sequence[Any], axes: Sequence[int]) -> tuple[Any, ...]:
    """Each array with an axis of time of length 1 where it has one."""
    return tuple(at(x, None, axis) if axis else x for x, axis in zip(arrays, axes, strict=True))


def _only(array: Any, axis: int) -> Any:
    """The array at the only time."""
    return at(array, 0, axis) if axis else array
