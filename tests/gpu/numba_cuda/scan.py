"""Numba kernels of linear scans: a block has columns side by side and pieces of time.

    x_k = a_k x_{k-1} + b_k

Each thread runs through one piece of one column from zero, for its product of decays and its last
state. After a barrier each thread composes those of the pieces before its own, and runs through the
piece again from the true state, which it writes. The carry stays in registers in a loop over time.
The adjoint counts time from the end, and computes da from the states.
"""

from gpu.numba_cuda.batch import Batch, power_of_two
from gpu.numba_cuda.field import cuda, field_of, int64, smaller
from gpu.numba_cuda.launch import THREADS, NumbaKernel

from refssm.scan import LINEAR_SCAN
from refssm_gpu._launching.arrays import blocks, unbroadcast_each
from refssm_gpu._launching.checked import mirror

STEPS = 8  # of a piece
COLUMNS = 32  # side by side at most: a warp reads one row of memory


@cuda.jit(device=True)
def _composed(decays, ends, carry, first, place, piece):
    """The states before this thread's piece and after the last piece of the tile."""
    before, columns = carry, cuda.blockDim.x
    for p in range(cuda.blockDim.y):
        if p == piece:
            before = carry
        if first and p == 0:  # at rest: an infinite decay times zero would be NaN
            carry = ends[place]
        else:
            carry = decays[p * columns + place] * carry + ends[p * columns + place]
    return before, carry


def linear_scan_forward(field):
    """x_k = a_k x_{k-1} + b_k, x_0 = b_0."""
    E = field.element

    def kernel(a, a_of, b, b_of, x):
        decays, ends = cuda.shared.array(THREADS, E), cuda.shared.array(THREADS, E)
        c, piece = cuda.threadIdx.x, cuda.threadIdx.y
        slot = piece * cuda.blockDim.x + c
        rows, l, n = x.shape
        j = int64(cuda.blockIdx.x) * cuda.blockDim.x + c
        row, i, carry = j // n, j % n, E(0)
        if row < rows:
            a_row, b_row, size = a_of[row], b_of[row], l
        else:  # without a column it only meets the others at the barriers
            a_row, b_row, size = int64(0), int64(0), int64(0)
        for tile in range(0, l, cuda.blockDim.y * STEPS):
            start = tile + piece * STEPS
            end = smaller(start + STEPS, size)
            decay, state = E(1), E(0)
            for k in range(start, end):
                decay = a[a_row, k, i] * decay
                state = a[a_row, k, i] * state + b[b_row, k, i] if k > start else b[b_row, k, i]
            decays[slot], ends[slot] = decay, state
            cuda.syncthreads()
            state, carry = _composed(decays, ends, carry, tile == 0, c, piece)
            cuda.syncthreads()
            for k in range(start, end):
                state = a[a_row, k, i] * state + b[b_row, k, i] if k > 0 else b[b_row, k, i]
                x[row, k, i] = state

    return kernel


def linear_scan_adjoint(field):
    """g_k = dx_k + a_{k+1}* g_{k+1}, da_k = x_{k-1}* g_k, da_0 = 0."""
    E = field.element

    def kernel(dx, a, a_of, x, da, g):
        decays, ends = cuda.shared.array(THREADS, E), cuda.shared.array(THREADS, E)
        c, piece = cuda.threadIdx.x, cuda.threadIdx.y
        slot = piece * cuda.blockDim.x + c
        rows, l, n = dx.shape
        j = int64(cuda.blockIdx.x) * cuda.blockDim.x + c
        row, i, carry = j // n, j % n, E(0)
        if row < rows:
            a_row, size = a_of[row], l
        else:
            a_row, size = int64(0), int64(0)
        for tile in range(0, l, cuda.blockDim.y * STEPS):
            start = tile + piece * STEPS
            end = smaller(start + STEPS, size)
            decay, state = E(1), E(0)
            for t in range(start, end):  # t = l - k: a_{k+1} is at l - t + 1
                after = a[a_row, l - t, i].conjugate() if t > 0 else E(1)
                decay = after * decay
                state = (
                    after * state + dx[row, l - 1 - t, i] if t > start else dx[row, l - 1 - t, i]
                )
            decays[slot], ends[slot] = decay, state
            cuda.syncthreads()
            state, carry = _composed(decays, ends, carry, tile == 0, c, piece)
            cuda.syncthreads()
            for t in range(start, end):
                k = l - 1 - t
                if t > 0:
                    state = a[a_row, k + 1, i].conjugate() * state + dx[row, k, i]
                else:
                    state = dx[row, k, i]
                g[row, k, i] = state
                da[row, k, i] = x[row, k - 1, i].conjugate() * state if k > 0 else E(0)

    return kernel


FORWARD = NumbaKernel(linear_scan_forward, "e3 i1 e3 i1 e3")
ADJOINT = NumbaKernel(linear_scan_adjoint, "e3 e3 i1 e3 e3 e3")


def _shape(rows: int, l: int, n: int) -> tuple[tuple[int], tuple[int, int]]:
    """The grid, and the columns and pieces of a block."""
    columns = power_of_two(rows * n, COLUMNS)
    pieces = power_of_two(blocks(l, STEPS), THREADS // columns)
    return (blocks(rows * n, columns) if l else 0,), (columns, pieces)


def _scanned(batch, field, a, b):
    """The states of all rows."""
    x = batch.new(a.shape[-2:], field.name)
    given = (*batch.given(a, 2, field.name), *batch.given(b, 2, field.name))
    FORWARD(field, *_shape(*x.shape), *given, x)
    return x


@mirror(LINEAR_SCAN)
def linear_scan(a, b):
    batch = Batch((a, b), (2, 2))
    return batch.unfolded(_scanned(batch, field_of(a, b), a, b))


@mirror(LINEAR_SCAN)
def linear_scan_vjp(dx, a, b):
    _, da, g = states_and_adjoint(dx, a, b)
    return unbroadcast_each((da, g), (a, b))


def states_and_adjoint(dx, a, b):
    """x, and da and g of the adjoint, with all batch axes."""
    batch, field = Batch((dx, a, b), (2, 2, 2)), field_of(dx, a, b)
    x = _scanned(batch, field, a, b)
    da, g = (batch.new(x.shape[1:], field.name) for _ in range(2))
    cotangent, _ = batch.given(dx, 2, field.name)
    ADJOINT(field, *_shape(*x.shape), cotangent, *batch.given(a, 2, field.name), x, da, g)
    return tuple(map(batch.unfolded, (x, da, g)))
