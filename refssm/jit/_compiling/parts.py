"""Parts of kernels: functions compiled with the kernel that calls them.

    @part
    def halved(u, y): ...

Numba compiles what `njit` makes into a library of its own, with machine code of its own, and then
again in each library that uses it. A part is typed once, and its instructions are put into the
library of each kernel, once for all calls with the same types. Python cannot call it. Division by
zero is infinite or NaN, as in NumPy.
"""

# pyright: reportAttributeAccessIssue=false, reportPrivateImportUsage=false
# (Numba makes attributes when it is imported; pyright does not see them)

import inspect
from weakref import WeakKeyDictionary

from numba import types
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.extending import intrinsic
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import IRLegalization, NativeLowering
from numba.core.untyped_passes import ExtractByteCode

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

    own = inspect.signature(function).parameters
    context = inspect.Parameter("typingctx", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    define.__signature__ = inspect.Signature([context, *own.values()])
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
