"""What goes wrong in any kernel given by modes, coefficients and a step."""

import numpy as np

from refssm.conformance.planted.planting_old import Planting


def powers(x, l):
    """e^{x_n k}."""
    return np.exp(x[..., None] * np.arange(l, dtype=np.finfo(x.dtype).dtype))


def summed(v, E, *args):
    """Σ_n v_n E_nk in the type of the arguments."""
    return (v[..., None] * E).sum(-2).astype(np.result_type(*args))


def held(z):
    """φ₁(z) by expm1."""
    return np.where(z == 0, 1, np.expm1(z) / np.where(z == 0, 1, z))


def plant_sums(p: Planting, modes: tuple[int, ...]) -> None:
    """Sums over modes and writing along time; `modes` says which arguments are along n."""
    right, both = p.right, p.forward

    def some(args, index):
        return [a[..., index(a.shape[-1])] if i in modes else a for i, a in enumerate(args)]

    both("last_mode", "the last mode of several left out")(
        lambda *args, l: right(*some(args, lambda n: slice(0, max(1, n - 1))), l=l)
    )
    both("mode_tail", "modes beyond a multiple of 32 left out")(
        lambda *args, l: right(*some(args, lambda n: slice(0, n // 32 * 32 or n)), l=l)
    )
    both("last_step", "the last step unwritten")(
        lambda *args, l: _written(right(*args, l=l), l - 1)
    )
    beyond = 4 if len(modes) == len(p.op.input_dims) == 2 else 64  # a shift is as long as n
    both("tail_unwritten", f"nothing written beyond {beyond}")(
        lambda *args, l: _written(right(*args, l=l), beyond)
    )
    both("reversed", "time backwards")(lambda *args, l: right(*args, l=l)[..., ::-1].copy())
    both("doubled", "the factor 2 of conjugate pairs")(lambda *args, l: 2 * right(*args, l=l))
    both("real_part", "only the real part kept", dtype="complex64")(
        lambda *args, l: right(*args, l=l).real.astype(np.result_type(*args))
    )
    both("conjugated", "every argument conjugated", dtype="complex64")(
        lambda *args, l: right(*(a.conj() for a in args), l=l)
    )


def _written(k, l):
    k[..., max(l, 0) :] = 0
    return k


def plant_gradients(p: Planting) -> None:
    """What goes wrong in any gradient."""
    right = p.right_vjp

    @p.gradient("as_jax", "the conjugate convention", "complex64")
    def _(*args, l):
        return tuple(g.conj() for g in right(*args, l=l))

    @p.gradient("not_conjugated", "the arguments for their conjugates", "complex64")
    def _(dk, *args, l):
        return right(dk, *(a.conj() for a in args), l=l)

    @p.gradient("last_step_dropped", "the last step left out")
    def _(dk, *args, l):
        return right(dk * (np.arange(l) < l - 1).astype(np.finfo(dk.dtype).dtype), *args, l=l)

    @p.gradient("doubled", "the factor 2 once more")
    def _(dk, *args, l):
        return right(2 * dk, *args, l=l)

    first = next(iter(p.op.inputs))
    p.changed_gradient("first_negated", f"d{first} with the other sign", **{first: _negated})


def _negated(g, _):
    return -g
