"""Parts of kernels: functions compiled with the kernel that calls them.

    @part
    def halved(u, y): ...

Numba compiles what `njit` makes into a library of its own, with machine code of its own, and then
again in each library that uses it. A part is put into the library of the kernel, once for all calls
with the same types. It returns nothing, or the type given as `part(returns=types.float64)`.
"""

# pyright: reportAttributeAccessIssue=false, reportPrivateImportUsage=false
# (Numba makes attributes when it is imported; pyright does not see them)

import inspect
from weakref import WeakKeyDictionary

from numba import types
from numba.core.compiler import Flags, compile_extra
from numba.core.extending import intrinsic

_written = WeakKeyDictionary()  # the parts of each library, by function and types


def flags_of(fastmath=()) -> Flags:
    """How functions are compiled: division by zero is infinite, and only NumPy calls them."""
    flags = Flags()
    flags.nrt, flags.error_model, flags.fastmath = True, "numpy", fastmath or False
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    return flags


def part(function=None, *, returns=types.void, fastmath=()):
    """This function for kernels and other parts."""
    if function is None:
        return lambda f: part(f, returns=returns, fastmath=fastmath)

    def define(typingctx, *arguments):
        def write(context, builder, signature, values):
            made = _in_library_of_caller(function, context, typingctx, signature, fastmath)
            return context.call_internal(builder, made, signature, values)

        return returns(*(types.unliteral(a) for a in arguments)), write

    own = inspect.signature(function).parameters
    context = inspect.Parameter("typingctx", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    define.__signature__ = inspect.Signature([context, *own.values()])
    define.__name__, define.__doc__ = function.__name__, function.__doc__
    return intrinsic(define)


def _in_library_of_caller(function, context, typingctx, signature, fastmath):
    """Numba's description of the compiled function."""
    library = context.active_code_library
    parts = _written.setdefault(library, {})
    key = function, signature
    if key not in parts:
        parts[key] = compile_extra(
            typingctx, context, function, signature.args, signature.return_type,
            flags_of(fastmath), {}, library,
        ).fndesc  # fmt: skip
    return parts[key]


def seal(library, kernel) -> None:
    """Nothing outside this library calls its functions: LLVM drops what it has inlined, arguments
    that are not used, and branches that no call takes."""
    for made in _written.get(library, {}).values():
        library.get_function(made.llvm_func_name).linkage = "internal"
    library.get_function(kernel.llvm_func_name).linkage = "linkonce_odr"  # the loop is linked later
