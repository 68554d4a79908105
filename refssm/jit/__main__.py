"""`python -m refssm.jit` compiles every mirror for this machine, on all its cores."""

import pkgutil
import sys
import time
import warnings
from importlib import import_module

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import track

import refssm.jit
from refssm.jit._cache import of_these_sources
from refssm.jit._gufunc import ON_DEMAND

# these take longest to compile; they come first, so that the cores end together
LONGEST = ("hankel", "hope", "ssd", "vandermonde", "dplr", "convolution", "selective_scan")


def families() -> list[str]:
    """Every family of mirrors, those that take longest to compile first."""
    names = [family.name for family in pkgutil.iter_modules(refssm.jit.__path__)]
    return [*LONGEST, *(name for name in names if name[0] != "_" and name not in LONGEST)]


def compile_family(name: str) -> None:
    """Import a family's mirrors in this process and compile all that is not on disk yet."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        import_module(f"refssm.jit.{name}")
        for kernel in ON_DEMAND:
            kernel.compile()


def main() -> None:
    """Compile all families, with progress on a terminal, and say where they are kept."""
    begun, names, console = time.perf_counter(), families(), Console(stderr=True)
    parallel = Parallel(n_jobs=-1, batch_size=1, return_as="generator_unordered")  # pyright: ignore[reportArgumentType]
    done = parallel(delayed(compile_family)(name) for name in names)
    shown = console.is_terminal
    list(track(done, "compiling mirrors", len(names), console=console, disable=not shown))
    took = time.perf_counter() - begun
    sys.stdout.write(f"{len(names)} families of mirrors in {took:.0f} s, in {of_these_sources()}\n")


if __name__ == "__main__":
    main()
