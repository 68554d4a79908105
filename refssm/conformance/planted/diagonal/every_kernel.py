"""Mistakes in any kernel that has modes, coefficients and a step."""

import numpy as np

from refssm.conformance.planted.planting import Planting, of_each_result, of_result


def summed(v, E, *args):
    """Σ_n v_n E_nk in the type of the arguments."""
    return (v[..., None] * E).sum(-2).astype(np.result_type(*args))


def held(z):
    """φ₁(z) by expm1."""
    return np.where(z == 0, 1, np.expm1(z) / np.where(z == 0, 1, z))


def late(k):
    """The kernel one step late, K_{k−1}."""
    return np.concatenate([0 * k[..., :1], k[..., :-1]], axis=-1)


def real_part(x):
    """Re x in the type of x."""
    return x.real.astype(x.dtype)


def first_gradient(change):
    """The right gradients, but for the first, changed by a function of it and the arguments."""

    def vjp(right, dk, *args, **sizes):
        first, *others = right(dk, *args, **sizes)
        return change(first, *args).astype(first.dtype), *others

    return vjp


def more(g, term):
    """A gradient plus another term; twice the gradient if it was broadcast."""
    term = term if np.iscomplexobj(g) else term.real
    return (g + term).astype(g.dtype) if term.shape == g.shape else 2 * g


def _without(k, start):
    """The kernel with zeros from `start` on."""
    k = k.copy()
    k[..., start:] = 0
    return k


def planted(op, beyond=64, pairs=False):
    """The bugs of any kernel; in one of them nothing is written after `beyond` steps.

    A kernel of conjugate `pairs` is real: its real part and its conjugate are right.
    """
    p = Planting(op, "float32")
    of_modes, (first, *_) = [name for name in op.inputs if name != "dt"], op.inputs
    p.usual()
    p.plant(
        ("last_mode", "the last mode of several left out",
         dict.fromkeys(of_modes, lambda a: a[..., : max(1, a.shape[-1] - 1)])),
        ("mode_tail", "modes beyond a multiple of 32 left out",
         dict.fromkeys(of_modes, lambda a: a[..., : a.shape[-1] // 32 * 32 or a.shape[-1]])),
        ("last_step", "the last step unwritten", of_result(lambda k: _without(k, -1))),
        ("tail_unwritten", f"nothing written beyond {beyond}",
         of_result(lambda k: _without(k, beyond))),
        ("reversed", "time backwards", of_result(lambda k: k[..., ::-1].copy())),
        ("doubled", "the factor 2 of conjugate pairs", of_result(lambda k: 2 * k)),
    )  # fmt: skip
    if not pairs:
        p.plant(
            ("real_part", "only the real part kept", of_result(real_part)),
            ("conjugated", "every argument conjugated", dict.fromkeys(op.inputs, np.conj)),
            by="value[complex64]",
        )
    p.plant(
        ("last_step_dropped", "the last step left out", {"dk": lambda dk: _without(dk, -1)}),
        ("doubled", "the factor 2 once more", {"dk": lambda dk: 2 * dk}),
        ("first_negated", f"d{first} with the other sign", {first: np.negative}),
        by="gradient",
    )
    p.plant(
        ("as_jax", "the conjugate convention", of_each_result(np.conj)),
        ("not_conjugated", "the arguments for their conjugates",
         lambda right, dk, *args, **sizes: right(dk, *map(np.conj, args), **sizes)),
        by="gradient[complex64]",
    )  # fmt: skip
    return p
