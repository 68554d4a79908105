"""Gradient descent to a target system, with HOPE's parameters and with those of diagonal systems.

The loss is ½‖K − K*‖₂², the kernels scaled to ‖K*‖₂ = 1. HOPE's kernel is linear in h: the loss is
convex, and its Hessian Gᵢⱼ = ⟨sᵢ, sⱼ⟩ = (−ρ)^|i−j|, ρ = (1 − dt)/(1 + dt), has a spectrum between
dt and 1/dt: its condition number is 1 at dt = 1, and at most 1/dt². On the warped circle it is the
identity for every dt. The loss of a diagonal system, w = −e^r + iy, K = 2 Re Σ C e^(w t), is not
convex; its Hessian is approximated by JᵀJ, which is exact where the residual is 0.
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

import refssm
from refssm.experiments import systems
from refssm.experiments.systems import Table, told
from refssm.gallery.drawing import figure, styled, written

LENGTH, STEP = 512, 0.1  # steps of the kernels, and the step size of the diagonal systems
UNIT = 2.0**-53
MODES, MARKOV = 8, 32  # the same count of real numbers in both
STARTS = {"S4D-Inv": refssm.s4d_inv, "S4D-Legs": refssm.s4d_legs}


class KernelModel(NamedTuple):
    """A kernel as a function of real parameters, and the gradient of Σ dk_i K_i."""

    kernel: Callable[[np.ndarray], np.ndarray]
    gradient: Callable[[np.ndarray, np.ndarray], np.ndarray]


class Descent(NamedTuple):
    """‖K − K*‖²/‖K*‖² after some numbers of steps; condition numbers at the start and the end."""

    errors: dict[int, float]
    condition: tuple[float, float]


class Converged(NamedTuple):
    """Descents by (target, model), HOPE's least possible errors, condition numbers by dt."""

    marks: tuple[int, ...]
    descents: dict[tuple[str, str], Descent]
    least: dict[tuple[str, str], float]
    conditions: dict[float, float]


def measured(*, seed, quick=False, track=iter) -> Converged:
    """Run every model towards every target."""
    steps = [d * 10**k for k in range(4) for d in (1, 2, 5)]
    marks = tuple(s for s in steps if s <= (100 if quick else 5000))
    rng = np.random.default_rng(seed)
    targets = {"diagonal": diagonal().kernel(_random_modes(rng)), "HOPE": _random_hope(rng)}
    targets = {name: k / np.linalg.norm(k) for name, k in targets.items()}
    descents, least = {}, {}
    for target, name in track([*product(targets, (*STARTS, "HOPE, dt = 1", "HOPE, dt = 0.1"))]):
        k = targets[target]
        if name in STARTS:
            start = _at(STARTS[name](n=MODES), systems.normal(rng, MODES))
            descents[target, name] = descend(diagonal(), start, k, marks)
        else:
            model = hope(float(name.split("= ")[1]))
            descents[target, name] = descend(model, np.zeros(MARKOV), k, marks)
            least[target, name] = _least(model, k)
    conditions = {dt: hope_condition(dt) for dt in ((1.0, 0.1) if quick else (1.0, 0.3, 0.1, 0.03))}
    return Converged(marks, descents, least, conditions)


def diagonal() -> KernelModel:
    """Parameters r, y, Re C, Im C: w = −e^r + iy."""

    def modes(p):
        r, y, real, imaginary = p.reshape(4, -1)
        return -np.exp(r) + 1j * y, real + 1j * imaginary

    def kernel(p):
        w, C = modes(p)
        return 2 * refssm.diagonal_kernel_zoh(w, np.ones(len(w)), C, STEP, l=LENGTH).real

    def gradient(dk, p):
        w, C = modes(p)
        dw, _, dC, _ = refssm.diagonal_kernel_zoh_vjp(
            2 * dk + 0j, w, np.ones(len(w)), C, STEP, l=LENGTH
        )
        return np.concatenate([np.real(dw) * w.real, np.imag(dw), np.real(dC), np.imag(dC)])

    return KernelModel(kernel, gradient)


def hope(dt) -> KernelModel:
    """Parameters h. The kernel is linear in h, so its columns are computed once."""
    columns = refssm.hope_kernel(np.eye(MARKOV), dt, l=LENGTH)
    return KernelModel(lambda h: h @ columns, lambda dk, h: columns @ dk)


