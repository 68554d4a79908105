"""AdamW, clipping and the cosine schedule: updates of named parameters from named gradients.

Complex parameters are pairs of real ones. The state is arrays only, so that a checkpoint holds it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class ParameterGroup:
    """What AdamW does to one kind of parameter."""

    rate: float = 1.0  # factor of the learning rate
    decay: bool = True  # whether weight decay applies


WEIGHTS = ParameterGroup()
GROUPS = {
    "weights": WEIGHTS,
    "system": ParameterGroup(rate=0.25, decay=False),
    "plain": ParameterGroup(decay=False),
    "fixed": ParameterGroup(rate=0.0, decay=False),  # constants of a layer
}


@dataclass(frozen=True)
class AdamW:
    """Adam with decoupled weight decay [loshchilov2019adamw]:

    m ← β₁ m + (1 − β₁) g,  v ← β₂ v + (1 − β₂) g²,
    p ← p − η (m̂/(√v̂ + ε) + λ p),  m̂ = m/(1 − β₁ᵗ),  v̂ = v/(1 − β₂ᵗ).
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    decay: float = 0.01
    groups: Mapping[str, ParameterGroup] = field(default_factory=dict)  # by name of the parameter

    def start(self, parameters: Arrays) -> dict[str, np.ndarray]:
        """Zero moments: `m.<name>` and `v.<name>`."""
        return {f"{k}.{name}": np.zeros_like(p) for name, p in parameters.items() for k in "mv"}

    def update(self, parameters: Arrays, gradients: Arrays, state: Arrays, step: int, rate: float):
        """Parameters and state after step number `step`, counted from 1, with this rate."""
        new, moments = {}, {}
        for name, p in parameters.items():
            group = self.groups.get(name, WEIGHTS)
            m, v = (state[f"{k}.{name}"] for k in "mv")
            new[name], m, v = self._moved(p, gradients[name], m, v, step, rate, group)
            moments |= {f"m.{name}": m, f"v.{name}": v}
        return new, moments

    def _moved(self, p, g, m, v, step: int, rate: float, group: ParameterGroup):
        """One parameter and its moments."""
        p_, g_, m_, v_ = (_reals(x) for x in (p, g.astype(p.dtype), m, v))
        kind = p_.dtype.type
        m_ = kind(self.beta1) * m_ + kind(1 - self.beta1) * g_
        v_ = kind(self.beta2) * v_ + kind(1 - self.beta2) * (g_ * g_)
        first, second = kind(1 - self.beta1**step), kind(1 - self.beta2**step)
        direction = (m_ / first) / (np.sqrt(v_ / second) + kind(self.epsilon))
        if group.decay:
            direction = direction + kind(self.decay) * p_
        p_ = p_ - kind(rate * group.rate) * direction
        return tuple(x.view(p.dtype).reshape(p.shape) for x in (p_, m_, v_))


def _reals(x: np.ndarray) -> np.ndarray:
    """Real and imaginary parts as a vector of real numbers."""
    flat = x.ravel()  # in one piece, also on a card
    return flat.view(np.finfo(flat.dtype).dtype)


def norm(gradients: Arrays) -> float:
    """√Σ |g|² over all gradients, in double precision."""
    squares = (float(np.vdot(g, g).real) if g.size else 0.0 for g in map(_wide, gradients.values()))
    return math.sqrt(math.fsum(squares))


def _wide(g: np.ndarray) -> np.ndarray:
    return g.astype(np.result_type(g, np.float64)).ravel()


def clipped(gradients: Arrays, largest: float) -> dict[str, np.ndarray]:
    """All gradients times min(1, largest/norm)."""
    size = norm(gradients)
    factor = min(1.0, largest / size) if size else 1.0
    return {name: g * np.finfo(g.dtype).dtype.type(factor) for name, g in gradients.items()}


def cosine(step: int, *, rate: float, warm_up: int, steps: int, least: float = 0.0) -> float:
    """Linear from 0 to `rate` in `warm_up` steps, then half a cosine down to `least` at `steps`.

    Steps count from 1. Source: [loshchilov2017sgdr].
    """
    if step < warm_up:
        return rate * step / warm_up
    done = min(1.0, (step - warm_up) / max(1, steps - warm_up))
    return least + (rate - least) * 0.5 * (1 + math.cos(math.pi * done))
