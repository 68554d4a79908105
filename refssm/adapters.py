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
"""

from dataclasses import dataclass

__all__ = ["dt_and_A", "halves", "log_dt", "neg_exp", "neg_softplus"]

PAIRS, STEPS = "halves", "dt_and_A"


@dataclass(frozen=True)
class Adapter:
    """A parametrisation, and the argument that has it; "" where several have."""

    name: str
    argument: str = ""

    def __str__(self):
        return f"{self.name}({self.argument})"

    def __repr__(self):
        return f"{self.name}({self.argument!r})" if self.argument else f"{self.name}()"


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
