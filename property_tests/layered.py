"""Small layers with random parameters and signals, and how far right programs may differ.

What is compared is φ = Re⟨dy, y⟩ for a random dy. A stable program of N roundings one after another
returns the exact result for inputs that are off by N u, rounded N times [higham2002accuracy, §1.5].
So it is off by at most N u S, S = Σ|dy y| + Σ|x ∂φ/∂x| over all inputs x. Each of l steps
multiplies matrices no longer than the longest axis and adds ten roundings of elementary functions;
four such products lie outside of the steps.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from strategies import laws

import refssm
from refssm.layers import Layer, operators
from refssm.layers.catalog import LAYERS
from refssm.layers.s4 import S4_LAYER
from refssm.layers.s4d import S4D_LAYER


def started(layer, **options):
    """The layer with other options of its `init`; n is even, as Fourier's measure needs."""

    def init(rng, *, h, n=layer.sizes["n"]):
        return layer.init(rng, h=h, n=2 * n, **options)

    return replace(layer, name="-".join([layer.name, *options.values()]), init=init)


def gapped(layer):
    """A layer with gaps as a layer of one signal, which gives the gaps too: g = 1 + u_0², so that
    laws of a signal hold for both. Other layers stay as they are."""
    if not layer.beside:
        return layer

    def gaps(u):
        return 1 + u[..., 0] ** 2

    def run(ops, q, u):
        y, back = layer.run(ops, q, u, gaps(u))

        def pulled(dy):
            dq, du, dgaps = back(dy)
            du[..., 0] += 2 * u[..., 0] * dgaps
            return dq, du

        return y, pulled

    def stateful(ops, p, u, state):
        return layer.stateful(ops, p, u, gaps(u), state)

    return replace(layer, run=run, stateful=stateful, beside={})


# what the laws are about: every layer, and the options of `init` that change shapes or kinds
DRAWN = (
    *map(gapped, LAYERS),
    *(started(S4_LAYER, measure=name) for name in ("legt", "lagt", "fourier")),
    *(started(S4D_LAYER, poles=name) for name in ("inv", "quad", "real", "legs")),
)
OPS = {"reference": refssm, "jit": operators("jit")}
U = 2.0**-53
few = settings(laws, max_examples=4)
CAUSAL = [layer for layer in DRAWN if layer.causal]  # laws of states are about these
each_layer = pytest.mark.parametrize("layer", DRAWN, ids=str)
each_causal_layer = pytest.mark.parametrize("layer", CAUSAL, ids=str)
each_role = pytest.mark.parametrize("role", OPS)


@dataclass(frozen=True, eq=False)
class Example:
    """A layer's parameters, a signal, and directions, from one seed."""

    layer: Layer
    sizes: dict
    h: int
    batch: tuple
    l: int
    seed: int

    def __repr__(self):
        return f"{self.layer} {self.sizes} h={self.h} l={self.l} {self.batch} seed={self.seed}"

    def rng(self, stream):
        return np.random.default_rng([self.seed, stream])

    @property
    def parameters(self):
        """Near what the layer starts from, but no number is 0 or 1 any more."""
        rng = self.rng(0)
        p = self.layer.init(rng, h=self.h, **self.sizes)
        return p.map(lambda x: x + 0.1 * like(rng, x))

    @property
    def signal(self):
        return self.rng(1).standard_normal((*self.batch, self.l, self.h))

    def roundings(self, p):
        """N, of the longest chain."""
        longest = max(max(a.shape, default=1) for a in [*p.arrays().values(), self.signal])
        return (self.l + 4) * (longest + 10)


@st.composite
def examples(draw, layer):
    sizes = {name: draw(st.integers(1, min(4, most))) for name, most in layer.sizes.items()}
    batch = draw(st.sampled_from([(), (2,), (2, 1)]))
    h, l = draw(st.integers(1, 3)), draw(st.integers(1, 7))
    return Example(layer, sizes, h, batch, l, draw(st.integers(0, 2**32 - 1)))


def like(rng, x):
    """Normal numbers of the shape and the kind of x."""
    drawn = rng.standard_normal((2, *x.shape))
    return drawn[0] + 1j * drawn[1] if np.iscomplexobj(x) else drawn[0]


def inner(a, b):
    """Re⟨a, b⟩, in long double."""
    return (np.conj(a).astype(np.result_type(a, np.longdouble)) * b).real.sum()


def size(dy, y, gradients, inputs):
    """S."""
    terms = zip(gradients, inputs, strict=True)
    return float(np.abs(dy * y).sum() + sum(np.abs(g * x).sum() for g, x in terms))


def inputs(p, u):
    return [*p.arrays().values(), u]


def gradients(layer, ops, dy, p, u):
    of_p, of_u = layer.vjp(ops, dy, p, u)
    return inputs(of_p, of_u)


FIXED = {layer.name: {name: min(3, most) for name, most in layer.sizes.items()} for layer in DRAWN}


def fixed(layer):
    return Example(layer, FIXED[layer.name], 2, (2,), 6, 0)
