# pyright: reportMissingImports=false
"""control.gram, of continuous and of discrete systems, and control.hankel_singular_values.

They are slycot's, of one real system in double precision. A discrete system's gramians do not
depend on where its recurrence begins.
"""

from importlib.util import find_spec

import control
import numpy as np

from refssm.testing import implements

DOUBLE = ("float64",)


def _system(A, B, C, *step):
    """A system as it is given, continuous without a step."""
    if find_spec("slycot") is None:
        raise NotImplementedError("control has no gramians without slycot: pip install slycot")
    if A.shape[-1] == 0:
        raise NotImplementedError("control has no systems without states")
    if not np.isfinite(A).all():
        raise NotImplementedError("control refuses matrices that are not finite")
    zero = np.zeros((1, 1))
    return control.ss(A, B[:, None], C[None], zero, *step, remove_useless_states=False)


def _gramians(system):
    return control.gram(system, "c"), control.gram(system, "o")


@implements("gramians", dtypes=DOUBLE)
def gramians(A, B, C):
    """gram(…, "c") and gram(…, "o")."""
    return _gramians(_system(A, B, C))


@implements("gramians_discrete", dtypes=DOUBLE)
def gramians_discrete(A, B, C):
    """The same of a system with steps."""
    return _gramians(_system(A, B, C, True))


@implements("hankel_singular_values", dtypes=DOUBLE)
def hankel_singular_values(A, B, C):
    """hankel_singular_values, known as hsvd."""
    return control.hankel_singular_values(_system(A, B, C))
