"""Compile a kernel's instance for the CPU: one small shared library each, kept on disk.

    <cache>/host/<hash of sources, compiler and flags>/

A machine compiles each instance once. As for the CPU mirrors: made under a lock in a folder with a
temporary name, which is renamed when it is whole; `REFSSM_CACHE_DIR` says where `<cache>` is.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from refssm_gpu._launching.kernel import KERNELS, Instance, Kernel

HOST = Path(__file__).parent
RUNTIME = HOST / "runtime"
INCLUDE = re.compile(r'^\s*#include ["<]([\w./]+)[">]', re.MULTILINE)
# Debug information of version 4: binutils 2.40 reads file names wrongly from version 5.
# A product and a sum are rounded each, as in NumPy. CUDA code reads bytes through any pointer.
FLAGS = ("-std=c++20", "-gdwarf-4", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing")
WARNINGS = (
    "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-Wno-maybe-uninitialized",
    "-Wno-unknown-warning-option", "-Wno-pass-failed",  # for clang++: it knows other names
)  # fmt: skip
OF_KERNELS = ("-O1", "-fvisibility=hidden", *WARNINGS)
ERROR = re.compile(r":\d+: (?:fatal )?error: ")  # of a line of the source
UNUSED = 30 * 24 * 3600  # seconds after which a folder that nobody used is removed
INSTALL = "install one (Debian, Ubuntu: apt install g++; macOS: xcode-select --install)"
Stamp = tuple[int, int]


class NoCompiler(RuntimeError):
    """No C++ compiler was found; the message says what to install."""


class CompileError(RuntimeError):
    """The C++ compiler refused a kernel; the message has what it said."""


Made = Path | CompileError
_made: dict[tuple, tuple[Made, list[str], list[Stamp]]] = {}


def library(kernel: Kernel, instance: Instance, flags: Sequence[str] = ()) -> Path:
    """The shared library of one instance, with more flags for the compiler if given."""
    asked = (kernel.source, kernel.name, instance, tuple(flags), os.environ.get("REFSSM_CACHE_DIR"))
    if asked in _made:  # a launch must not read all the sources
        made, files, stamps = _made[asked]
        if stamps == list(map(_stamp, files)):
            return _given(made)
    files = [*_files(KERNELS / kernel.source, {}), *_files(RUNTIME / "runtime.cpp", {})]
    names = sorted({str(file) for file in files})
    stamps = list(map(_stamp, names))
    try:
        made = _library(kernel, instance, flags)
    except CompileError as error:
        if not ERROR.search(str(error)):
            raise  # not of these files: a compiler that was killed, a full disk
        made = error  # the judge calls a kernel again and again
    _made[asked] = made, names, stamps
    return _given(made)


def _given(made: Made) -> Path:
    """What was made; CompileError again where the compiler refused these files before."""
    if isinstance(made, Path):
        return made
    raise CompileError(*made.args)


def _stamp(file: str) -> Stamp:
    """What changes when a file is written."""
    status = os.stat(file)
    return status.st_mtime_ns, status.st_size


def _library(kernel: Kernel, instance: Instance, flags: Sequence[str]) -> Path:
    expression, source = kernel.expression(instance), KERNELS / kernel.source
    runtime = runtime_library()
    decides = [*decisive(source, flags), runtime.parent.name, expression]

    def make(folder: Path) -> None:
        compile_ = instance_flags(folder, source, expression, flags)
        link = ["-shared", "-Wl,--no-as-needed", f"-L{runtime.parent}", f"-l:{runtime.name}"]
        where = f"-Wl,-rpath,$ORIGIN/../{runtime.parent.name}"  # a cache may be moved
        run_compiler([*compile_, "-o", "instance.so", *link, where], folder, expression)

    return kept(decides, make) / "instance.so"


def runtime_library() -> Path:
    """The engine, which all instances share."""
    source = RUNTIME / "runtime.cpp"
    decides = decisive(source, ["-O2"])

    def make(folder: Path) -> None:
        # the loader knows libraries by this name: another engine must have another
        soname = f"libcuda_on_host-{folder.name.partition('.')[0]}.so"
        made = ["-shared", f"-Wl,-soname,{soname}", "-o", soname]
        run_compiler([*FLAGS, "-O2", str(source), *made], folder, "the engine")

    folder = kept(decides, make)
    return folder / f"libcuda_on_host-{folder.name}.so"


def instance_flags(folder: Path, source: Path, expression: str, flags: Sequence[str]) -> list[str]:
    """What compiles one instance: its file, written to this folder, makes it visible to Python."""
    text = f'#include "{source}"\nCUDA_ON_HOST_EXPORT({expression})\n'
    (folder / "instance.cpp").write_text(text, encoding="utf-8")
    paths = ["-I", str(HOST), "-I", str(KERNELS)]
    return [*FLAGS, *_optional(), *OF_KERNELS, *flags, *paths, "instance.cpp"]


@cache
def launch_bound(source: str, name: str) -> int | None:
    """Most threads of a block by the kernel's `__launch_bounds__`: a number or a constant."""
    texts = list(_files(KERNELS / source, {}).values())
    for text in texts:
        if found := re.search(rf"__launch_bounds__\((\w+)[^{{;]*?\b{name}\(", text):
            if found[1].isdigit():
                return int(found[1])
            constant = re.compile(rf"constexpr int[^;]*\b{found[1]} = (\d+)")
            return next((int(value[1]) for t in texts if (value := constant.search(t))), None)
    return None


