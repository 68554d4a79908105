"""CuPy mirrors of refssm.scan.linear and .packed: one launch for each direction."""

from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM, LINEAR_SCAN_PACKED, LINEAR_STEP
from refssm_gpu._launching.arrays import common, unbroadcast_each
from refssm_gpu._launching.checked import WITH_HALVES, mirror
from refssm_gpu._parts.recurrence import scan, scan_back


@mirror(LINEAR_SCAN, WITH_HALVES)
def linear_scan(a, b):
    """Halves are computed in single precision."""
    return scan(a, b)


@mirror(LINEAR_SCAN, WITH_HALVES)
def linear_scan_vjp(dx, a, b):
    da, db, _ = scan_back(dx, a, scan(a, b))
    return unbroadcast_each((da, db), (a, b))


@mirror(LINEAR_SCAN_FROM, WITH_HALVES)
def linear_scan_from(a, b, x0):
    return scan(a, b, x0, at_rest=False)


@mirror(LINEAR_SCAN_FROM, WITH_HALVES)
def linear_scan_from_vjp(dx, a, b, x0):
    x = scan(a, b, x0, at_rest=False)
    back = scan_back(dx, a, x, x0, at_rest=False)
    da, db, dx0 = unbroadcast_each(back, (a, b, x0))
    return da, db, dx0.astype(x0.dtype, copy=False)  # of halves it was single precision


@mirror(LINEAR_SCAN_PACKED, WITH_HALVES)
def linear_scan_packed(a, b, resets):
    return scan(a, b, resets=resets)


@mirror(LINEAR_SCAN_PACKED, WITH_HALVES)
def linear_scan_packed_vjp(dx, a, b, resets):
    da, db, _ = scan_back(dx, a, scan(a, b, resets=resets), resets=resets)
    return *unbroadcast_each((da, db), (a, b)), None


@mirror(LINEAR_STEP)
def linear_step(a, b, x):
    """One pass over the entries."""
    return a * x + b


@mirror(LINEAR_STEP)
def linear_step_vjp(dx_next, a, b, x):
    db = dx_next.astype(common(dx_next, a, b, x))
    return unbroadcast_each((x.conj() * db, db, a.conj() * db), (a, b, x))
