"""A layer as operators, derived from its declaration: what the judge judges somebody's block by.

`<layer>_layer` has the arguments u (l, h), then the parameters in order, and the output y (l, h).
`<layer>_layer_stateful` has the states before the first step too, and returns those after the last.
A layer that is not causal has only the first, without the traits `causal` and `state`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache

from refssm._declaration.contract import CHAIN
from refssm._declaration.operator import Operator
from refssm.domains import Domain, layer_signals
from refssm.layers._frame.layer import Layer
from refssm.layers._frame.transforms import bare

ABSENT = frozenset({"jit", "gpu", "enclosure"})  # a layer takes the mirrors' operators as they are
STEPPED = frozenset({"causal", "state"})  # traits of a layer with states
PACKAGE = "refssm.layers"
ops = cache(bare)


def operators_of(layer: Layer) -> Iterator[Operator]:
    """The operators of a layer: over a sequence, and from its states if it is causal."""
    yield _whole(layer)
    if layer.causal:
        yield _stateful(layer)


def public_functions(op: Operator, layer: Layer) -> dict[str, Callable]:
    """The operator's function and its VJP by name, with checks of their arguments."""
    named = {op.name: op.checked(op.reference)}
    if op.differentiable:
        named[f"{op.name}_vjp"] = op.checked_vjp(_pulled_back(op, layer))
    return named


def _whole(layer: Layer) -> Operator:
    shapes = _parameters(layer)

    def forward(u, *parameters):
        _check_cores(layer, parameters)
        return layer.forward(ops(), layer.kind(*parameters), u)

    inputs = {"u": layer_signals} | {name: domain for name, (_, domain) in shapes.items()}
    name = f"{layer.name}_layer"
    return Operator(
        reference=_presented(forward, name, [*inputs], _doc(layer, _sequence(layer))),
        signature=f"(l,h),{_cores(shapes)}->(l,h)",
        inputs=inputs,
        batch=", ".join(["b"] + [""] * len(shapes)),
        traits=layer.traits | (STEPPED if layer.causal else set()),
        contract=CHAIN,
        citation=layer.source,
        lacks=ABSENT,
        tags=layer.tags,
    )


def _stateful(layer: Layer) -> Operator:
    shapes = _parameters(layer)
    states = {name: (tuple(text.split()), domain) for name, (text, domain) in layer.states.items()}
    count = len(shapes)

    def stateful(u, *rest):
        _check_cores(layer, rest[:count])
        y, after = layer.stateful(ops(), layer.kind(*rest[:count]), u, tuple(rest[count:]))
        return y, *after

    inputs = {"u": layer_signals} | {name: domain for name, (_, domain) in shapes.items()}
    inputs |= {f"{name}0": domain for name, (_, domain) in states.items()}
    name = f"{layer.name}_layer_stateful"
    batch = ["b"] + [""] * count + ["b"] * len(states)
    return Operator(
        reference=_presented(stateful, name, [*inputs], _doc(layer, PIECE)),
        signature=f"(l,h),{_cores(shapes)},{_cores(states)}->(l,h),{_cores(states)}",
        form="stateful",
        inputs=inputs,
        outputs=("y", *states),
        batch=", ".join(batch),
        traits=STEPPED,
        contract=CHAIN,
        citation=layer.source,
        lacks=ABSENT | {"vjp"},
        tags=tuple(f"{tag} with the last state" for tag in layer.tags),
    )


def _pulled_back(op: Operator, layer: Layer) -> Callable:
    def vjp(dy, u, *parameters):
        _check_cores(layer, parameters)
        gradients, du = layer.vjp(ops(), dy, layer.kind(*parameters), u)
        return du, *gradients.arrays().values()

    doc = f"Gradients of `u` and of each parameter of `{layer}`, in the order of the arguments."
    return _presented(vjp, f"{op.name}_vjp", ["dy", *op.inputs], doc)


def _parameters(layer: Layer) -> dict[str, tuple[tuple[str, ...], Domain]]:
    """Shape and domain of each parameter, by name."""
    return {f.name: (f.metadata["shape"], f.metadata["domain"]) for f in fields(layer.kind)}


def _cores(shapes) -> str:
    """ "(n),(n,h)" for several shapes in letters."""
    return ",".join(f"({','.join(letters)})" for letters, _ in shapes.values())


def _check_cores(layer: Layer, parameters) -> None:
    """ValueError for a parameter with leading axes: all members of a batch have the same."""
    for (name, (letters, _)), p in zip(_parameters(layer).items(), parameters, strict=True):
        if p.ndim != len(letters):
            wanted = f"core shape ({', '.join(letters)}) without batch axes"
            raise ValueError(f"{layer}_layer: `{name}` has shape {p.shape}, wanted {wanted}")


def _presented(function: Callable, name: str, arguments: list[str], doc: str) -> Callable:
    """`function` with the name, the place, the arguments and the docstring of an operator's."""
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = PACKAGE, doc
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    taken = [inspect.Parameter(argument, kind) for argument in arguments]
    function.__signature__ = inspect.Signature(taken)  # pyright: ignore[reportFunctionMemberAccess]
    return function


def _sequence(layer: Layer) -> str:
    """What the operator of the whole does."""
    return f"Forward over a sequence `u` of l steps and h channels{', from rest' * layer.causal}."


PIECE = "Forward over a piece from given states; also the states after it. A step has l = 1."


def _doc(layer: Layer, what: str) -> str:
    """The page of the layer's file, and what this function does."""
    told = inspect.getdoc(inspect.getmodule(layer.kind)) or str(layer)
    return f"{told}\n\n{what}"
