"""An operator as a function of other parameters; `refssm.adapters` says which there are.

Cases are drawn in the parameters: a domain of θ has the maps of the argument's domain, by the
inverse. Programs, gradients and oracles of the operator are composed with the parametrisation.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from importlib import import_module
from typing import Any

import numpy as np

from refssm._declaration.arguments import each
from refssm._declaration.operator import Operator
from refssm._declaration.parametrisations import (
    MAPS,
    ROWS,
    SMALLEST,
    Map,
    MapOfRows,
    map_of,
    parameter_of,
)
from refssm._numerics.broadcasting import unbroadcast
from refssm._numerics.pairs import folded, paired
from refssm.adapters import PAIRS, STATE, STEPS, Adapter, dt_and_A
from refssm.domains import Domain, rates, step_sizes

MODES, TIME = "n", "l"  # the axes of conjugate pairs, and of steps
SSD = ["x", "log_a"]  # the first arguments of its forms
NEGATIVE = ("neg_exp", "neg_softplus")  # what they give
OF_ANY = {"log_dt", *NEGATIVE, "oldest_first", "scaled"}  # also of complex ones
REAL = {*ROWS, *MAPS} - OF_ANY


@dataclass(frozen=True, eq=False)
class Adapted(Operator):
    """The operator `base` as a function of other parameters."""

    base: Operator | None = None
    adapter: Adapter | None = None

    @property
    def adapters(self) -> tuple[Adapter, ...]:
        """All adapters, the first one innermost."""
        assert self.adapter is not None
        return (*adapters_of(self.base), self.adapter)

    @cached_property
    def bare_vjp(self) -> Callable[..., Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The VJP by the parameters, without argument checks."""
        assert self.base is not None
        return self.through_vjp(self.base.bare_vjp)

    def implementation(self, role: str) -> Callable[..., Any]:
        """The function in a role, of the parameters: reference, oracle or enclosure."""
        assert self.base is not None
        assert role in ("reference", "oracle", "enclosure"), role
        if role == "reference":
            return self.reference
        maps = import_module(f"refssm.{role}.adapters")  # in mpmath or in ball arithmetic
        return self.of_lists(maps, self.base.implementation(role))

    def given(self, arrays: list) -> list:
        """The arguments of `base` for these parameters, also of tracked arrays."""
        raise NotImplementedError

    def back(self, gradients: list, parameters: list, natural: list) -> list:
        """The gradients by the parameters, from those by the arguments of `base`."""
        raise NotImplementedError

    def returned(self, y: Any) -> Any:
        """The outputs, from those of `base`."""
        return y

    def cotangents(self, dy: list) -> list:
        """The cotangents of the outputs of `base`."""
        return dy

    def of_lists(self, maps: Any, definition: Callable) -> Callable:
        """The oracle or enclosure of the parameters, from that of `base`."""
        raise NotImplementedError

    def of_preset(self, drawn: Mapping) -> dict[str, np.ndarray]:
        """The parameters of a preset's arrays, as far as it draws them."""
        return dict(drawn)

    def through(self, program: Callable) -> Callable:
        """`program` of `base`'s arguments, as one of the parameters."""

        @wraps(program)
        def adapted(*arrays, **statics):
            y = program(*self.given([*arrays]), **statics)
            return None if y is None else self.returned(y)

        return adapted

    def through_vjp(self, vjp: Callable) -> Callable:
        """A VJP of `base`, followed by that of the parametrisation."""
        count = len(self.outputs)

        @wraps(vjp)
        def adapted(*arrays, **statics):
            parameters = list(arrays[count:])
            natural = self.given(parameters)
            gradients = vjp(*self.cotangents([*arrays[:count]]), *natural, **statics)
            if gradients is None:
                return None
            return tuple(self.back(list(gradients), parameters, natural))

        return adapted