def jacobian(model, p) -> np.ndarray:
    """∂K_i/∂p_j."""
    return np.stack([model.gradient(e, p) for e in np.eye(LENGTH)])


def condition(model, p) -> float:
    """Condition number of JᵀJ; infinite if J does not have full rank."""
    sigma = np.linalg.svd(jacobian(model, p), compute_uv=False)
    return float(sigma[0] / sigma[-1]) ** 2 if sigma[-1] else np.inf


def descend(model, p, target, marks) -> Descent:
    """Steps −t g: t is halved until the loss falls by t/2 ‖g‖²; the next step starts with 3/2 t.

    The test allows for rounding errors of the losses. The descent ends if no step that changes the
    parameters lowers the loss.
    """
    first, rate, errors, ended = condition(model, p), 1.0, {}, False
    k = model.kernel(p)
    for step in range(1, marks[-1] + 1):
        g = model.gradient(k - target, p)
        while not ended:
            moved, rate = p - rate * g, rate / 2
            lower = model.kernel(moved)
            fall = _loss(k, target) - _loss(lower, target)
            rounded = LENGTH * UNIT * _loss(k, target)
            if fall > 0 and fall >= rate * (g @ g) - rounded:
                p, k, rate = moved, lower, 3 * rate
                break
            ended = bool((moved == p).all())
        if step in marks:
            errors[step] = 2 * _loss(k, target)
    return Descent(errors, (first, condition(model, p)))


def hope_gram(dt, n) -> np.ndarray:
    """Gᵢⱼ = (−ρ)^|i−j| = ((dt − 1)/(dt + 1))^|i−j| of `n` stages: products of infinite kernels."""
    i = np.arange(n)
    return ((dt - 1) / (dt + 1)) ** np.abs(i[:, None] - i)


def hope_condition(dt) -> float:
    """Condition number of `hope_gram`."""
    return float(np.linalg.cond(hope_gram(dt, MARKOV)))


def _loss(k, target):
    return ((k - target) ** 2).sum() / 2


def _least(model, target):
    """The least loss of any h: least squares."""
    columns = jacobian(model, np.zeros(MARKOV))
    return 2 * _loss(columns @ np.linalg.lstsq(columns, target)[0], target)


def _at(w, C) -> np.ndarray:
    return np.concatenate([np.log(-w.real), w.imag, C.real, C.imag])


def _random_modes(rng):
    """Modes that decay within 0.5 to 8 units of time, with frequencies up to 8."""
    w = -np.exp(rng.uniform(np.log(0.125), np.log(2), MODES)) + 8j * rng.random(MODES)
    return _at(w, systems.normal(rng, MODES))


def _random_hope(rng):
    """Random Markov parameters, at dt = 0.1."""
    return refssm.hope_kernel(rng.standard_normal(MARKOV), 0.1, l=LENGTH)


def tables(result: Converged) -> list[Table]:
    """Errors by number of steps; condition numbers."""
    rows, shown = [], [m for m in result.marks if m in (1, 10, 100, 1000, result.marks[-1])]
    for (target, name), d in result.descents.items():
        ends = (told(c) for c in d.condition)
        least = told(result.least[target, name]) if (target, name) in result.least else ""
        errors = (told(d.errors[m]) for m in shown)
        rows.append((target, name, *ends, *errors, least))
    steps = (f"{m} steps" for m in shown)
    columns = ("target", "model", "cond. at start", "at end", *steps, "least")
    of_hope = [(f"{dt:g}", told(c), told(1 / dt**2)) for dt, c in result.conditions.items()]
    return [
        Table(f"‖K − K*‖²/‖K*‖², {MARKOV} real parameters", columns, rows),
        Table("HOPE: condition of the Hessian", ("dt", f"n = {MARKOV}", "bound 1/dt²"), of_hope),
    ]


def draw(output: Path, result: Converged) -> Path:
    """Errors against steps, one panel per target."""
    with styled():
        made, axes = figure(1, 2, (8.0, 4.0))
        for axis, target in zip(axes[0], ("diagonal", "HOPE"), strict=True):
            for (of, name), d in result.descents.items():
                if of == target:
                    axis.loglog([*d.errors], [*d.errors.values()], ".-", label=name)
            axis.set_title(f"target: {target}")
            axis.set_xlabel("steps of gradient descent")
        axes[0, 0].set_ylabel("‖K − K*‖² / ‖K*‖²")
        axes[0, 0].legend(frameon=False)
        return written(made, output)
