"""A Numba kernel of the selective scan: a thread has one state of one channel, fused over time.

    x_k = e^{dt_k A} x_{k-1} + dt_k u_k B_k,    y_k = C_k · x_k

The states stay in registers. For a tile of steps each thread puts C_kn x_kn into shared memory;
after a barrier the threads of a channel add them, one step each. More states than threads are
computed in groups, whose sums are added to y. The gradients need more memory: they are array code
around the kernels of linear scans, with arrays of rows × l × n.
"""

from gpu.numba_cuda.batch import Batch, power_of_two
from gpu.numba_cuda.field import cuda, field_of, int64, smaller
from gpu.numba_cuda.launch import THREADS, NumbaKernel
from gpu.numba_cuda.scan import states_and_adjoint

from refssm.selective_scan import SELECTIVE_SCAN
from refssm_gpu._launching.arrays import blocks, namespace, unbroadcast_each
from refssm_gpu._launching.checked import mirror

STEPS = 16  # of a tile; 32 KiB of shared memory for complex128
TERMS = STEPS * THREADS


def selective_scan_forward(field):
    """y_k = Σ_n C_kn x_kn; a block has `blockDim.y` rows of `blockDim.x` states."""
    E, exponential = field.element, field.exponential

    def kernel(u, u_of, dt, dt_of, A, A_of, B, B_of, C, C_of, y):
        terms = cuda.shared.array(TERMS, E)
        s, width = cuda.threadIdx.x, cuda.blockDim.x
        base = cuda.threadIdx.y * STEPS * width
        row = int64(cuda.blockIdx.x) * cuda.blockDim.y + cuda.threadIdx.y
        rows, l = y.shape
        n = A.shape[1] if row < rows else 0
        for group in range(0, A.shape[1], width):
            i, state = group + s, E(0)
            for tile in range(0, l, STEPS):
                end = smaller(STEPS, l - tile)
                if i < n:
                    rate = A[A_of[row], i]
                    for k in range(end):
                        step, value = dt[dt_of[row], tile + k], u[u_of[row], tile + k]
                        drive = step * value * B[B_of[row], tile + k, i]
                        if tile + k > 0:
                            drive += exponential(step * rate) * state
                        state = drive
                        terms[base + k * width + s] = C[C_of[row], tile + k, i] * state
                cuda.syncthreads()
                for k in range(s, end if row < rows else 0, width):
                    total = y[row, tile + k] if group > 0 else E(0)
                    for j in range(smaller(width, n - group)):
                        total += terms[base + k * width + j]
                    y[row, tile + k] = total
                cuda.syncthreads()

    return kernel


FORWARD = NumbaKernel(selective_scan_forward, "e2 i1 r2 i1 e2 i1 e3 i1 e3 i1 e2")


def _shape(rows: int, n: int) -> tuple[tuple[int], tuple[int, int]]:
    """The grid, and the states and rows of a block."""
    width = power_of_two(n, THREADS)
    side = power_of_two(rows, THREADS // width)
    return (blocks(rows, side),), (width, side)


@mirror(SELECTIVE_SCAN)
def selective_scan(u, dt, A, B, C):
    arrays, cores = (u, dt, A, B, C), (1, 1, 1, 2, 2)
    batch, field = Batch(arrays, cores), field_of(*arrays)
    types = [str(field.real) if x is dt else field.name for x in arrays]
    y = batch.new(u.shape[-1:], field.name)
    if not A.shape[-1]:
        y[...] = 0
    given = (batch.given(*each) for each in zip(arrays, cores, types, strict=True))
    FORWARD(field, *_shape(batch.rows, A.shape[-1]), *(x for pair in given for x in pair), y)
    return batch.unfolded(y)


@mirror(SELECTIVE_SCAN)
def selective_scan_vjp(dy, u, dt, A, B, C):
    """Kernels of linear scans, and sums of whole arrays."""
    xp, step, drive = namespace(u), dt[..., None], (dt * u)[..., None]
    a = xp.exp(step * A[..., None, :])
    x, da, g = states_and_adjoint(C.conj() * dy[..., None], a, drive * B)
    e = a.conj() * da
    du = xp.sum((step * B).conj() * g, axis=-1)
    ddt = xp.sum((u[..., None] * B).conj() * g + A[..., None, :].conj() * e, axis=-1)
    dA = xp.sum(step * e, axis=-2)
    gradients = du, ddt, dA, drive.conj() * g, x.conj() * dy[..., None]
    return unbroadcast_each(gradients, (u, dt, A, B, C))
