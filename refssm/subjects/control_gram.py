# pyright: reportMissingImports=false
"""control.gram, of continuous and discrete systems, and control.hankel_singular_values.

They call slycot, for one real system in double precision. The gramians of a discrete system do not
depend on whether its recurrence starts with x_0 or x_1.
"""

from importlib.util import find_spec

import control
import numpy as np

from refssm.testing import implements

DOUBLE = ("float64",)


def _system(A, B, C, *step):
    """A control system; continuous if no step is given."""
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
    """gram(…) of a discrete system."""
    return _gramians(_system(A, B, C, True))


@implements("hankel_singular_values", dtypes=DOUBLE)
def hankel_singular_values(A, B, C):
    """hankel_singular_values, also called hsvd."""
    return control.hankel_singular_values(_system(A, B, C))
