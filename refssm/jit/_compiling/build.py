"""A gufunc as one piece of machine code.

Numba compiles a function for NumPy in layers, each of which contains the ones below: every helper
function, the function, and the loop over the batch. Each layer is optimized and translated anew, so
what lies three layers deep is compiled four times. Here the function, its parts (`parts.py`) and
the loop are put into one library, which is compiled once.
"""

# pyright: reportAttributeAccessIssue=false, reportPrivateImportUsage=false
# pyright: reportArgumentType=false
# (Numba makes attributes when it is imported; pyright does not see them)

import pickle
from typing import Any

from numba import types
from numba.core import sigutils
from numba.core.compiler import compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.np.numpy_support import as_dtype
from numba.np.ufunc import _internal
from numba.np.ufunc.sigparse import parse_signature
from numba.np.ufunc.wrappers import _GufuncWrapper

from refssm.jit._compiling.parts import flags_of, seal


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
