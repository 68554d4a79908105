"""The operators of a package as its attributes: a family is imported when a name is asked for.

`import refssm` runs this code, so it imports nothing but the standard library.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from refssm._declaration.names import FAMILY_OF, did_you_mean

ALIKE = 0.8  # a name that is asked for may be of no operator: `hasattr`


class Package(ModuleType):
    """Keep the operator where its family has the same name: `refssm.selective_scan` is both."""

    def __setattr__(self, name, value):
        if not (name in FAMILY_OF and isinstance(value, ModuleType)):  # set by its import
            super().__setattr__(name, value)


def lacking(package: str, name: str) -> AttributeError:
    """The error for a name that no operator has; it names one that is alike."""
    hint = "" if name.startswith("_") else did_you_mean(name, FAMILY_OF, ALIKE).strip()
    return AttributeError(f"module {package!r} has no attribute {name!r}{'; ' * bool(hint)}{hint}")


class Mirrors:
    """The mirrors of one role in a package: its `__getattr__` and its `__dir__`."""

    def __init__(self, package: str, role: str):
        self.package, self.role = package, role
        self.others = [*vars(sys.modules[package])]
        sys.modules[package].__class__ = Package

    def attribute(self, name: str) -> Any:
        """The mirror of an operator, or of its VJP; AttributeError if there is none."""
        if name not in FAMILY_OF:
            raise lacking(self.package, name)
        family, operator = FAMILY_OF[name], name.removesuffix("_vjp")
        declared = getattr(import_module(f"refssm.{family}"), operator.upper(), None)
        if declared is None or self.role in declared.lacks:
            raise AttributeError(
                f"module {self.package!r} has no mirror of {name}; refssm.{name} is the reference"
            )
        return vars(import_module(f"{self.package}.{family}"))[name]

    def names(self) -> list[str]:
        """The names of all mirrors, and what else the package has."""
        from refssm.catalog import OPERATORS

        mirrored = {op.name: op for op in OPERATORS if self.role not in op.lacks}
        own = [n for n in FAMILY_OF if (op := mirrored.get(n.removesuffix("_vjp"))) is not None
               and (n == op.name or op.differentiable)]  # fmt: skip
        return sorted({*self.others, *own, *vars(sys.modules[self.package])})
