"""How many operations an operator is, by its formula: one table.

An operation is a real addition or multiplication; an exponential, a logarithm and a division count
as one. A complex multiplication and addition together are 8. Faster methods may need fewer, so a
share of the machine's rate may be above one. The VJP counts three times the forward call: that
call again, and a product for each of two factors. What has no formula here has no column.
"""

from collections.abc import Callable, Mapping
from math import log2, prod

from refssm.bench.work.sizes import Size

VJP = 3
Letters = Mapping[str, float]
Formula = Callable[[Letters, int], float]  # of the letters, and 4 if complex, else 1


def _ssd(x: Letters, c: int) -> float:
    """Half of two q×q tiles a chunk, the states of each chunk and what they give."""
    return c * x["l"] * (x["chunk"] * (x["n"] + x["p"]) + 4 * x["n"] * x["p"])


def _delta(x: Letters, c: int) -> float:
    """Half of four c×c tiles a chunk: two of scores, the system, what queries see of it; and three
    products with the state."""
    return c * x["l"] * (2 * x["chunk"] * (x["n"] + x["p"]) + 6 * x["n"] * x["p"])


def _selective(x: Letters, c: int) -> float:
    """dt A, its exponential, times x; (dt u) B, plus; C x, plus."""
    return c * x["l"] * (7 * x["n"] + 1)


def _transform(l: float) -> float:
    """One complex FFT."""
    return 5 * l * log2(max(l, 2))


def _convolved(x: Letters, c: int) -> float:
    """Three transforms of twice the length; real ones are half of complex ones."""
    return (3 * _transform(2 * x["l"]) / 2 + 6 * x["l"]) * (2 if c == 4 else 1)


def _resolvents(x: Letters) -> float:
    return 8 * x["l"] * x["n"] + _transform(x["l"])


_FORMULAS: dict[str, Formula] = {
    "vandermonde_kernel": lambda x, c: 2 * c * x["l"] * x["n"],
    "vandermonde_kernel_real": lambda x, c: (4 if c == 4 else 2) * x["l"] * x["n"],
    "resolvent_at_roots": lambda x, c: _resolvents(x),
    "cauchy_kernel": lambda x, c: 16 * x["l"] * x["n"],
    "dplr_kernel": lambda x, c: (1 + x["r"]) ** 2 * _resolvents(x) + _transform(x["l"]),
    "dplr_kernel_aliased": lambda x, c: (1 + x["r"]) ** 2 * _resolvents(x) + _transform(x["l"]),
    "krylov_kernel": lambda x, c: 2 * c * x["l"] * x["n"] * (x["n"] + 1),
    "linear_scan": lambda x, c: 2 * c * x["l"] * x["n"],
    "linear_scan_from": lambda x, c: 2 * c * x["l"] * x["n"],
    "dense_scan": lambda x, c: 2 * c * x["l"] * x["n"] ** 2,
    "diagonal_ssm": lambda x, c: (
        2 * c * x["l"] * (x["n"] * (x["m"] + x["p"] + 1) + x["p"] * x["m"])
    ),
    "selective_scan": _selective,
    "mamba_scan": lambda x, c: _selective(x, c) + 10 * x["l"],
    "ssd_chunked": _ssd,
    "mamba2_scan": lambda x, c: _ssd({**x, "chunk": 64}, c) + x["l"] * (8 * x["p"] + 10),
    "ssd_recurrent": lambda x, c: 5 * c * x["l"] * x["n"] * x["p"],
    "gated_linear_recurrence": lambda x, c: 5 * x["l"] * x["n"] * x["p"],
    "rwkv6": lambda x, c: 5 * x["l"] * x["n"] * x["p"] + 3 * x["l"] * (x["n"] + x["p"]),
    "delta_rule": lambda x, c: 6 * x["l"] * x["n"] * x["p"],
    "gated_delta_rule": lambda x, c: 7 * x["l"] * x["n"] * x["p"],
    "kimi_delta_rule": lambda x, c: 7 * x["l"] * x["n"] * x["p"],
    "delta_dplr_chunked": lambda x, c: 9 * x["l"] * x["n"] * x["p"],
    "delta_dplr": lambda x, c: 9 * x["l"] * x["n"] * x["p"],
    "delta_rule_chunked": _delta,
    "gated_delta_rule_chunked": _delta,
    "kimi_delta_rule_chunked": _delta,
    "gated_linear_step": lambda x, c: 5 * x["n"] * x["p"],
    "rwkv6_step": lambda x, c: 5 * x["n"] * x["p"] + 3 * (x["n"] + x["p"]),
    "delta_step": lambda x, c: 6 * x["n"] * x["p"],
    "gated_delta_step": lambda x, c: 7 * x["n"] * x["p"],
    "kimi_delta_step": lambda x, c: 7 * x["n"] * x["p"],
    "delta_dplr_step": lambda x, c: 9 * x["n"] * x["p"],
    "mamba2_step": lambda x, c: 5 * x["n"] * x["p"] + 8 * x["p"] + 10,
    "short_convolution": lambda x, c: 2 * c * x["l"] * x["t"],
    "causal_conv1d": lambda x, c: c * x["l"] * (2 * x["t"] + 6),
    "rms_norm_gated": lambda x, c: 11 * x["n"],
    "gated_rms_norm": lambda x, c: 11 * x["n"],
    "l2_norm": lambda x, c: 3 * x["n"],
    "causal_convolution": _convolved,
    "causal_convolution_direct": lambda x, c: c * x["l"] ** 2,
    "hope_transfer": lambda x, c: 2 * c * x["l"] * x["n"],
}


def flops(name: str, size: Size, vjp: bool) -> float | None:
    """Operations of one call on all members of the batch; None without a formula."""
    formula = _FORMULAS.get(name)
    if formula is None:
        return None
    letters = {**size.core, **size.parameters}
    once = formula(letters, 4 if size.dtype.startswith("complex") else 1)
    return once * prod(size.batch.values()) * (VJP if vjp else 1)
