"""Presets of Vandermonde kernels: x = dt w with the poles of S4D."""

from refssm import initial
from refssm.presets.diagonal import POLES, orders_of, residues
from refssm.presets.preset import of_orders


def _drawing(name):
    def draw(rng, sizes):
        n = sizes["n"]
        w, dt = initial.diagonal(name, n=n)["w"], initial.steps(rng, ())
        return {"v": residues(rng, name, n) * dt, "x": dt * w}

    return draw


OF_POLES = tuple(
    preset
    for name, words in POLES.items()
    for preset in of_orders(f"s4d-{name}", words, _drawing(name), orders_of(name))
)
PRESETS = {"vandermonde_kernel": OF_POLES, "vandermonde_kernel_real": OF_POLES}
