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
    """What a recurrence carries from one step to the next."""

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
    `tags` and `examples` have the keys plain, stateful, packed, packed_stateful, states, reversed,
    step: the forms that there are.
    """

    name: str
    signature: str  # of the form from rest
    inputs: Mapping[str, Domain]
    batch: str
    state: State
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
        *dims, out, state = (
            tuple(filter(None, d.split(",")))
            for d in (*self._dims, self._output_dims, self.state.dims)
        )
        return Steps(step, step_vjp, dims, out, state, self._all_states)

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
        count, outputs = len(self.inputs), len(self.outputs)

        def plain(*args, **statics):
            return run(args, None, None, **statics)[0]

        def plain_vjp(*args, **statics):
            gradients = back(args[:outputs], args[outputs:], None, None, **statics)
            return tuple(gradients[:count])

        def stateful(*args, **statics):
            results = run(args[:-1], args[-1], None, **statics)
            return results[0] if self._all_states else tuple(results)

        def stateful_vjp(*args, **statics):
            cotangents, arguments = args[: -count - 1], args[-count - 1 : -1]
            return tuple(back(cotangents, arguments, args[-1], None, **statics))

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
        rank, outputs = len(self.state.dims.split(",")), len(self.outputs)

        def pieces(form):
            return ByPieces(self._name(form), run, back, axes, out, rank, self._all_states)

        def packed_stateful(*args, **statics):
            *arguments, states, ends = args
            made = pieces("packed_stateful").sequences(arguments, states, ends, **statics)
            return made[0] if self._all_states else made

        def packed_stateful_vjp(*args, **statics):
            *given, states, ends = args
            cotangents, arguments = given[: -len(axes)], given[-len(axes) :]
            by_sequence = pieces("packed_stateful").sequences_back
            return *by_sequence(cotangents, arguments, states, ends, **statics), None

        def states(*args, **statics):
            *arguments, start, places = args
            return pieces("states").at_places(arguments, start, places, **statics)

        def states_vjp(*args, **statics):
            *given, start, places = args
            cotangents, arguments = given[: -len(axes)], given[-len(axes) :]
            at_places = pieces("states").at_places_back
            return *at_places(cotangents, arguments, start, places, **statics), None

        def reversed_(*args, **statics):
            return pieces("reversed").backwards(args, **statics)

        def reversed_vjp(*args, **statics):
            return pieces("reversed").backwards_back(args[:outputs], args[outputs:], **statics)

        return {
            "packed_stateful": Pair(packed_stateful, packed_stateful_vjp),
            "states": Pair(states, states_vjp),
            "reversed": Pair(reversed_, reversed_vjp),
        }

    def _step_by_scan(self, run: Callable, back: Callable) -> Pair:
        """The step of a mirror as its scan of length 1."""
        *axes, out = (_time_axis(dims) for dims in (*self._dims, self._output_dims))
        count = len(self.inputs)

        def step(*args, **statics):
            """A scan of length 1."""
            y, *state = run(_lengthened(args[:-1], axes), args[-1], None, **statics)
            return _only(y, out) if self._all_states else (_only(y, out), *state)

        def step_vjp(*args, **statics):
            """A scan of length 1."""
            (dy, *rest), arguments = args[: -count - 1], _lengthened(args[-count - 1 : -1], axes)
            cotangents = *_lengthened((dy,), [out]), *rest
            gradients = back(cotangents, arguments, args[-1], None, **statics)
            return tuple(_only(g, axis) for g, axis in zip(gradients, (*axes, 0), strict=True))

        return self._named("step", Pair(step, step_vjp), run.__module__)

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
        return self.outputs == (self.state.letter,)

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
        letter, dims, batch, domain = (getattr(self.state, f) for f in State.__annotations__)
        first = Extra(f"{letter}0", dims, batch, domain)
        outermost = self.batch.replace(",", " ").split()[0]
        of_sequences = Extra("ends", COUNT, "", self.marks.ends)
        return {
            "stateful": [first],
            "packed": [Extra("resets", TIME, outermost, self.marks.resets)],
            "packed_stateful": [first._replace(dims=f"{COUNT},{dims}"), of_sequences],
            "states": [first, Extra("places", COUNT, "", self.marks.places)],
            "step": [Extra(letter, dims, batch, domain)],
        }.get(form, [])

    def _inputs(self, form: str) -> dict[str, Domain]:
        inputs = {**self.inputs, **(self.step_inputs if form == "step" else {})}
        return inputs | {extra.name: extra.domain for extra in self._extras(form)}

    def _outputs(self, form: str) -> tuple[str, ...]:
        letter = self.state.letter
        last = f"{letter}_next" if form == "step" else letter if form in STATEFUL else ""
        if self._all_states:
            return (last,) if last else self.outputs
        return (*self.outputs, last) if last else self.outputs

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
            outputs += [several + self.state.dims]
        return "->".join(",".join(f"({d})" for d in side) for side in (dims, outputs))

    def _traits(self, form: str) -> frozenset[str]:
        extras, stateful = self._extras(form), form in (*STATEFUL, "step")
        linear = [] if stateful else [*self.linear_from_rest]
        for text in self.linear:
            arguments, _, output = text.partition("->")
            if not stateful:
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
        extras = self._extras(form)
        return {
            "name": self.name,
            "signature": self._signature(form),
            "first": extras[0].name if extras else "",
            "last": self.state.letter,
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
