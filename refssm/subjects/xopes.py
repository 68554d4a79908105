# pyright: reportMissingImports=false
"""xopes' lightning attention with decays of heads or keys, in PyTorch and by Triton's kernels.

Its tests compare the kernels with the functions in PyTorch. The kernels run in Triton's
interpreter. `lasd_parallel_triton` is left out: it writes `and` between masks, of which the
interpreter takes the second alone.
"""

from types import SimpleNamespace
from typing import Any

from refssm.subjects import triton_interpreter
from refssm.subjects.clones import module
from refssm.testing import implements

H = "(g h)"
LAST, STATE, TURNED = f"b l {H} p", f"b {H} n p", f"b {H} p n"
BY_HEAD = f"b l {H} p, b l {H}, b l g n, b l g n, {TURNED} -> {LAST}, {TURNED}"
BY_KEY = f"b l g n, b l g n, b l {H} p, b l {H} n, {STATE} -> {LAST}, {STATE}"
DELTA = f"b l g n, b l g n, b l {H} p, b l {H} n, b l {H}, {STATE} -> {LAST}, {STATE}"
DECLARED: dict[str, Any] = {"framework": "torch", "vjp": True, "dtypes": ("float32",)}
KEYED = {
    **dict.fromkeys(("q", "k"), "b g 1 l n"),
    "v": "b g h l p",
    "log_g": "b g h l n",
    "S0": "b g h n p",
}
short = triton_interpreter.few(KEYED, b=2, g=2, h=2, l=70)
short_ssd = triton_interpreter.few(triton_interpreter.SSD, b=2, g=2, h=2, l=70)


def one_multiprocessor():
    """What it asks a card for when it is imported."""
    from triton.runtime import driver

    of_card = SimpleNamespace(get_device_properties=lambda _: {"multiprocessor_count": 1})
    driver.set_active(SimpleNamespace(utils=of_card))


def theirs(dotted: str):
    """A module of theirs; it stays, because its functions import others when they are called."""
    return module("xopes", f"xopes.ops.lightning_attn.{dotted}", stays=True)


one_multiprocessor()
scalar, vector = theirs("scalar_decay"), theirs("vector_decay")
delta = theirs("delta_decay.ladd_torch")


def of_heads(v, *shared):
    """What heads of values share, for each of them."""
    return (x.repeat_interleave(v.shape[2] // x.shape[2], 2) for x in shared)


def by_head(scan, x, log_a, B, C, S0):
    """q, k, v, ld of a scan with a decay for each head; its states are keys by values."""
    k, q = of_heads(x, B, C)
    y, S = scan(q=q, k=k, v=x, ld=log_a, initial_state=S0.mT.contiguous())
    return y, S.mT


def by_key(scan, q, k, v, log_g, S0):
    """q, k, v, ldk of a scan with a decay for each key."""
    q, k = of_heads(v, q, k)
    return scan(q=q, k=k, v=v, ldk=log_g, initial_state=S0)


@implements("ssd_recurrent_stateful", layout=BY_HEAD, **DECLARED)
def scalar_torch(x, log_a, B, C, S0):
    """lasd_torch from a state."""
    return by_head(scalar.lasd_torch, x, log_a, B, C, S0)


@implements("ssd_recurrent_stateful", layout=BY_HEAD, only=short_ssd, **DECLARED)
def scalar_recurrence_triton(x, log_a, B, C, S0):
    """lasd_recurrence_triton from a state."""
    return by_head(scalar.lasd_recurrence_triton, x, log_a, B, C, S0)


@implements("gated_linear_recurrence_stateful", layout=BY_KEY, **DECLARED)
def vector_torch(q, k, v, log_g, S0):
    """lavd_torch from a state."""
    return by_key(vector.lavd_torch, q, k, v, log_g, S0)


@implements("gated_linear_recurrence_stateful", layout=BY_KEY, only=short, **DECLARED)
def vector_recurrence_triton(q, k, v, log_g, S0):
    """lavd_recurrence_triton from a state."""
    return by_key(vector.lavd_recurrence_triton, q, k, v, log_g, S0)


@implements("gated_linear_recurrence_stateful", layout=BY_KEY, only=short, **DECLARED)
def vector_parallel_triton(q, k, v, log_g, S0):
    """lavd_parallel_triton from a state."""
    return by_key(vector.lavd_parallel_triton, q, k, v, log_g, S0)


@implements("kimi_delta_rule_stateful", layout=DELTA, **DECLARED)
def delta_torch(q, k, v, log_g, beta, S0):
    """ladd_torch from a state."""
    q, k = of_heads(v, q, k)
    return delta.ladd_torch(q, k, v, log_g, beta, S0)
