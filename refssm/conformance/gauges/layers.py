"""Error rules of layers: sigmoid functions, and transforms inside a chain of operators.

A sigmoid function is bounded by its largest slope within the error of its argument: at the argument
itself the slope may be far smaller. A transform of an argument with errors is linear, so these pass
through the exact sum as moduli; its own roundings are measured in norm, as by the contracts FFT and
SPECTRUM (`transforms.py`). Importing this module registers the rules.
"""

import numpy as np
from scipy.special import erf, expit

from refssm import activations
from refssm.conformance.gauges.linalg import TRANSFORMS, length_of
from refssm.conformance.gauges.rules import rule, structural
from refssm.conformance.gauges.tracked import (
    FUNCTIONS,
    UFUNCS,
    Tracked,
    flushed,
    jumped,
    lifted,
    met,
    modulus,
    moved,
    rounded,
    spread,
)
from refssm.convolution import CAUSAL_CONVOLUTION_DIRECT
from refssm.hope.kernel import kernel_spectrum
from refssm.layers._namespaces import cascade_response, convolution
from refssm.layers._parts.ssm import complexes, reals

LIBRARY = 4  # roundings of a library function


def sigmoid(function, slope):
    """The rule of a function whose slope falls with |x|: the largest slope within the error."""

    def apply(x):
        z = function(x.value)
        nearest = np.maximum(2 * np.abs(x.value)[..., None] - spread(x), 0)
        carried = np.where(x.errors == 0, 0, slope(nearest) * x.errors)  # avoids 0·∞
        return rounded(z, LIBRARY, carried)

    return apply


UFUNCS[erf] = sigmoid(erf, lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x))
_logistic = sigmoid(activations.sigmoid, lambda x: expit(x) * expit(-x))


@rule(FUNCTIONS, activations.sigmoid)
def _sigmoid(x):
    """1/(1 + e^{−x}) is 0 where e^{−x} overflows, which is where the result is subnormal."""
    z = _logistic(x)
    lost = np.where(z.value < modulus(np.zeros(())), flushed(), 0.0)
    return Tracked(z.value, z.errors + lost[..., None])


FUNCTIONS[np.diag] = structural(np.diag)
# constants beside tracked arrays have no errors: they stay arrays of NumPy (`like`, NEP 35)
FUNCTIONS |= {make: make for make in (np.arange, np.asarray, np.eye, np.ones, np.zeros)}


@rule(FUNCTIONS, reals)
def _reals(x):
    """The error of a complex number bounds those of both parts."""
    parts = None if x.parts is None else np.repeat(x.parts, 2, axis=-1)
    return Tracked(reals(x.value), np.repeat(x.errors, 2, axis=-2), parts)


@rule(FUNCTIONS, complexes)
def _complexes(x):
    """The error of a complex number is the modulus of those of both parts."""
    errors = np.hypot(x.errors[..., ::2, :], x.errors[..., 1::2, :])
    parts = None if x.parts is None else np.hypot(x.parts[..., ::2], x.parts[..., 1::2])
    return Tracked(complexes(x.value), errors, parts)


@rule(FUNCTIONS, np.split)
def _split(x, places, axis=0):
    parts = np.split(np.arange(x.shape[axis]), places)
    return [moved(lambda a, p=p: np.take(a, p, axis=axis), x) for p in parts]


@rule(FUNCTIONS, np.ones_like)
def _ones_like(x):
    return Tracked(np.ones_like(x.value))


@rule(FUNCTIONS, np.fft.ifft)
def _ifft(x):
    """The mean of the errors of all nodes, and log2(2l) ‖z‖₂ of the transform itself."""
    z, count = np.fft.ifft(x.value), max(1, x.shape[-1])
    made = np.log2(2 * count) * length_of(z)[..., None]
    met(np.abs(z))
    return _everywhere(z, x.errors.sum(-2) / count + made)


@rule(FUNCTIONS, convolution)
def _convolution(u, k):
    """3 √log2(2l) ‖u‖₂ ‖k‖₂ of the computed arguments, and the errors of both arguments."""
    u, k = lifted(u), lifted(k)
    z, length = convolution(u.value, k.value), max(1, u.shape[-1])
    wide, others = spread(u), spread(k)  # of a value far below its error, the error is transformed
    sizes = np.sqrt((wide**2).sum(-2)) * np.sqrt((others**2).sum(-2))
    made = TRANSFORMS * np.sqrt(np.log2(2 * length)) * sizes
    met(made)
    own, direct = _everywhere(z, made), CAUSAL_CONVOLUTION_DIRECT.reference
    carried = [
        direct(u.errors[..., g], np.abs(k.value)) + direct(wide[..., g], k.errors[..., g])
        for g in (0, 1)
    ]
    return Tracked(z, own.errors + np.stack(carried, axis=-1))


@rule(FUNCTIONS, cascade_response)
def _cascade_response(h, dt, *, l):
    """As for a kernel alone: the mean error of its spectrum, and log2(2l) ‖K‖₂."""
    h, dt = lifted(h), lifted(dt)
    K, made = cascade_response(h.value, dt.value, l=l), kernel_spectrum(h, dt, l=l)
    mean = made.errors.sum(-2) / max(1, made.shape[-1])
    transform = np.log2(2 * max(1, l)) * length_of(K)
    met(np.abs(K))
    return _everywhere(K, mean + transform[..., None])


def _everywhere(value, errors) -> Tracked:
    """`value` with the same errors (…, 2) at each place of its last axis."""
    return Tracked(value, np.broadcast_to(errors[..., None, :], (*value.shape, 2)).copy())


@rule(FUNCTIONS, activations.clip_vjp)
def _clip_vjp(dy, x, low, high):
    """Beside a limit, within the error of what is clipped, the gradient is right or off by all."""
    dy, x = lifted(dy), lifted(x)
    gap = np.minimum(np.abs(x.value - low), np.abs(x.value - high))
    undecided = (x.errors > 0) & (x.errors >= jumped(gap)[..., None])
    jump = jumped(np.abs(dy.value))[..., None]
    z = activations.clip_vjp(dy.value, x.value, low, high)
    outside = np.broadcast_to((x.value < low) | (x.value > high), z.shape)[..., None]
    errors = np.where(outside, 0, dy.errors)
    return Tracked(z, np.where(undecided, np.maximum(errors, dy.errors + jump), errors))
