"""Where every public name is defined: reads the only list, the stub `__init__.pyi`.

Type checkers need the stub, so it is also the source of what `refssm` and its families export, and
of the order of the catalog. `import refssm` runs this code, so it uses no parser and no `pathlib`.
"""

import os
import sys
from collections.abc import Iterable

STUB = os.path.join(os.path.dirname(os.path.dirname(__file__)), "__init__.pyi")


def listed(text: str) -> dict[str, str]:
    """The family of each name, in order: `from refssm.<family> import (`, then `name as name,`."""
    family, families = "", {}
    for line in text.splitlines():
        match line.split():
            case ["from", module, "import", "("]:
                family = module.removeprefix("refssm.")
            case [name, "as", again] if again == f"{name},":
                families[name] = family
    return families


with open(STUB, encoding="utf-8") as _stub:
    FAMILY_OF = listed(_stub.read())


def did_you_mean(word: str, known: Iterable[str], least: float = 0.5) -> str:
    """The known word that is most like another as a question, "did you mean …? ", or ""."""
    import difflib  # only for a name that is wrong

    found = difflib.get_close_matches(word, [*known], n=1, cutoff=least)
    return f"did you mean {found[0]}? " if found else ""


def export(package: dict[str, object]) -> None:
    """Remove all names from a package's `globals()` but its public ones: listed names,
    declarations.

    Helpers and imports that `from … import *` brought stay in their files. Each file stays an
    attribute of the package, unless an operator has its name.
    """
    home = f"{package['__name__']}."
    names = [name for name in package if not name.startswith("__")]
    values = {name: package.pop(name) for name in names}
    public = {name: value for name, value in values.items() if _public(name, value, home)}
    files = {name: file for name, file in sys.modules.items() if name.startswith(home)}
    package.update({name.removeprefix(home): file for name, file in files.items()})
    package.update(public, __all__=sorted(public))


def _public(name: str, value: object, home: str) -> bool:
    """True if a file of this package defines it, and it is a declaration or in the list."""
    reference = getattr(value, "reference", None)
    listed_here = FAMILY_OF.get(name) == home.split(".")[-2]
    module = getattr(reference or value, "__module__", None) or ""
    return module.startswith(home) and (reference is not None or listed_here)
