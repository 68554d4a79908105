"""Facts about mirrors at any size: three rows of `far` steps and columns, whole numbers throughout.

With FAR there are more than 2^31 numbers, so an offset of 32 bits reaches another place. At small
sizes the host build shows that the facts themselves are right.
"""

from refssm_gpu.convolution import short_convolution
from refssm_gpu.scan import linear_scan, linear_scan_vjp
from refssm_gpu.vandermonde import vandermonde_kernel_real

FAR = 2**15


def rows(xp, far, step=0):
    """Zeros of float16 but for one step, where row r has r + 1."""
    b = xp.zeros((3, far, far), xp.float16)
    b[:, step, :] = xp.arange(1, 4, dtype=xp.float16)[:, None]
    return b


def scan(xp, far):
    """Sums over time: each row keeps its first number."""
    x = linear_scan(xp.ones((far, far), xp.float16), rows(xp, far))
    return all(bool((x[r] == r + 1).all()) for r in range(3))


def scan_back(xp, far):
    """The last step's cotangent reaches every step; all states, and so da, are zero."""
    zeros = xp.broadcast_to(xp.zeros((1, far, far), xp.float16), (3, far, far))
    da, db = linear_scan_vjp(rows(xp, far, far - 1), xp.ones((far, far), xp.float16), zeros)
    return all(bool((db[r] == r + 1).all()) for r in range(3)) and not bool(da.any())


def convolution(xp, far):
    """Two taps of one: 1, 2, 2, … times r + 1 in the first channel, nothing in the others."""
    y = short_convolution(rows(xp, far), xp.ones(2, xp.float16))
    two = xp.where(xp.arange(far) == 0, 1, 2)
    first = all(bool((y[r, 0] == two * (r + 1)).all()) for r in range(3))
    return first and not any(bool(y[r, 1:].any()) for r in range(3))


def kernel(xp, far):
    """Modes that do not decay: 2 v at every step, with more than 2 far² steps in all."""
    v = xp.arange(1, 4 * far + 2, dtype=xp.float32)[:, None]
    k = vandermonde_kernel_real(v, xp.zeros((1, 1), xp.float32), l=far // 2)
    return k.size > 2 * far**2 and bool((k == 2 * v).all())


GIB = 2**30
FACTS = {scan: 20 * GIB, scan_back: 64 * GIB, convolution: 20 * GIB, kernel: 20 * GIB}  # with FAR
