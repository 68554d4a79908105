"""Numba kernels of Cauchy sums: a thread has one node, a block tiles of poles in shared memory.

    k_l = Σ_n v_n / (z_l − w_n)

The gradients of `z` are sums over poles in the same form; those of `v` and `w` are sums over nodes,
with one pole a thread. Each sum has one order, whatever the grid.
"""

from gpu.numba_cuda.batch import Batch, power_of_two
from gpu.numba_cuda.field import cuda, field_of, int64, smaller
from gpu.numba_cuda.launch import THREADS, NumbaKernel

from refssm.cauchy import CAUCHY_KERNEL
from refssm_gpu._launching.arrays import blocks, unbroadcast_each
from refssm_gpu._launching.checked import mirror


def cauchy_sums(field):
    """k_l = Σ_n v_n / (z_l − w_n)."""
    E, quotient = field.element, field.quotient

    def kernel(v, v_of, w, w_of, z, z_of, k):
        residues, poles = cuda.shared.array(THREADS, E), cuda.shared.array(THREADS, E)
        t, width, block = cuda.threadIdx.x, cuda.blockDim.x, int64(cuda.blockIdx.x)
        strips = (k.shape[1] + width - 1) // width
        row, l = block // strips, block % strips * width + t
        node, total, n = E(1), E(0), v.shape[1]
        if l < k.shape[1]:
            node = z[z_of[row], l]
        for tile in range(0, n, width):
            if tile + t < n:
                residues[t], poles[t] = v[v_of[row], tile + t], w[w_of[row], tile + t]
            cuda.syncthreads()
            if l < k.shape[1]:
                for j in range(smaller(width, n - tile)):
                    total += quotient(residues[j], node - poles[j])
            cuda.syncthreads()
        if l < k.shape[1]:
            k[row, l] = total

    return kernel


def cauchy_node_gradients(field):
    """dz_l = −dk_l Σ_n (v_n R_ln²)*, R = 1/(z − w)."""
    E, quotient = field.element, field.quotient

    def kernel(dk, v, v_of, w, w_of, z, z_of, dz):
        residues, poles = cuda.shared.array(THREADS, E), cuda.shared.array(THREADS, E)
        t, width, block = cuda.threadIdx.x, cuda.blockDim.x, int64(cuda.blockIdx.x)
        strips = (dk.shape[1] + width - 1) // width
        row, l = block // strips, block % strips * width + t
        node, total, n = E(1), E(0), v.shape[1]
        if l < dk.shape[1]:
            node = z[z_of[row], l]
        for tile in range(0, n, width):
            if tile + t < n:
                residues[t], poles[t] = v[v_of[row], tile + t], w[w_of[row], tile + t]
            cuda.syncthreads()
            if l < dk.shape[1]:
                for j in range(smaller(width, n - tile)):
                    R = quotient(E(1), node - poles[j])
                    total += residues[j] * R * R
            cuda.syncthreads()
        if l < dk.shape[1]:
            dz[row, l] = -dk[row, l] * total.conjugate()

    return kernel


def cauchy_pole_gradients(field):
    """dv_n = Σ_l dk_l R_ln*, dw_n = Σ_l dk_l (v_n R_ln²)*."""
    E, quotient = field.element, field.quotient

    def kernel(dk, v, v_of, w, w_of, z, z_of, dv, dw):
        cotangents, nodes = cuda.shared.array(THREADS, E), cuda.shared.array(THREADS, E)
        t, width, block = cuda.threadIdx.x, cuda.blockDim.x, int64(cuda.blockIdx.x)
        strips = (dv.shape[1] + width - 1) // width
        row, n = block // strips, block % strips * width + t
        residue, pole, first, second, l = E(0), E(0), E(0), E(0), dk.shape[1]
        if n < dv.shape[1]:
            residue, pole = v[v_of[row], n], w[w_of[row], n]
        for tile in range(0, l, width):
            if tile + t < l:
                cotangents[t], nodes[t] = dk[row, tile + t], z[z_of[row], tile + t]
            cuda.syncthreads()
            if n < dv.shape[1]:
                for j in range(smaller(width, l - tile)):
                    R = quotient(E(1), nodes[j] - pole)
                    first += cotangents[j] * R.conjugate()
                    second += cotangents[j] * (residue * R * R).conjugate()
            cuda.syncthreads()
        if n < dv.shape[1]:
            dv[row, n], dw[row, n] = first, second

    return kernel


SUMS = NumbaKernel(cauchy_sums, "e2 i1 e2 i1 e2 i1 e2")
NODES = NumbaKernel(cauchy_node_gradients, "e2 e2 i1 e2 i1 e2 i1 e2")
POLES = NumbaKernel(cauchy_pole_gradients, "e2 e2 i1 e2 i1 e2 i1 e2 e2")


def _shape(rows: int, size: int) -> tuple[tuple[int], tuple[int]]:
    """The grid and the block: as many threads as there are results, in whole warps."""
    width = max(32, power_of_two(size, THREADS))
    return (rows * blocks(size, width),), (width,)


def _given(batch, field, arrays):
    """The rows and tables of v, w and z."""
    return [x for array in arrays for x in batch.given(array, 1, field.name)]


@mirror(CAUCHY_KERNEL)
def cauchy_kernel(v, w, z):
    batch, field = Batch((v, w, z), (1, 1, 1)), field_of(v, w, z)
    k = batch.new(z.shape[-1:], field.name)
    SUMS(field, *_shape(*k.shape), *_given(batch, field, (v, w, z)), k)
    return batch.unfolded(k)


@mirror(CAUCHY_KERNEL)
def cauchy_kernel_vjp(dk, v, w, z):
    batch, field = Batch((dk, v, w, z), (1, 1, 1, 1)), field_of(dk, v, w, z)
    given = batch.given(dk, 1, field.name)[0], *_given(batch, field, (v, w, z))
    dv, dw, dz = (batch.new(x.shape[-1:], field.name) for x in (v, w, z))
    POLES(field, *_shape(*dv.shape), *given, dv, dw)
    NODES(field, *_shape(*dz.shape), *given, dz)
    return unbroadcast_each(tuple(map(batch.unfolded, (dv, dw, dz))), (v, w, z))
