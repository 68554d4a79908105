"""Numba mirrors of refssm.linear_attention: one kernel for each direction, with β or without.

RWKV-6 is that without β, whose queries come one step late, and a product for the current step.
Gradients go block by block of √l steps, from the last to the first [chen2016training].
"""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import blocks, joined
from refssm.jit._compiling.mirror import mirror
from refssm.jit.linear_attention.kernels import delta_back, delta_scan, linear_back, linear_scan
from refssm.linear_attention.delta import DELTA
from refssm.linear_attention.gated_delta import GATED_DELTA
from refssm.linear_attention.gated_linear import GATED_LINEAR
from refssm.linear_attention.kimi import KIMI
from refssm.linear_attention.reads_first import ReadsFirst
from refssm.linear_attention.rwkv6 import RWKV6_RECURRENCE
from refssm.linear_attention.sweep import gates_keys
from refssm.scan.blocks import no_resets


class Kernels:
    """`run` and `back` of one recurrence."""

    def __init__(self, scan, scan_back, names: tuple[str, ...], keyed: bool):
        self.scan, self.scan_back, self.names, self.keyed = scan, scan_back, names, keyed

    def run(self, arguments, S0, resets):
        """All outputs, and the last state."""
        given, S0, resets = self._completed(arguments, S0, resets)
        kind = np.result_type(*arguments, S0)
        y, S = self.scan(*given, S0, resets)
        of_state = np.result_type(*arguments[1:], S0)  # q does not enter the state
        return y.astype(kind, copy=False), S.astype(of_state, copy=False)

    def back(self, cotangents, arguments, S0, resets):
        """Gradients for the arguments and S0."""
        given, start, begun = self._completed(arguments, S0, resets)
        dy, dS = (*cotangents, np.zeros_like(start))[:2]
        timed = [2, 2, 2, 2, 1][: len(given)]

        def cut(w):
            pairs = zip(given, timed, strict=True)
            return [x[..., w, :] if rank == 2 else x[..., w] for x, rank in pairs]

        def after(w, S):
            return self.scan(*cut(w), S, begun[..., w])[1]

        pieces = []
        for w, S in blocks(after, start, dy.shape[-2]):
            *parts, dS = self.scan_back(dy[..., w, :], dS, *cut(w), S, begun[..., w])
            pieces.append([x if rank == 2 else x[..., None] for x, rank in
                           zip(parts, timed, strict=True)])  # fmt: skip
        found = dict(zip(("q", "k", "v", "log_g", "beta"), joined(pieces, -2), strict=False))
        if not self.keyed:
            found["log_g"] = found["log_g"][..., 0]
        if "beta" in found:
            found["beta"] = found["beta"][..., 0]
        gradients = (*(found[name] for name in self.names), dS)
        return unbroadcast_each(gradients, (*arguments, start if S0 is None else S0))

    def _completed(self, arguments, S0, resets):
        """The kernel's arguments, the first state and the resets."""
        told = dict(zip(self.names, arguments, strict=True))
        k, v = told["k"], told["v"]
        log_g = told.get("log_g", np.zeros(k.shape[:-1], k.dtype))
        told["log_g"] = log_g if self.keyed else log_g[..., None]
        rest = np.zeros((k.shape[-1], v.shape[-1]), k.dtype)
        resets = no_resets(k.shape[-2]) if resets is None else resets
        given = [told[name] for name in ("q", "k", "v", "log_g", "beta") if name in told]
        return given, rest if S0 is None else S0, resets


class KernelsReadingFirst(Kernels):
    """The same for a recurrence that reads before it writes."""

    def run(self, arguments, S0, resets):
        """All outputs, and the last state."""
        return ReadsFirst(super().run, super().back).run(arguments, S0, resets)

    def back(self, cotangents, arguments, S0, resets):
        """Gradients for the arguments and S0."""
        return ReadsFirst(super().run, super().back).back(cotangents, arguments, S0, resets)


def kernels_of(recurrence) -> Kernels:
    """`run` and `back` of a recurrence, by its arguments."""
    names = tuple(recurrence.inputs)
    kernels = (delta_scan, delta_back) if "beta" in names else (linear_scan, linear_back)
    return Kernels(*kernels, names, gates_keys(recurrence.operators[0]))


def _mirrors(recurrence):
    made = kernels_of(recurrence)
    return recurrence.mirrors(made.run, made.back, mirror)


(
    (gated_linear_recurrence, gated_linear_recurrence_vjp),
    (gated_linear_recurrence_stateful, gated_linear_recurrence_stateful_vjp),
    (gated_linear_recurrence_packed, gated_linear_recurrence_packed_vjp),
    (gated_linear_recurrence_packed_stateful, gated_linear_recurrence_packed_stateful_vjp),
    (gated_linear_recurrence_states, gated_linear_recurrence_states_vjp),
    (gated_linear_step, gated_linear_step_vjp),
) = _mirrors(GATED_LINEAR)
_FIRST = KernelsReadingFirst(linear_scan, linear_back, tuple(GATED_LINEAR.inputs), keyed=True)
(
    (rwkv6, rwkv6_vjp),
    (rwkv6_stateful, rwkv6_stateful_vjp),
    (rwkv6_packed, rwkv6_packed_vjp),
    (rwkv6_packed_stateful, rwkv6_packed_stateful_vjp),
    (rwkv6_states, rwkv6_states_vjp),
    (rwkv6_step, rwkv6_step_vjp),
) = RWKV6_RECURRENCE.mirrors(_FIRST.run, _FIRST.back, mirror)
(
    (delta_rule, delta_rule_vjp),
    (delta_rule_stateful, delta_rule_stateful_vjp),
    (delta_rule_packed, delta_rule_packed_vjp),
    (delta_rule_packed_stateful, delta_rule_packed_stateful_vjp),
    (delta_rule_states, delta_rule_states_vjp),
    (delta_step, delta_step_vjp),
) = _mirrors(DELTA)
(
    (gated_delta_rule, gated_delta_rule_vjp),
    (gated_delta_rule_stateful, gated_delta_rule_stateful_vjp),
    (gated_delta_rule_packed, gated_delta_rule_packed_vjp),
    (gated_delta_rule_packed_stateful, gated_delta_rule_packed_stateful_vjp),
    (gated_delta_rule_states, gated_delta_rule_states_vjp),
    (gated_delta_step, gated_delta_step_vjp),
) = _mirrors(GATED_DELTA)
(
    (kimi_delta_rule, kimi_delta_rule_vjp),
    (kimi_delta_rule_stateful, kimi_delta_rule_stateful_vjp),
    (kimi_delta_rule_packed, kimi_delta_rule_packed_vjp),
    (kimi_delta_rule_packed_stateful, kimi_delta_rule_packed_stateful_vjp),
    (kimi_delta_rule_states, kimi_delta_rule_states_vjp),
    (kimi_delta_step, kimi_delta_step_vjp),
) = _mirrors(KIMI)