class _OfOne(Adapted):
    """One argument has another parameter, entry by entry or row by row."""

    @property
    def place(self) -> int:
        """The index of the argument."""
        assert self.adapter is not None
        return list(self.inputs).index(self.adapter.argument)

    @property
    def map(self) -> Map | MapOfRows:
        """The parametrisation."""
        assert self.adapter is not None
        return map_of(self.adapter)

    def given(self, arrays):
        i = self.place
        return [*arrays[:i], self.map.forward(arrays[i]), *arrays[i + 1 :]]

    def back(self, gradients, parameters, natural):
        i = self.place
        gradients[i] = self.map.back(gradients[i], parameters[i], natural[i])
        return gradients

    def of_lists(self, maps, definition):
        assert self.adapter is not None
        return maps.of_one(definition, self.adapter, self.place)

    def of_preset(self, drawn):
        assert self.adapter is not None
        name, inverse = self.adapter.argument, self.map.inverse
        return {k: inverse(x) if k == name else x for k, x in drawn.items()}


def _blocks_of_modes(dim: str) -> int:
    """How many lists of modes an axis has one after the other: two where it is 2n; 0 without."""
    return int(dim.removesuffix(MODES) or 1) if dim.endswith(MODES) else 0


class _OfPairs(Adapted):
    """All arguments with an axis of modes are one half of conjugate pairs."""

    @property
    def axes(self) -> dict[int, tuple[int, int]]:
        """The axis of modes, counted from the end, of each argument that has one; its blocks."""
        return {
            i: (k - len(dims), blocks)
            for i, dims in enumerate(self.input_dims)
            for k, blocks in enumerate(map(_blocks_of_modes, dims))
            if blocks
        }

    def given(self, arrays):
        axes = self.axes
        return [paired(x, *axes[i]) if i in axes else x for i, x in enumerate(arrays)]

    def returned(self, y):
        return each(y, lambda x: x.real if np.iscomplexobj(x) else x)

    def back(self, gradients, parameters, natural):
        del parameters, natural
        axes = self.axes
        return [folded(g, *axes[i]) if i in axes else g for i, g in enumerate(gradients)]

    def of_lists(self, maps, definition):
        axes = {i: (len(self.input_dims[i]) + axis, n) for i, (axis, n) in self.axes.items()}
        return maps.of_pairs(definition, axes)


class _OfState(Adapted):
    """A state, and the states that are returned, are transposed."""

    @property
    def places(self) -> tuple[int, list[int]]:
        """The index of the argument, and those of the outputs with its last two axes."""
        assert self.adapter is not None
        place = list(self.inputs).index(self.adapter.argument)
        dims = self.input_dims[place][-2:]
        return place, [j for j, of in enumerate(self.output_dims) if of[-2:] == dims]

    def given(self, arrays):
        place, _ = self.places
        return [x.swapaxes(-1, -2) if i == place else x for i, x in enumerate(arrays)]

    def returned(self, y):
        return self._of_outputs(y) if isinstance(y, tuple) else y

    def cotangents(self, dy):
        return [*self._of_outputs(dy)]

    def _of_outputs(self, y):
        _, outputs = self.places
        return tuple(x.swapaxes(-1, -2) if j in outputs else x for j, x in enumerate(y))

    def back(self, gradients, parameters, natural):
        del parameters, natural
        place, _ = self.places
        return [g.swapaxes(-1, -2) if i == place else g for i, g in enumerate(gradients)]

    def of_lists(self, maps, definition):
        place, outputs = self.places
        return maps.of_state(definition, place, outputs)

    def of_preset(self, drawn):
        assert self.adapter is not None
        name = self.adapter.argument
        return {k: x.swapaxes(-1, -2) if k == name else x for k, x in drawn.items()}