def run_compiler(arguments: Sequence[str], folder: Path, what: str) -> None:
    """Run the C++ compiler in a folder; `CompileError` with its words if it fails."""
    done = subprocess.run(
        [compiler(), *arguments], cwd=folder, capture_output=True, encoding="utf-8",
        errors="replace", stdin=subprocess.DEVNULL, env=os.environ | {"LC_ALL": "C"},
    )  # fmt: skip
    if done.returncode:
        raise CompileError(f"{what}: the C++ compiler refuses it: {_told(done.stderr)}")


def _told(words: str) -> str:
    """What the compiler said, its first error before all else: readers may see one line only."""
    # g++ adds a note about each warning option that it does not know
    lines = [line for line in words.splitlines() if "unrecognized command-line option" not in line]
    first = next((line for line in lines if "error: " in line), "")
    return "\n".join([first.replace(f"{KERNELS}{os.sep}", ""), *lines[:40]])


@cache
def compiler() -> str:
    """The path of the C++ compiler: $CXX, g++ or clang++."""
    for name in (os.environ.get("CXX"), "g++", "clang++"):
        if name and (found := shutil.which(name)):
            return found
    raise NoCompiler(f"the host build of CUDA kernels needs g++ or clang++: {INSTALL}")


@cache
def _optional() -> list[str]:
    """Flags that not every compiler knows.

    Libraries do not share the places of static variables; variables without a value start with one
    that no right kernel computes.
    """
    wanted = ("-fno-gnu-unique", "-ftrivial-auto-var-init=pattern")
    empty = ["-Werror", "-fsyntax-only", "-x", "c++", os.devnull]
    return [
        flag for flag in wanted
        if not subprocess.run([compiler(), flag, *empty], capture_output=True).returncode
    ]  # fmt: skip


@cache
def _version() -> str:
    return subprocess.run(
        [compiler(), "--version"], capture_output=True, encoding="utf-8", check=True
    ).stdout


def decisive(source: Path, flags: Sequence[str]) -> list[str]:
    """What decides the machine code: the file with all that it includes, compiler, flags."""
    files = sorted(_files(source, {}).items())
    texts = [f"{path.name}\n{text}" for path, text in files]
    return [_version(), *FLAGS, *_optional(), *OF_KERNELS, *flags, str(source), *texts]


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


def kept(parts: Iterable[str], make: Callable[[Path], None]) -> Path:
    """The folder that these texts decide; `make` fills it if it does not exist."""
    folder = _root() / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    if not folder.is_dir():
        with FileLock(f"{folder}.lock"):  # the system opens the lock of a killed process
            if not folder.is_dir():
                _fill(folder, make)
    os.utime(folder)
    return folder


def _fill(folder: Path, make: Callable[[Path], None]) -> None:
    for left in folder.parent.glob(f"{folder.name}.*.part"):
        shutil.rmtree(left)  # by a killed process: whoever fills one has the lock
    part = Path(tempfile.mkdtemp(".part", f"{folder.name}.", folder.parent))
    try:
        make(part)
        os.rename(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _root() -> Path:
    given = os.environ.get("REFSSM_CACHE_DIR")
    return _tidied(Path(given) if given else user_cache_path("refssm", appauthor=False))


@cache  # once in a process
def _tidied(place: Path) -> Path:
    root = place.absolute() / "host"
    root.mkdir(parents=True, exist_ok=True)
    for old in root.iterdir():
        with suppress(FileNotFoundError):  # another process renamed or removed it meanwhile
            if time.time() - old.stat().st_mtime > UNUSED:
                shutil.rmtree(old, ignore_errors=True)
    return root
