"""Compile a kernel's instance for the CPU: one small shared library each, kept on disk."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from refssm_gpu._host.cache import kept
from refssm_gpu._launching.kernel import Instance, Kernel

HOST = Path(__file__).parent
KERNELS = HOST.parent / "kernels"
INCLUDE = re.compile(r'^\s*#include ["<]([\w./]+)[">]', re.MULTILINE)
# Debug information of version 4: binutils 2.40 reads file names wrongly from version 5.
# A product and a sum are rounded each, as in NumPy. CUDA code reads bytes through any pointer.
FLAGS = ("-std=c++20", "-gdwarf-4", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing")
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-Wno-maybe-uninitialized")
# variables without a value start with one that no right kernel computes
OF_KERNELS = ("-O1", "-fvisibility=hidden", "-ftrivial-auto-var-init=pattern", *WARNINGS)
INSTALL = "install one (Debian, Ubuntu: apt install g++; macOS: xcode-select --install)"


class NoCompiler(RuntimeError):
    """No C++ compiler was found; the message says what to install."""


class CompileError(RuntimeError):
    """The C++ compiler refused a kernel; the message has what it said."""


def library(kernel: Kernel, instance: Instance, flags: Sequence[str] = ()) -> Path:
    """The shared library of one instance, with more flags for the compiler if given."""
    expression, source = kernel.expression(instance), KERNELS / kernel.source
    runtime = runtime_library()
    decides = [*_decides(source, flags), runtime.parent.name, expression]

    def make(folder: Path) -> None:
        (folder / "instance.cpp").write_text(instance_text(source, expression), encoding="utf-8")
        compile_ = [*FLAGS, *_own(), *OF_KERNELS, *flags, "-I", str(HOST), "-I", str(KERNELS)]
        link = ["-shared", "-Wl,--no-as-needed", f"-L{runtime.parent}", f"-l:{runtime.name}"]
        where = f"-Wl,-rpath,$ORIGIN/../{runtime.parent.name}"  # a cache may be moved
        run_compiler(
            [*compile_, "instance.cpp", "-o", "instance.so", *link, where], folder, expression
        )

    return kept(decides, make) / "instance.so"


def runtime_library() -> Path:
    """The engine, which all instances share."""
    source = HOST / "runtime.cpp"
    decides = _decides(source, ["-O2"])

    def make(folder: Path) -> None:
        # the loader knows libraries by this name: another engine must have another
        soname = f"libcuda_on_host-{folder.name.partition('.')[0]}.so"
        made = ["-shared", f"-Wl,-soname,{soname}", "-o", soname]
        run_compiler([*FLAGS, *_own(), "-O2", str(source), *made], folder, "the engine")

    folder = kept(decides, make)
    return folder / f"libcuda_on_host-{folder.name}.so"


def instance_text(source: Path, expression: str) -> str:
    """The C++ file that makes one instance of a template visible to Python."""
    return f'#include "{source}"\nCUDA_ON_HOST_EXPORT({expression})\n'


def run_compiler(arguments: Sequence[str], folder: Path, what: str) -> None:
    """Run the C++ compiler in a folder; `CompileError` with its words if it fails."""
    done = subprocess.run(
        [compiler(), *arguments], cwd=folder, capture_output=True, encoding="utf-8",
        errors="replace", stdin=subprocess.DEVNULL, env=os.environ | {"LC_ALL": "C"},
    )  # fmt: skip
    if done.returncode:
        told = "\n".join(done.stderr.splitlines()[:40])
        raise CompileError(f"{what}: the C++ compiler refuses it:\n{told}")


@cache
def compiler() -> str:
    """The path of the C++ compiler: $CXX, g++ or clang++."""
    for name in (os.environ.get("CXX"), "g++", "clang++"):
        if name and (found := shutil.which(name)):
            return found
    raise NoCompiler(f"the host build of CUDA kernels needs g++ or clang++: {INSTALL}")


def _own() -> list[str]:
    """Flags that one compiler knows and another does not."""
    return ["-fno-gnu-unique"] if "g++" in Path(compiler()).name.replace("clang++", "") else []


@cache
def _version() -> str:
    return subprocess.run(
        [compiler(), "--version"], capture_output=True, encoding="utf-8", check=True
    ).stdout


def _decides(source: Path, flags: Sequence[str]) -> list[str]:
    """What decides the machine code: the file with all that it includes, compiler, flags."""
    files = sorted(_files(source, {}).items())
    texts = [f"{path.name}\n{text}" for path, text in files]
    return [_version(), *FLAGS, *OF_KERNELS, *flags, str(source), *texts]


def _files(path: Path, seen: dict[Path, str]) -> dict[Path, str]:
    if path not in seen:
        seen[path] = path.read_text(encoding="utf-8")
        for name in INCLUDE.findall(seen[path]):
            for found in _found(name, path):
                _files(found, seen)
    return seen


def _found(name: str, by: Path) -> Iterator[Path]:
    """The file that `#include` of this name reads, if it is one of ours."""
    for folder in (by.parent, HOST, KERNELS):
        if (folder / name).is_file():
            yield (folder / name).resolve()
            return
