"""A gufunc as one piece of machine code, with the parts that it calls.

    @part
    def halved(u, y): ...

Numba compiles what `njit` makes into a library of its own, with machine code of its own, and then
again in each library that uses it. A part is typed once, and its instructions are put into the
library of each kernel, once for all calls with the same types. Python cannot call it. Division by
zero is infinite or NaN, as in NumPy.

Numba compiles a function for NumPy in layers, each of which contains the ones below: every helper
function, the function, and the loop over the batch. Each layer is optimized and translated anew, so
what lies three layers deep is compiled four times. Here the function, its parts and the loop are
put into one library, which is compiled once.
"""

import inspect
import pickle
from typing import Any
from weakref import WeakKeyDictionary

from numba import types
from numba.core import sigutils
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.extending import intrinsic
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import IRLegalization, NativeLowering
from numba.core.untyped_passes import ExtractByteCode
from numba.np.numpy_support import as_dtype
from numba.np.ufunc import _internal
from numba.np.ufunc.sigparse import parse_signature
from numba.np.ufunc.wrappers import _GufuncWrapper

_written = WeakKeyDictionary()  # the parts of each library, by function and types


def flags_of(fastmath=()) -> Flags:
    """How functions are compiled: nothing but the kernel's loop calls them."""
    flags = Flags()
    flags.nrt, flags.error_model, flags.fastmath = True, "numpy", fastmath or False
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    return flags


def part(function=None, *, fastmath=()):
    """This function for kernels and other parts."""
    if function is None:
        return lambda f: part(f, fastmath=fastmath)
    assert function.__closure__ is None, "kernels on disk are found by their names alone"

    def define(typingctx, *arguments):
        given = tuple(types.unliteral(a) for a in arguments)
        state = _typed(typingctx, function, given, flags_of(fastmath))

        def write(context, builder, signature, values):
            made = _in_library_of_caller(context, function, given, state)
            return context.call_internal(builder, made, signature, values)

        return state.return_type(*given), write

    return callable_as(function, define)


def callable_as(function, define, names=()):
    """The intrinsic of Numba that `define` makes, with the name of this function, and with its
    parameters, for Numba asks for their number, or with these names."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    told = ["typingctx", *(names or inspect.signature(function).parameters)]
    define.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in told])
    define.__name__, define.__doc__ = function.__name__, function.__doc__
    return intrinsic(define)


def _typed(typingctx, function, arguments, flags):
    """The first half of Numba's work: all types are known, nothing is written yet."""
    state = CompilerBase(
        typingctx, cpu_target.target_context, None, arguments, None, flags, {}
    ).state
    state.func_id = FunctionIdentity.from_function(function)
    state.lifted, state.lifted_from = (), None
    with ConfigStack().enter(flags.copy()):
        ExtractByteCode().run_pass(state)
        DefaultPassBuilder.define_untyped_pipeline(state).run(state)
        DefaultPassBuilder.define_typed_pipeline(state).run(state)
        IRLegalization().run_pass(state)
    return state


def _in_library_of_caller(context, function, arguments, state):
    """Numba's description of the function, whose instructions this library has."""
    library = context.active_code_library
    parts = _written.setdefault(library, {})
    key = function, arguments
    if key not in parts:
        state.library = library
        with ConfigStack().enter(state.flags.copy()):
            NativeLowering().run_pass(state)
        parts[key], state.library = state.cr.fndesc, None
    return parts[key]


def seal(library, kernel) -> None:
    """Nothing outside this library calls its functions: LLVM drops what it has inlined, arguments
    that are not used, and branches that no call takes."""
    for made in _written.get(library, {}).values():
        library.get_function(made.llvm_func_name).linkage = "internal"
    library.get_function(kernel.llvm_func_name).linkage = "linkonce_odr"  # the loop is linked later


@global_compiler_lock
def compiled(function, text: str, signature: str) -> tuple[Any, bytes]:
    """The gufunc of this function for the types in `text`, and what `loaded` makes one of."""
    context, flags = cpu_target.target_context, flags_of()
    arguments, _ = sigutils.normalize_signature(text)
    context.refresh()
    library = context.codegen().create_library(function.__qualname__)
    library.enable_object_caching()
    with ConfigStack().enter(flags.copy()):
        made = compile_extra(
            cpu_target.typing_context, context, function, arguments, types.void, flags, {}, library
        )
        seal(library, made.fndesc)
        name = f"__gufunc__.{made.fndesc.mangled_name}"
        loop = _GufuncWrapper(function, made, *parse_signature(signature), False, False)
        loop._build_wrapper(library, name)  # compiles the library, as it links it to itself
    state = pickle.dumps((name, library.serialize_using_object_code()))
    return _gufunc(library, name, function, text, signature), state


@global_compiler_lock
def loaded(state: bytes, function, text: str, signature: str):
    """The gufunc that was compiled before, maybe by another process."""
    context = cpu_target.target_context
    name, code = pickle.loads(state)
    context.refresh()
    library = context.codegen().unserialize_library(code)
    return _gufunc(library, name, function, text, signature)


def _gufunc(library, name: str, function, text: str, signature: str):
    """NumPy's gufunc, which keeps the library alive."""
    arguments, _ = sigutils.normalize_signature(text)
    kinds = [as_dtype(a.dtype if isinstance(a, types.Array) else a).num for a in arguments]
    inputs, outputs = parse_signature(signature)
    return _internal.fromfunc(
        function.__name__, function.__doc__, [library.get_pointer_to_function(name)], [kinds],
        len(inputs), len(outputs), [None], [(library, None)], _internal.PyUFunc_None, signature,
        (),
    )  # fmt: skip
