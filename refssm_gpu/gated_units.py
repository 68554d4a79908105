"""CuPy mirrors of refssm.gated_units: gates in array code, around the kernels of `linear_scan`."""

from refssm.gated_units.minimal_gated import MINIMAL_GATED
from refssm.gated_units.real_gated import REAL_GATED, UNSCALED_START
from refssm_gpu._algebra.activations import sigmoid, softplus
from refssm_gpu._launching.arrays import Array, namespace, unbroadcast_each
from refssm_gpu._launching.checked import mirror
from refssm_gpu.scan.linear import scan, scan_back


def _back_of_scan(dx: Array, a: Array, b: Array, x0, resets) -> tuple[Array, Array, Array]:
    """The cotangents of decays, inputs and x0."""
    x = scan(a, b, x0, resets, at_rest=x0 is None)
    return scan_back(dx, a, x, x0, resets, at_rest=x0 is None)


class _RealGated:
    """`run` and `back` of RG-LRU, with the root where a sequence begins or without."""

    def __init__(self, unscaled: bool):
        self.unscaled = unscaled

    def run(self, arguments, x0, resets):
        u, r, i, a_param = arguments
        a, root, _ = self._parts(r, a_param, x0, resets)
        return (scan(a, root * (i * u), x0, resets, at_rest=x0 is None),)

    def back(self, cotangents, arguments, x0, resets):
        u, r, i, a_param = arguments
        a, root, slope = self._parts(r, a_param, x0, resets)
        da, db, dx0 = _back_of_scan(cotangents[0], a, root * (i * u), x0, resets)
        through = -8 * (a * da + slope * (i * u) * db)
        rate = a_param[..., None, :]
        dparam = namespace(u).sum(r * sigmoid(rate) * through, axis=-2)
        gradients = root * i * db, softplus(rate) * through, root * u * db, dparam
        if x0 is None:
            return unbroadcast_each(gradients, arguments)
        return unbroadcast_each((*gradients, dx0), (*arguments, x0))

    def _parts(self, r, a_param, x0, resets):
        """a, √(1 − a²) and its derivative by log a."""
        xp = namespace(r)
        log_a = -8 * softplus(a_param[..., None, :]) * r
        a, root = xp.exp(log_a), xp.sqrt(-xp.expm1(2 * log_a))
        slope = -a * a / root
        if not self.unscaled:
            return a, root, slope
        first = (xp.arange(r.shape[-2]) == 0) & (x0 is None)
        first = (first if resets is None else first | (resets != 0))[..., None]
        one, zero = xp.ones_like(root), xp.zeros_like(root)
        return a, xp.where(first, one, root), xp.where(first, zero, slope)


def _minimal_parts(k: Array, h: Array) -> tuple[Array, Array, Array, Array]:
    """z, 1 − z, g(h) and its derivative."""
    xp, s = namespace(k), sigmoid(h)
    positive = h >= 0
    slope = xp.where(positive, xp.ones_like(h), s * sigmoid(-h))
    return sigmoid(k), sigmoid(-k), xp.where(positive, h + 0.5, s), slope


def _run_minimal(arguments, x0, resets):
    z, rest, g, _ = _minimal_parts(*arguments)
    return (scan(rest, z * g, x0, resets, at_rest=x0 is None),)


def _back_minimal(cotangents, arguments, x0, resets):
    z, rest, g, slope = _minimal_parts(*arguments)
    da, db, dx0 = _back_of_scan(cotangents[0], rest, z * g, x0, resets)
    gradients = z * rest * (g * db - da), z * db * slope
    if x0 is None:
        return unbroadcast_each(gradients, arguments)
    return unbroadcast_each((*gradients, dx0), (*arguments, x0))


_SCALED, _UNSCALED = _RealGated(unscaled=False), _RealGated(unscaled=True)
(
    (rg_lru, rg_lru_vjp),
    (rg_lru_from, rg_lru_from_vjp),
    (rg_lru_packed, rg_lru_packed_vjp),
    (rg_lru_packed_from, rg_lru_packed_from_vjp),
    (rg_lru_step, rg_lru_step_vjp),
) = REAL_GATED.mirrors(_SCALED.run, _SCALED.back, mirror)
(
    (rg_lru_unscaled_start, rg_lru_unscaled_start_vjp),
    (rg_lru_unscaled_start_packed, rg_lru_unscaled_start_packed_vjp),
) = UNSCALED_START.mirrors(_UNSCALED.run, _UNSCALED.back, mirror)
(
    (min_gru, min_gru_vjp),
    (min_gru_from, min_gru_from_vjp),
    (min_gru_packed, min_gru_packed_vjp),
    (min_gru_packed_from, min_gru_packed_from_vjp),
    (min_gru_step, min_gru_step_vjp),
) = MINIMAL_GATED.mirrors(_run_minimal, _back_minimal, mirror)
