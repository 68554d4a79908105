"""The operators of a layer, derived from its declaration: by them the judge judges a block.

`<layer>_layer` has the arguments u (l, h), what the layer reads beside it, then the parameters in
order, and the output y (l, h).
`<layer>_layer_stateful` has the states before the first step too, and returns those after the last.
A layer that is not causal has only the first, without the traits `causal` and `state`.
"""

import inspect
from collections.abc import Callable, Iterator
from functools import cache

from refssm._declaration.contract import CHAIN
from refssm._declaration.operator import Operator
from refssm.domains import Domain, layer_signals
from refssm.layers._frame import Layer, parameters_of
from refssm.layers._namespaces import bare

ABSENT = frozenset({"jit", "gpu", "enclosure"})  # a layer takes the mirrors' operators as they are
STEPPED = frozenset({"causal", "state"})  # traits of a layer with states
OF_PAIRS = frozenset({"matrix-product", "quadratic"})  # of its pieces, too
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


def _signals(layer: Layer) -> dict[str, tuple[tuple[str, ...], Domain]]:
    """Shape and domain of u and of what the layer reads beside it, by name."""
    own = {name: (tuple(text.split()), domain) for name, (text, domain) in layer.beside.items()}
    return {"u": (("l", "h"), layer_signals)} | own


def _domains(*shapes) -> dict[str, Domain]:
    return {name: domain for of in shapes for name, (_, domain) in of.items()}


def _whole(layer: Layer) -> Operator:
    signals, shapes = _signals(layer), parameters_of(layer)

    def forward(*given):
        read, parameters = given[: len(signals)], given[len(signals) :]
        _check_cores(layer, parameters)
        return layer.forward(ops(), layer.kind(*parameters), *read)

    inputs = _domains(signals, shapes)
    name = f"{layer.name}_layer"
    return Operator(
        reference=_presented(forward, name, [*inputs], _doc(layer, _sequence(layer))),
        signature=f"{_cores(signals)},{_cores(shapes)}->(l,h)",
        inputs=inputs,
        batch=", ".join(["b"] * len(signals) + [""] * len(shapes)),
        traits=layer.traits | (STEPPED if layer.causal else set()),
        contract=CHAIN,
        citation=layer.source,
        lacks=ABSENT,
        tags=layer.tags,
    )


def _stateful(layer: Layer) -> Operator:
    signals, shapes = _signals(layer), parameters_of(layer)
    states = {name: (tuple(text.split()), domain) for name, (text, domain) in layer.states.items()}
    first, last = len(signals), len(signals) + len(shapes)

    def stateful(*given):
        parameters = given[first:last]
        _check_cores(layer, parameters)
        given = (*given[:first], tuple(given[last:]))
        y, after = layer.stateful(ops(), layer.kind(*parameters), *given)
        return y, *after

    inputs = _domains(signals, shapes)
    inputs |= {f"{name}0": domain for name, (_, domain) in states.items()}
    name = f"{layer.name}_layer_stateful"
    batch = ["b"] * first + [""] * len(shapes) + ["b"] * len(states)
    return Operator(
        reference=_presented(stateful, name, [*inputs], _doc(layer, PIECE)),
        signature=f"{_cores(signals)},{_cores(shapes)},{_cores(states)}->(l,h),{_cores(states)}",
        form="stateful",
        inputs=inputs,
        outputs=("y", *states),
        batch=", ".join(batch),
        traits=STEPPED | (layer.traits & OF_PAIRS),
        contract=CHAIN,
        citation=layer.source,
        lacks=ABSENT | {"vjp"},
        tags=tuple(f"{tag} with the last state" for tag in layer.tags),
    )


def _pulled_back(op: Operator, layer: Layer) -> Callable:
    count = len(_signals(layer))

    def vjp(dy, *given):
        read, parameters = given[:count], given[count:]
        _check_cores(layer, parameters)
        gradients, *dread = layer.vjp(ops(), dy, layer.kind(*parameters), *read)
        return *dread, *gradients.arrays().values()

    told = "".join(f", `{name}`" for name in layer.beside)
    doc = (
        f"Gradients of `u`{told} and of each parameter of `{layer}`, in the order of the arguments."
    )
    return _presented(vjp, f"{op.name}_vjp", ["dy", *op.inputs], doc)


def _cores(shapes) -> str:
    """ "(n),(n,h)" for several shapes in letters."""
    return ",".join(f"({','.join(letters)})" for letters, _ in shapes.values())


def _check_cores(layer: Layer, parameters) -> None:
    """ValueError for a parameter with leading axes: all members of a batch have the same."""
    for (name, (letters, _)), p in zip(parameters_of(layer).items(), parameters, strict=True):
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