class _OfSteps(Adapted):
    """dt x and log_a = dt A have the parameters x, dt and A; A has no axis of time."""

    def given(self, arrays):
        x, dt, A, *others = arrays
        return [dt[..., None] * x, dt * self._at_each_step(A), *others]

    def _at_each_step(self, A):
        return A[..., None] if TIME in self.input_dims[1] else A

    def back(self, gradients, parameters, natural):
        del natural
        (of_inputs, of_decays, *others), (x, dt, A, *_) = gradients, parameters
        of_dt = unbroadcast((x.conj() * of_inputs).sum(-1), dt)
        of_dt = of_dt + unbroadcast(self._at_each_step(A).conj() * of_decays, dt)
        of_A = dt * of_decays
        of_A = of_A.sum(-1) if TIME in self.input_dims[1] else of_A
        return [unbroadcast(dt[..., None] * of_inputs, x), of_dt, unbroadcast(of_A, A), *others]

    def of_lists(self, maps, definition):
        return maps.of_steps(definition)

    def of_preset(self, drawn):
        log_a, x = drawn["log_a"].real, drawn["x"]
        A = -(2.0 ** np.ceil(np.log2(max(np.abs(log_a).max(initial=0.0), SMALLEST))))
        dt = log_a / A
        x = np.where(dt[..., None] == 0, x, x / np.where(dt == 0, 1, dt)[..., None])
        others = {k: v for k, v in drawn.items() if k not in SSD}
        return {"x": x, "dt": dt, "A": np.array(A), **others}


def adapters_of(op: Operator | None) -> tuple[Adapter, ...]:
    """The adapters of an operator, the innermost first; () if it has none."""
    return op.adapters if isinstance(op, Adapted) else ()


def adapted(op: Operator, adapters: Iterable[Adapter]) -> Operator:
    """The operator as a function of the parameters; ValueError if an adapter does not fit it.

    What `taken` has applied is not applied again.
    """
    for adapter in adapters:
        if adapter.name != STEPS or adapter not in adapters_of(op):
            op = _adapted(op, adapter)
    return op


def taken(op: Operator, adapters: Iterable[Adapter]) -> Operator:
    """The operator with the arguments that a function with these adapters takes, by name."""
    return adapted(op, [adapter for adapter in adapters if adapter.name == STEPS])


def with_steps(op: Operator) -> list[Operator]:
    """The operator as a function of x, dt and A, if it is a form of SSD."""
    return [adapted(op, [dt_and_A()])] if [*op.inputs][:2] == SSD else []


def _adapted(op: Operator, adapter: Adapter) -> Operator:
    refuse_unfit(op, adapter)
    fields = {name: getattr(op, name) for name in Operator.__dataclass_fields__}
    name = adapter.argument
    kept = {t for t in op.traits if not t.startswith("linear:") or name not in _names(t)}
    kind = {PAIRS: _OfPairs, STEPS: _OfSteps, STATE: _OfState}.get(adapter.name, _OfOne)
    bare = kind(**{**fields, "traits": frozenset(kept)}, base=op, adapter=adapter)
    return replace(
        bare,
        reference=bare.through(op.reference),
        definition=op.definition and bare.through(op.definition),
        **_arguments(op, adapter),
        lacks=op.lacks | {"jit", "gpu"},
    )


def _arguments(op: Operator, adapter: Adapter) -> dict[str, Any]:
    """The fields of the operator that are of its parameters."""
    if adapter.name == STATE:
        return {"signature": _transposed(op, adapter.argument)}
    if adapter.name != STEPS:
        return {"inputs": _domains(op, adapter)}
    batch, dims = op.batch.split(","), [f"({','.join(dims)})" for dims in op.input_dims]
    of_A = " ".join(batch[1].split()[1:])
    x, _, *others = op.inputs.values()
    names = [name for name in op.inputs if name not in SSD]
    return {
        "inputs": {"x": x, "dt": step_sizes, "A": rates, **dict(zip(names, others, strict=True))},
        "batch": ",".join([*batch[:2], of_A, *batch[2:]]),
        "signature": f"{','.join([*dims[:2], '()', *dims[2:]])}->{op.signature.partition('->')[2]}",
    }


def _transposed(op: Operator, argument: str) -> str:
    """The signature with the transpose of a state in arguments and outputs."""
    dims = op.input_dims[list(op.inputs).index(argument)][-2:]
    return op.signature.replace(",".join(dims) + ")", f"{dims[1]},{dims[0]})")


