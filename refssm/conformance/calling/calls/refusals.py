"""Does a call that raised refuse a type, or is it an error? The texts of exceptions tell."""

import re

from refssm.conformance.calling.one_call import Outcome

# exceptions that show a mistake in the code, not a refused type
MISTAKES = ("IndexError", "NameError", "RecursionError", "UnboundLocalError", "ZeroDivisionError")
OF_DEVICE = ("ran out of the device's memory", "launched a kernel that failed")
FAULTS = ("ended with", *OF_DEVICE)
# exceptions of kernels, by their names: refssm_gpu's host build, compilers, CuPy, PyTorch, Numba
OF_KERNELS = ("HostError", "CompileError", "CompileException", "NVRTCError", "AcceleratorError")
OF_KERNELS += ("CUDARuntimeError", "CUDADriverError", "CudaAPIError")
# and by the words of CUDA's messages, which every framework passes on
WORDS = re.compile(
    r"cuda error|cudaError|CUDA_ERROR_|illegal (memory access|address|instruction)"
    r"|misaligned address|launch fail|device-side assert",
    re.IGNORECASE,
)
# so say cuBLAS and cuDNN of a type that they, or this card, have no product for
LACKS = re.compile(r"(NOT_SUPPORTED|ARCH_MISMATCH|ErrorNotSupported)\b|operation not supported")


def refuses(outcome: Outcome) -> bool:
    """True if the call raised as libraries do for a type that they do not support.

    Exceptions of `MISTAKES`, an exit code of a program, a kernel that failed or did not compile,
    and what a device lacks are errors; the checks will report them.
    """
    message = outcome.message
    kind = message.removeprefix("raised ").partition(":")[0].split(" (")[0]
    failed = kind in OF_KERNELS or WORDS.search(message)
    failed = failed and not LACKS.search(message)
    stumbled = kind in MISTAKES or message.startswith(FAULTS) or failed
    return outcome.status == "raised" and not stumbled
