"""CuPy mirrors of refssm.scan.linear and .packed: one launch for each direction."""

from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM, LINEAR_SCAN_PACKED, LINEAR_STEP
from refssm_gpu._launching.arrays import common, unbroadcast_each
from refssm_gpu._launching.checked import WITH_HALVES, checked, checked_vjp
from refssm_gpu._parts.recurrence import scan, scan_back


def linear_scan(a, b):
    """Mirror of refssm.linear_scan; halves are computed in single precision."""
    return scan(a, b)


def linear_scan_vjp(dx, a, b):
    """Mirror of refssm.linear_scan_vjp."""
    da, db, _ = scan_back(dx, a, scan(a, b))
    return unbroadcast_each((da, db), (a, b))


def linear_scan_from(a, b, x0):
    """Mirror of refssm.linear_scan_from."""
    return scan(a, b, x0, at_rest=False)


def linear_scan_from_vjp(dx, a, b, x0):
    """Mirror of refssm.linear_scan_from_vjp."""
    x = scan(a, b, x0, at_rest=False)
    back = scan_back(dx, a, x, x0, at_rest=False)
    da, db, dx0 = unbroadcast_each(back, (a, b, x0))
    return da, db, dx0.astype(x0.dtype, copy=False)  # of halves it was single precision


def linear_scan_packed(a, b, resets):
    """Mirror of refssm.linear_scan_packed."""
    return scan(a, b, resets=resets)


def linear_scan_packed_vjp(dx, a, b, resets):
    """Mirror of refssm.linear_scan_packed_vjp."""
    da, db, _ = scan_back(dx, a, scan(a, b, resets=resets), resets=resets)
    return *unbroadcast_each((da, db), (a, b)), None


def linear_step(a, b, x):
    """Mirror of refssm.linear_step: one pass over the entries."""
    return a * x + b


def linear_step_vjp(dx_next, a, b, x):
    """Mirror of refssm.linear_step_vjp."""
    db = dx_next.astype(common(dx_next, a, b, x))
    return unbroadcast_each((x.conj() * db, db, a.conj() * db), (a, b, x))


linear_scan_vjp = checked_vjp(LINEAR_SCAN, linear_scan_vjp, WITH_HALVES)
linear_scan = checked(LINEAR_SCAN, linear_scan, WITH_HALVES)
linear_scan_from_vjp = checked_vjp(LINEAR_SCAN_FROM, linear_scan_from_vjp, WITH_HALVES)
linear_scan_from = checked(LINEAR_SCAN_FROM, linear_scan_from, WITH_HALVES)
linear_scan_packed_vjp = checked_vjp(LINEAR_SCAN_PACKED, linear_scan_packed_vjp, WITH_HALVES)
linear_scan_packed = checked(LINEAR_SCAN_PACKED, linear_scan_packed, WITH_HALVES)
linear_step_vjp = checked_vjp(LINEAR_STEP, linear_step_vjp)
linear_step = checked(LINEAR_STEP, linear_step)
