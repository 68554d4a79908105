"""Building blocks of the planted bugs of gated units: parts of the formulas that a bug replaces.

A bug is `but_for(part=…)`, written once and planted in several operators; what it leaves out is
right. Parts are functions of the arguments as `Sequences`.
"""

import numpy as np

from refssm.activations import sigmoid, softplus
from refssm.conformance.planted.gated_units.forms import (
    Sequences,
    before,
    cotangent,
    gradients,
    scanned,
    sequences,
    shaped,
    starts_back,
    turned_back,
)


def same(x, *_):
    """No change."""
    return x


def log_decay(s: Sequences):
    """−8 softplus(a_param) r."""
    return -8 * softplus(s.a_param) * s.r


def root_of(log_a):
    """√(1 − a²)."""
    return np.sqrt(-np.expm1(2 * log_a))


def whole(s: Sequences):
    """True where the input has no root."""
    return (s.rest & s.unscaled)[..., None]


def gated_input(s: Sequences, log_a, root=root_of):
    """√(1 − a²) i u, or i u where a sequence begins so."""
    return np.where(whole(s), 1, root(log_a)) * (s.i * s.u)


def real_parts(s: Sequences, log_a=log_decay, decay=np.exp, added=gated_input):
    """The decays and inputs of RG-LRU."""
    logs = log_a(s)
    return decay(logs), added(s, logs)


def positive(h):
    """h + ½ if h ≥ 0, else σ(h)."""
    return np.where(h >= 0, h + 0.5, sigmoid(h)).astype(h.dtype)


def written(s: Sequences):
    """z."""
    return sigmoid(s.k)


def left(s: Sequences):
    """1 − z."""
    return sigmoid(-s.k)


def minimal_parts(s: Sequences, kept=left, open_=written, of=positive):
    """The decays and inputs of minGRU."""
    return kept(s), open_(s) * of(s.h)


def but_for(*, keep=same, carry=same, **parts):
    """A wrong program: a part of the formula, the kept state or what is carried is replaced."""

    def wrong(op):
        made = real_parts if "u" in op.inputs else minimal_parts

        def program(*arguments):
            s = sequences(op, arguments)
            with np.errstate(all="ignore"):
                x = scanned(*made(s, **parts), s, keep, carry)
            return shaped(op, x, arguments)

        return program

    return wrong


def over(program):
    """A wrong program of all arguments: program(s) -> x."""

    def wrong(op):
        def called(*arguments):
            with np.errstate(all="ignore"):
                return shaped(op, program(sequences(op, arguments)), arguments)

        return called

    return wrong


def in_form(op):
    """Turn such a wrong program into one of an operator; the right one is not used."""

    def adapt(wrong):
        program = wrong(op)
        return lambda right, *arguments: program(*arguments)

    return adapt


def _real_back(dx, s: Sequences, slope, carry):
    """The gradients of RG-LRU by name at full shape, and the decays with the cotangents."""
    log_a = log_decay(s)
    a, root = np.exp(log_a), np.where(whole(s), 1, root_of(log_a))
    x = scanned(a, gated_input(s, log_a), s)
    g = turned_back(dx, a, s, carry)
    slopes = np.where(whole(s), 0, slope(a, root_of(log_a)))
    through = -8 * (a * before(x, s) + slopes * (s.i * s.u)) * g
    found = {"u": root * s.i * g, "i": root * s.u * g, "r": softplus(s.a_param) * through}
    return {**found, "a_param": s.r * sigmoid(s.a_param) * through}, a, g


def slope_of(a, root):
    """The derivative of the root by log a."""
    return -a * a / root


def _minimal_back(dx, s: Sequences, slope, carry):
    """The gradients of minGRU by name, and the decays with the cotangents."""
    z, a, g_h = written(s), left(s), positive(s.h)
    x = scanned(a, z * g_h, s)
    g = turned_back(dx, a, s, carry)
    return {"k": z * a * (g_h - before(x, s)) * g, "h": z * slope(s.h) * g}, a, g


def slope_of_positive(h):
    """1 if h ≥ 0, else σ(h) σ(−h)."""
    return np.where(h >= 0, 1, sigmoid(h) * sigmoid(-h)).astype(h.dtype)


def adjoint(op, dx, arguments, slope=None, carry=same):
    """The right gradients by name, or with another slope, or another carry from step to step."""
    s, dx = sequences(op, arguments), cotangent(op, dx)
    real = "u" in op.inputs
    back = _real_back if real else _minimal_back
    found, a, g = back(dx, s, slope or (slope_of if real else slope_of_positive), carry)
    return found | {"x0": starts_back(op, a, g, s)}


def back_but_for(**parts):
    """A wrong VJP: `adjoint` with these parts."""
    return lambda op, dx, arguments: adjoint(op, dx, arguments, **parts)


def in_gradient_form(op):
    """Turn such a wrong VJP into one of an operator; the right one is not used."""

    def adapt(wrong):
        def vjp(right, dx, *arguments):
            with np.errstate(all="ignore"):
                return gradients(op, wrong(op, dx, arguments), arguments)

        return vjp

    return adapt
