"""`python -m refssm.jit` compiles every mirror for this machine, on all its cores."""

import pkgutil
import sys
import time
import warnings

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import track

import refssm.jit
from refssm.jit._cache import of_these_sources

# the longest first, so that the cores end together
LONGEST = ("convolution.short", "vandermonde", "hankel", "ssd.kernels", "selective_scan.kernels")


def files() -> list[str]:
    """Every file of mirrors, those that take longest to compile first."""
    home = refssm.jit.__name__ + "."
    found = [f.name for f in pkgutil.walk_packages(refssm.jit.__path__, home) if not f.ispkg]
    names = [name for name in found if not name.endswith("__main__")]
    return sorted(names, key=lambda name: name.removeprefix(home) not in LONGEST)


def compile_file(name: str) -> str:
    """Import a file of mirrors in this process: what is not on disk yet is compiled and kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        __import__(name)
    return name


def main() -> None:
    """Compile all files, with progress on a terminal, and say where they are kept."""
    begun, names, console = time.perf_counter(), files(), Console(stderr=True)
    done = Parallel(n_jobs=-1, return_as="generator_unordered")(map(delayed(compile_file), names))
    shown = console.is_terminal
    list(track(done, "compiling mirrors", len(names), console=console, disable=not shown))
    took = time.perf_counter() - begun
    sys.stdout.write(f"{len(names)} files of mirrors in {took:.0f} s, in {of_these_sources()}\n")


if __name__ == "__main__":
    main()
