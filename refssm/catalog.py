"""Every operator, in reading order: the list of public names, matched with the declarations.

The operators of layers are not among them: they are derived from the layers, in `refssm.layers`,
and have no mirrors. The judge knows both.
"""

from functools import cache
from importlib import import_module

from refssm._declaration.names import FAMILY_OF
from refssm._declaration.operator import Operator


def declared(family: str) -> dict[str, Operator]:
    """The declarations of a family by name; ImportError if the list lacks one."""
    values = vars(import_module(f"refssm.{family}")).values()
    found = {op.name: op for op in values if isinstance(op, Operator) and op.family == family}
    for name in found.keys() - FAMILY_OF:
        msg = f"refssm.{family} declares {name!r}, which refssm/__init__.pyi does not list"
        raise ImportError(msg)
    return found


def _in_order() -> tuple[Operator, ...]:
    families = dict.fromkeys(FAMILY_OF.values())
    found = {name: op for family in families for name, op in declared(family).items()}
    return tuple(found[name] for name in FAMILY_OF if name in found)


OPERATORS = _in_order()
LAYERS = "layers"  # the family of operators that are layers


@cache
def judged() -> tuple[Operator, ...]:
    """All operators that the judge knows: the catalog's, then those of layers."""
    return OPERATORS + import_module(f"refssm.{LAYERS}.catalog").OPERATORS


@cache
def _by_name() -> dict[str, Operator]:
    return {op.name: op for op in judged()}


def named(name: str) -> Operator | None:
    """The operator of this name, of the catalog or of a layer, or None."""
    return _by_name().get(name)


def called(name: str) -> list[Operator]:
    """The operators of which a tag is this name, whatever its case and punctuation."""
    wanted = joined(name)
    return [op for op in judged() if any(wanted == joined(tag) for tag in op.tags)]


def joined(text: str) -> str:
    """The letters and digits of a text, in small letters: "RG-LRU" is "rglru"."""
    return "".join(c for c in text.lower() if c.isalnum())


def families() -> list[str]:
    """The families with operators, in reading order."""
    return list(dict.fromkeys(op.family for op in OPERATORS))


def from_state(op: Operator) -> bool:
    """True if one of its arguments is the previous state."""
    return bool(op.form)


def resumed(op: Operator) -> Operator | None:
    """The operator that starts this one from a state: itself, or its `_from`/`_stateful` form."""
    known = judged() if op.family == LAYERS else OPERATORS
    others = (other for other in known if other.form in ("from", "stateful"))
    return next((other for other in others if _plain(other) == _plain(op)), None)


def states_in(op: Operator) -> int:
    """How many of its last arguments are the previous state: one, or as many as it returns."""
    return max(1, len(op.state_outputs)) if op.form else 0


def _plain(op: Operator) -> str:
    """The name without `_from` or `_stateful`; a step is an operator of its own."""
    return op.name if op.form == "step" else op.name.removesuffix(f"_{op.form}")
