"""NVRTC, the compiler that CuPy calls, by its C functions: it needs no GPU and no driver.

It comes with one package, nvidia-cuda-nvrtc; nothing of a CUDA installation is used.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

PACKAGE = "nvidia-cuda-nvrtc"
INSTALL = f"pip install {PACKAGE}==13.0.88"
FAILED = 6  # NVRTC_ERROR_COMPILATION: the log says why


class NoCompiler(RuntimeError):
    """NVRTC is not installed; the message says how to install it."""


@dataclass(frozen=True)
class Output:
    """What NVRTC made of one program; `cubin` and `ptx` are empty if it failed."""

    failed: bool
    log: str
    names: dict[str, str]  # name expression -> the name in cubin and PTX
    cubin: bytes
    ptx: str


def version() -> str:
    """The installed package's version: "13.0.88"."""
    try:
        return distribution(PACKAGE).version
    except PackageNotFoundError:
        raise NoCompiler(f"NVRTC, CUDA's compiler, is not installed: {INSTALL}") from None


def compiled(source: str, expressions: Sequence[str], options: Sequence[str]) -> Output:
    """Compile the instances that these name expressions name."""
    with _program(source) as program:
        for name in expressions:
            _done("nvrtcAddNameExpression", program, name.encode())
        given = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        code = _library().nvrtcCompileProgram(program, len(options), given)
        log = _text("ProgramLog", program).replace(b"\0", b"").decode()
        if code == FAILED:
            return Output(True, log, {}, b"", "")
        if code:
            raise RuntimeError(f"nvrtcCompileProgram: {_told(code)}: {log.strip()}")
        names = {name: _lowered(program, name) for name in expressions}
        ptx = _text("PTX", program).rstrip(b"\0").decode()
        return Output(False, log, names, _text("CUBIN", program, ended=False), ptx)


@cache
def _library() -> ctypes.CDLL:
    version()
    files = [Path(str(f.locate())) for f in distribution(PACKAGE).files or ()]
    # loaded first: NVRTC opens its built-in functions by name, and finds them if they are there
    for stem in ("libnvrtc-builtins.so", "libnvrtc.so"):
        found = [path for path in files if path.name.startswith(stem)]
        if not found:
            raise NoCompiler(
                f"{PACKAGE} {version()} has no {stem}, wanted one for Linux: {INSTALL}"
            )
        library = ctypes.CDLL(str(found[0]))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


@contextmanager
def _program(source: str) -> Iterator[ctypes.c_void_p]:
    program = ctypes.c_void_p()
    text = source.encode()
    _done("nvrtcCreateProgram", ctypes.byref(program), text, b"kernels.cu", 0, None, None)
    try:
        yield program
    finally:
        _done("nvrtcDestroyProgram", ctypes.byref(program))


def _text(what: str, program: ctypes.c_void_p, ended: bool = True) -> bytes:
    """The log, PTX or cubin; texts end with a zero byte."""
    size = ctypes.c_size_t()
    _done(f"nvrtcGet{what}Size", program, ctypes.byref(size))
    held = ctypes.create_string_buffer(size.value)
    _done(f"nvrtcGet{what}", program, held)
    return held.raw.rstrip(b"\0") if ended else held.raw


def _lowered(program: ctypes.c_void_p, expression: str) -> str:
    name = ctypes.c_char_p()
    _done("nvrtcGetLoweredName", program, expression.encode(), ctypes.byref(name))
    return (name.value or b"").decode()


def _done(function: str, *arguments) -> None:
    """Call a function that does not fail by what it is given."""
    if code := getattr(_library(), function)(*arguments):
        raise RuntimeError(f"{function}: {_told(code)}")


def _told(code: int) -> str:
    return _library().nvrtcGetErrorString(code).decode()
