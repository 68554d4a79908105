"""CuPy mirrors of refssm.linear_attention: kernels for states and cotangents (`passes`).

For float16 and bfloat16 states inside are float32, rounded once at the end.
"""

from functools import partial

from refssm.linear_attention.delta import DELTA
from refssm.linear_attention.gated_delta import GATED_DELTA
from refssm.linear_attention.gated_linear import GATED_LINEAR
from refssm.linear_attention.kimi import KIMI
from refssm.linear_attention.rwkv6 import RWKV6_RECURRENCE
from refssm.linear_attention.sweep import gates_keys
from refssm_gpu._launching.arrays import in_type_of, namespace, unbroadcast_and_round
from refssm_gpu._launching.checked import WITH_HALVES, mirror
from refssm_gpu.linear_attention.passes import scan, scan_back
from refssm_gpu.linear_attention.reads_first import ReadsBefore

HALVES_TOO = partial(mirror, types=WITH_HALVES)


class _Passes:
    """`run` and `back` of one recurrence."""

    def __init__(self, names: tuple[str, ...], keyed: bool):
        self.names, self.keyed = names, keyed

    def run(self, arguments, S0, resets):
        """The outputs, and the last state if there is a first one."""
        y, S = scan(self._given(arguments, S0, resets))
        return (y,) if S0 is None else (y, in_type_of(S, *arguments[1:], S0))

    def back(self, cotangents, arguments, S0, resets):
        """Gradients for the arguments, and for S0 if there is one."""
        dy, *last = cotangents
        dS = last[0] if last else None
        if not dy.shape[-2]:
            return self._nothing(arguments, S0, dS)
        found = scan_back(dy, dS, self._given(arguments, S0, resets))
        if not self.keyed and "log_g" in self.names:
            found["log_g"] = found["log_g"][..., 0]
        primals = dict(zip(self.names, arguments, strict=True))
        primals |= {} if S0 is None else {"S0": S0}
        return unbroadcast_and_round([found[name] for name in primals], [*primals.values()])

    def _given(self, arguments, S0, resets):
        told = dict(zip(self.names, arguments, strict=True))
        log_g = told.get("log_g")
        if log_g is not None and not self.keyed:
            log_g = log_g[..., None]
        absent = {"log_g": log_g, "beta": told.get("beta"), "S0": S0, "resets": resets}
        return told | absent

    @staticmethod
    def _nothing(arguments, S0, dS):
        """The gradients of no step."""
        xp = namespace(*arguments)
        zeros = [xp.zeros(x.shape, dtype=x.dtype) for x in arguments]
        return (*zeros, *(() if S0 is None else unbroadcast_and_round((dS,), (S0,))))


def _mirrors(recurrence):
    made = _Passes(tuple(recurrence.inputs), gates_keys(recurrence.operators[0]))
    return recurrence.mirrors(made.run, made.back, HALVES_TOO)


(
    (gated_linear_recurrence, gated_linear_recurrence_vjp),
    (gated_linear_recurrence_stateful, gated_linear_recurrence_stateful_vjp),
    (gated_linear_recurrence_packed, gated_linear_recurrence_packed_vjp),
    (gated_linear_recurrence_packed_stateful, gated_linear_recurrence_packed_stateful_vjp),
    (gated_linear_recurrence_states, gated_linear_recurrence_states_vjp),
    (gated_linear_step, gated_linear_step_vjp),
) = _mirrors(GATED_LINEAR)
_FIRST = ReadsBefore(_Passes(tuple(GATED_LINEAR.inputs), keyed=True))
(
    (rwkv6, rwkv6_vjp),
    (rwkv6_stateful, rwkv6_stateful_vjp),
    (rwkv6_packed, rwkv6_packed_vjp),
    (rwkv6_packed_stateful, rwkv6_packed_stateful_vjp),
    (rwkv6_states, rwkv6_states_vjp),
    (rwkv6_step, rwkv6_step_vjp),
) = RWKV6_RECURRENCE.mirrors(_FIRST.run, _FIRST.back, HALVES_TOO)
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
