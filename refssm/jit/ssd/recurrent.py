"""Numba mirrors of refssm.ssd.recurrent and .chunked: one kernel for each direction.

The kernels choose how many steps they take at once, so `chunk` changes nothing.
"""

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import in_kind_of, started
from refssm.jit._compiling.mirror import mirror
from refssm.jit.ssd.kernels import at_rest, pulled_back, scan
from refssm.ssd.chunked import CHUNKED
from refssm.ssd.recurrent import SSD


def _run(arguments, S0, resets, *, chunk=0):
    """All outputs, and the last state; C alone does not make the state complex."""
    del chunk
    x, log_a, B, C = arguments
    y, S = scan(x, log_a, B, C, *started(at_rest(x, B), S0, resets, x.shape[-2]))
    return y, in_kind_of(S, x, log_a, B, S0)


def _back(cotangents, arguments, S0, resets, *, chunk=0):
    del chunk
    x, log_a, B, C = arguments
    rest = at_rest(x, B)
    dy, dS = (*cotangents, rest)[:2]
    S0, resets = started(rest, S0, resets, x.shape[-2])
    gradients = pulled_back(dy, dS, x, log_a, B, C, S0, resets)
    return unbroadcast_each(gradients, (x, log_a, B, C, S0))


(
    (ssd_recurrent, ssd_recurrent_vjp),
    (ssd_recurrent_stateful, ssd_recurrent_stateful_vjp),
    (ssd_recurrent_packed, ssd_recurrent_packed_vjp),
    (ssd_recurrent_packed_stateful, ssd_recurrent_packed_stateful_vjp),
    (ssd_recurrent_states, ssd_recurrent_states_vjp),
    (ssd_recurrent_reversed, ssd_recurrent_reversed_vjp),
    (ssd_step, ssd_step_vjp),
) = SSD.mirrors(_run, _back, mirror)
(
    (ssd_chunked, ssd_chunked_vjp),
    (ssd_chunked_stateful, ssd_chunked_stateful_vjp),
    (ssd_chunked_packed, ssd_chunked_packed_vjp),
    (ssd_chunked_packed_stateful, ssd_chunked_packed_stateful_vjp),
    (ssd_chunked_states, ssd_chunked_states_vjp),
) = CHUNKED.mirrors(_run, _back, mirror)
