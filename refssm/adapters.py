"""Adapters: a candidate that takes other parameters than the operator is judged with its own.

A kernel that takes log dt cannot be handed log dt for a given dt: the rounding of the logarithm
would count as its error. With `adapters=(log_dt(),)` the case is drawn in the kernel's parameter θ
and rounded there, and the operator is judged at dt = e^θ, exactly; its gradient is the one by θ.

    log_dt         dt = e^θ
    neg_exp        Re A = −e^(Re θ), Im A = Im θ
    neg_softplus   Re A = −log(1 + e^(Re θ)), Im A = Im θ
    halves         (θ, θ̄) along the axis of modes: one mode of each conjugate pair is stored, and
                   the outputs are real
    dt_and_A       dt x and log_a = dt A, from x, steps dt and one rate A for each head

The following ones are conventions of recurrences with gates. Where a function is wrong, the judge
looks for the one of them in which it is right (`refssm.conformance.diagnosis.convention`).

    linear_gate    log_g = log θ: the gate itself
    base_2         log_g = θ log 2: the gate's logarithm in base 2
    log_sigmoid    log_g = −log(1 + e^−θ): the gate before its logistic function
    sigmoid        beta = 1/(1 + e^−θ)
    scaled         q = θ/√n: the function divides by the root of the number of keys; with `by`
                   q = by θ: it multiplies by this number
    normalised     k = θ/√(Σ θ² + ε): the function divides by the norm
    oldest_first   taps in reversed order: the last one is of the newest input
    transposed     the transpose of a state, first and last
"""

import math
from dataclasses import dataclass

__all__ = [
    "base_2",
    "dt_and_A",
    "halves",
    "linear_gate",
    "log_dt",
    "log_sigmoid",
    "neg_exp",
    "neg_softplus",
    "normalised",
    "oldest_first",
    "scaled",
    "sigmoid",
    "transposed",
]

PAIRS, STEPS, STATE, NORM_OF_ROWS = "halves", "dt_and_A", "transposed", "normalised"


# the parameter θ by the argument x, as reports write it; of complex numbers the second text
IN_WORDS = {
    "log_dt": ("log {}", "log {}"),
    "neg_exp": ("log(−{})", "log(−Re {0}) + i Im {0}"),
    "neg_softplus": ("log(e^(−{}) − 1)", "log(e^(−Re {0}) − 1) + i Im {0}"),
    "linear_gate": ("e^{}", "e^{}"),
    "base_2": ("{}/log 2", "{}/log 2"),
    "log_sigmoid": ("logit(e^{})", "logit(e^{})"),
    "sigmoid": ("logit({})", "logit({})"),
    "scaled": ("√n {}", "√n {}"),
    NORM_OF_ROWS: ("{} before its norm", "{} before its norm"),
    "oldest_first": ("{}, the oldest first", "{}, the oldest first"),
    STATE: ("{} transposed", "{} transposed"),
}


@dataclass(frozen=True)
class Adapter:
    """A parametrisation, and the argument that has it; "" where several have."""

    name: str
    argument: str = ""
    eps: float = 0.0  # what a norm has below its root
    by: float = 0.0  # the factor of a scale; 0 is 1/√n

    def __str__(self):
        return f"{self.name}({self.argument}{self._numbers})"

    def __repr__(self):
        argument = f"{self.argument!r}{self._numbers}" if self.argument else ""
        return f"{self.name}({argument})"

    def in_words(self, argument: str, complex_numbers: bool) -> str:
        """The parameter that stands in place of an argument, for reports: "log(−w)"."""
        texts = IN_WORDS.get(self.name) if argument == self.argument else None
        texts = (f"{{}}/{self.by:g}",) * 2 if texts and self.by else texts
        return texts[complex_numbers].format(argument) if texts else argument

    @property
    def number(self) -> float:
        """The number of the parametrisation, ε or a factor; 0 if it has none."""
        return self.eps or self.by

    @property
    def _numbers(self) -> str:
        told = f", eps={self.eps:g}" if self.eps else ""
        return told + (f", by={self.by:.9g}" if self.by else "")


def log_dt(argument: str = "dt") -> Adapter:
    """The function takes θ = log dt in place of `dt`."""
    return Adapter("log_dt", argument)


def neg_exp(argument: str = "A") -> Adapter:
    """The function takes θ with Re A = −e^(Re θ), Im A = Im θ in place of `A`, or another argument.

    S4D passes `log_A_real` and `A_imag`: the real and imaginary part of θ.
    """
    return Adapter("neg_exp", argument)


def neg_softplus(argument: str = "A") -> Adapter:
    """The function takes θ with Re A = −log(1 + e^(Re θ)), Im A = Im θ in place of `A`."""
    return Adapter("neg_softplus", argument)


def halves() -> Adapter:
    """The function takes one mode of each conjugate pair, in all arguments with the axis n.

    The operator has the modes (w, w̄), (B, B̄), …; arguments without that axis are real, and so are
    the outputs. Operators that end in `_real` or `_pairs` need no adapter.
    """
    return Adapter(PAIRS)


def dt_and_A() -> Adapter:
    """The function takes (x, dt, A, …) where a form of SSD has (dt x, log_a = dt A, …).

    `dt` has the axes of `log_a`; `A` has those that are not time or the outermost batch axis: one
    number for each head. So Mamba-2's kernels are called. Other adapters come after this one, which
    makes the arguments that they change: (dt_and_A(), neg_exp("A")).
    """
    return Adapter(STEPS)


def linear_gate(argument: str = "log_g") -> Adapter:
    """The function takes the gate θ = e^{log_g}, more than 0, in place of its logarithm."""
    return Adapter("linear_gate", argument)


def base_2(argument: str = "log_g") -> Adapter:
    """The function takes θ = log_g / log 2: the gate is 2^θ."""
    return Adapter("base_2", argument)


def log_sigmoid(argument: str = "log_g") -> Adapter:
    """The function takes θ with log_g = log(1/(1 + e^−θ)), and makes the gate itself."""
    return Adapter("log_sigmoid", argument)


def sigmoid(argument: str = "beta") -> Adapter:
    """The function takes θ with β = 1/(1 + e^−θ)."""
    return Adapter("sigmoid", argument)


def scaled(argument: str = "q", by: float = 0.0) -> Adapter:
    """The function takes θ = √n q: it divides by √n itself, n the length of the last axis.

    With `by` it takes θ = q/by: it multiplies by this number.
    """
    if not math.isfinite(by):
        raise ValueError(f"scaled: `by` must be a finite number, got {by!r}")
    return Adapter("scaled", argument, by=float(by))


def normalised(argument: str = "k", eps: float = 1e-6) -> Adapter:
    """The function takes θ with k = θ/√(Σ θ² + ε), the sum along the last axis: it normalises."""
    if not eps > 0:
        raise ValueError(f"normalised: `eps` must be a number above 0, got {eps!r}")
    return Adapter(NORM_OF_ROWS, argument, float(eps))


def oldest_first(argument: str = "k") -> Adapter:
    """The function takes taps in the other order: the last one is of the newest input."""
    return Adapter("oldest_first", argument)


def transposed(argument: str = "S0") -> Adapter:
    """The function takes the transpose of a state: p × n where the operator has n × p.

    The states that it returns are transposed, too.
    """
    return Adapter(STATE, argument)