def _domains(op: Operator, adapter: Adapter) -> dict[str, Domain]:
    """The domains of the parameters."""
    found, name = {}, adapter.argument
    for (key, domain), dims in zip(op.inputs.items(), op.input_dims, strict=True):
        if adapter.name == PAIRS:
            modes = any(map(_blocks_of_modes, dims))
            real = not modes and domain.kind == "either"  # else pairs are not conjugate
            found[key] = replace(domain, kind="real") if real else domain
        else:
            found[key] = parameter_of(domain, adapter) if key == name else domain
            if domain.meets == name:  # no values beside those of an argument that is not drawn
                rest = tuple(t for t in domain.textures if t != "beside")
                found[key] = replace(domain, textures=rest, meets="")
    return found


def refuse_unfit(op: Operator, adapter: Adapter) -> None:
    """ValueError if the operator has no argument for the adapter."""
    if adapter.name == PAIRS:
        if not any(MODES in dims for dims in op.input_dims):
            raise ValueError(f"halves: {op} has no axis n of modes ({op.signature})")
        if any(MODES in dims for dims in op.output_dims):
            raise ValueError(f"halves: {op} returns states, which are no real numbers")
        matrices = [
            k for k, dims in zip(op.inputs, op.input_dims, strict=True) if dims.count(MODES) > 1
        ]
        if matrices:
            raise ValueError(f"halves: `{matrices[0]}` of {op} is a matrix, no list of modes")
        return
    if adapter.name == STEPS:
        if [*op.inputs][:2] != SSD:
            raise ValueError(f"{adapter.name}: {op} is no form of SSD with x and log_a")
        if adapters_of(op):
            raise ValueError(f"{adapter.name}: wanted as the first adapter, got it after others")
        return
    if adapter.argument not in op.inputs:
        known = ", ".join(op.inputs)
        raise ValueError(
            f"{adapter.name}: {op} has no argument {adapter.argument!r}; wanted one of {known}"
        )
    if op.inputs[adapter.argument].kind == "flag":
        raise ValueError(f"{adapter}: `{adapter.argument}` of {op} is true or false")
    dims = op.input_dims[list(op.inputs).index(adapter.argument)]
    if len(set(dims)) < len(dims):
        raise ValueError(f"{adapter}: `{adapter.argument}` of {op} is a matrix, no list of rates")
    if adapter.name == STATE and (
        len(dims) < 2 or dims[-2:] not in [d[-2:] for d in op.output_dims]
    ):
        raise ValueError(f"{adapter}: `{adapter.argument}` of {op} is no state that it returns")
    if adapter.name in REAL and op.inputs[adapter.argument].kind != "real":
        raise ValueError(f"{adapter}: `{adapter.argument}` of {op} may be complex")
    if adapter.name in NEGATIVE and _is_positive(op.inputs[adapter.argument]):
        raise ValueError(f"{adapter}: `{adapter.argument}` of {op} is at least 0, never negative")
    if adapter.name in ROWS and not dims:
        raise ValueError(f"{adapter}: `{adapter.argument}` of {op} is one number, no row of them")


def _is_positive(domain: Domain) -> bool:
    """Whether no number of the domain has a negative real part."""
    a, b = np.meshgrid(*[np.linspace(0.01, 0.99, 9)] * 2)
    return all(bool((np.real(of(a, b)) >= 0).all()) for of in domain.maps.values())


def fits(op: Operator, adapter: Adapter) -> bool:
    """Whether the operator has an argument for the adapter."""
    try:
        refuse_unfit(op, adapter)
    except ValueError:
        return False
    return True


def _names(trait: str) -> list[str]:
    """The arguments of a trait such as linear:B,C->y."""
    return trait.removeprefix("linear:").partition("->")[0].split(",")


def through(op: Operator, program: Callable, vjp: bool = False) -> Callable:
    """A program of the unadapted operator, or its VJP, as one of this operator's parameters."""
    if not isinstance(op, Adapted):
        return program
    assert op.base is not None
    inner = through(op.base, program, vjp)
    return op.through_vjp(inner) if vjp else op.through(inner)
