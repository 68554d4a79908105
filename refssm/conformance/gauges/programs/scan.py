"""Programs of scans: with a matrix, and with one decay per step.

Scans with a matrix, and their gradients, go by steps, doubled, or in blocks of time. Those with
decays are the definition, and the formulas of `gauges/cumulated/` in three ways: `BY_STEPS`,
`DOUBLED` and `IN_BLOCKS` multiply decays. `ROUNDED` goes by steps and rounds e^{log a} of all
steps to the same side: decays that are the same at each step have the same error, which counts as
often as there are steps. Short cases are left to the derived bound, which adds the errors of few
steps; so are cases whose states would take much memory.
"""

from collections.abc import Callable
from math import ceil, sqrt

import numpy as np

from refssm._declaration.operator import Operator
from refssm.catalog import named
from refssm.conformance.gauges.cumulated import FORMS, forms_of
from refssm.conformance.gauges.cumulated.sums import Way
from refssm.conformance.gauges.programs.arithmetic import adjoint, product, times, to_one_side
from refssm.scan.dense import DENSE_SCAN, DENSE_SCAN_FROM


def dense_doubled(A, b):
    """x_k = Σ_j A^j b_{k−j}: the sums of 2m terms from those of m."""
    x, power, shift = b.mT, A, 1  # time is the last axis
    while shift < b.shape[-2]:
        before = np.concatenate([np.zeros_like(x[..., :shift]), x[..., :-shift]], axis=-1)
        x, power, shift = x + product(power, before), product(power, power), 2 * shift
    return x.mT


def dense_in_blocks(A, b):
    """Blocks of time from rest, side by side; then the state before each block is added."""
    l, n = b.shape[-2:]
    if l == 0:
        return None
    m = max(1, ceil(sqrt(l)))
    count = -(-l // m)
    padded = np.concatenate([b, np.zeros((*b.shape[:-2], count * m - l, n), b.dtype)], axis=-2)
    x = _stepped(A[..., None, :, :], padded.reshape(*b.shape[:-2], count, m, n))
    powers = [A]
    for _ in range(m - 1):
        powers.append(product(A, powers[-1]))
    state, blocks = x[..., 0, -1, :], [x[..., 0, :, :]]
    for j in range(1, count):
        carried = np.stack([times(power, state) for power in powers], axis=-2)
        blocks.append(x[..., j, :, :] + carried)
        state = blocks[-1][..., -1, :]
    return np.concatenate(blocks, axis=-2)[..., :l, :]


def _stepped(A, b):
    x = [b[..., 0, :]]
    for k in range(1, b.shape[-2]):
        x.append(times(A, x[-1]) + b[..., k, :])
    return np.stack(x, axis=-2)


def from_rest(scan):
    """The same scan from a state: A x0 is part of the first input."""

    def scan_from(A, b, x0):
        if b.shape[-2] == 0:
            return None
        return scan(
            A, np.concatenate([b[..., :1, :] + times(A, x0)[..., None, :], b[..., 1:, :]], -2)
        )

    return scan_from


def gradients(scan):
    """g = scan(Aᴴ, dx) backwards;  dA = Σ_{k>0} g_k x_{k−1}ᴴ,  db = g."""

    def vjp(dx, A, b):
        g, x = _costates(scan, dx, A), scan(A, b)
        if x is None or g is None:
            return None
        return product(g[..., 1:, :].mT, x[..., :-1, :].conj()), g

    return vjp


def gradients_from(scan):
    """As `gradients`, with x_{−1} = x0 and dx0 = Aᴴ g_0."""

    def vjp(dx, A, b, x0):
        g, x = _costates(scan, dx, A), from_rest(scan)(A, b, x0)
        if x is None or g is None:
            return None
        before = np.concatenate([x0[..., None, :], x[..., :-1, :]], axis=-2)
        return product(g.mT, before.conj()), g, times(adjoint(A), g[..., 0, :])

    return vjp


def _costates(scan, dx, A):
    g = scan(adjoint(A), np.flip(dx, axis=-2))
    return None if g is None else np.flip(g, axis=-2)


DENSE_OUTPUTS = {
    DENSE_SCAN.name: {
        "by_steps": DENSE_SCAN.reference,
        "doubled": dense_doubled,
        "in_blocks": dense_in_blocks,
    },
    DENSE_SCAN_FROM.name: {
        "by_steps": DENSE_SCAN_FROM.reference,
        "doubled": from_rest(dense_doubled),
        "in_blocks": from_rest(dense_in_blocks),
    },
}
DENSE_GRADIENTS = {
    DENSE_SCAN.name: {
        "by_steps": DENSE_SCAN.bare_vjp,
        "doubled": gradients(dense_doubled),
        "in_blocks": gradients(dense_in_blocks),
    },
    DENSE_SCAN_FROM.name: {
        "by_steps": DENSE_SCAN_FROM.bare_vjp,
        "doubled": gradients_from(dense_doubled),
        "in_blocks": gradients_from(dense_in_blocks),
    },
}


# Runs: x_0 = b_0, x_t = a_t x_{t−1} + b_t along the last axis but one, so a_0 is not used


def by_steps(a, b):
    """The recurrence."""
    x = [b[..., 0, :]]
    for t in range(1, b.shape[-2]):
        x.append(a[..., t, :] * x[-1] + b[..., t, :])
    return np.stack(x, axis=-2)


def doubled(a, b):
    """Sums of 2m terms from those of m: the associative scan."""
    shift = 1
    while shift < b.shape[-2]:
        b = np.concatenate(
            [b[..., :shift, :], b[..., shift:, :] + a[..., shift:, :] * b[..., :-shift, :]], axis=-2
        )
        a = np.concatenate([a[..., :shift, :], a[..., shift:, :] * a[..., :-shift, :]], axis=-2)
        shift *= 2
    return b


def in_blocks(a, b):
    """Blocks side by side from rest; then the state before each block times products of decays."""
    l = b.shape[-2]
    m = ceil(sqrt(l))
    count = -(-l // m)
    a, b = (_cut(array, count, m) for array in (a, b))
    x, decays = by_steps(a, b), np.cumprod(a, axis=-2)
    blocks = [x[..., 0, :, :]]
    for j in range(1, count):
        before = blocks[-1][..., -1:, :]
        blocks.append(x[..., j, :, :] + decays[..., j, :, :] * before)
    return np.concatenate(blocks, axis=-2)[..., :l, :]


def _cut(a, count, m):
    """(…, l, n) as (…, count, m, n), with zeros at the end."""
    more = np.zeros((*a.shape[:-2], count * m - a.shape[-2], a.shape[-1]), a.dtype)
    whole = np.concatenate([a, more], axis=-2)
    return whole.reshape(*a.shape[:-2], count, m, a.shape[-1])


def way_of(run, exp=np.exp) -> Way:
    """The way that adds with `run`, and takes decays of logarithms by `exp`."""

    def scanned(a, b, x0, first):
        return run(_after_one(_kept(a, first)), _joined(x0, b))

    def scanned_back(d, a, b, x0, first):
        da, g = costates(d, a, scanned(a, b, x0, first), first)
        return da, g[..., 1:, :], g[..., 0, :]

    def costates(d, a, x, first):
        """g_t = d_t + a*_{t+1} g_{t+1}, from t = −1 on, and the cotangents x*_{t−1} g_t of a_t."""
        kept = _after_one(np.flip(_kept(a, first).conj(), axis=-2))
        ended = _joined(np.zeros_like(d[..., 0, :]), d)
        g = np.flip(run(kept, np.flip(ended, axis=-2)), axis=-2)
        return _kept(x[..., :-1, :].conj() * g[..., 1:, :], first), g

    def states(log_a, b, x0, first):
        return scanned(exp(log_a), b, x0, first)

    def pulled_back(d, log_a, b, x, first):
        del b
        a = exp(log_a)
        da, g = costates(d, a, x, first)
        dlog_a = a.conj() * da
        return g, dlog_a.sum(-1, keepdims=True) if a.shape[-1] == 1 else dlog_a

    return Way(scanned, scanned_back, states, pulled_back)


def _kept(a, first):
    """0 where a sequence begins."""
    return np.where(first[..., None], 0, a)


def _after_one(a):
    return np.concatenate([np.ones_like(a[..., :1, :]), a], axis=-2)


def _joined(x0, b):
    """x0, then b, along time."""
    x0 = np.broadcast_to(x0[..., None, :], (*b.shape[:-2], 1, b.shape[-1]))
    return np.concatenate([x0, b], axis=-2)


def _rounded(log_a):
    wider = np.exp(log_a.astype(np.result_type(log_a, np.float64)))
    return to_one_side(wider, log_a.dtype)


BY_STEPS, DOUBLED, IN_BLOCKS = way_of(by_steps), way_of(doubled), way_of(in_blocks)
ROUNDED = way_of(by_steps, _rounded)


SHORT = 64  # steps
MOST = 2**25  # states at all times, on all copies
WAYS = {"by_steps": BY_STEPS, "doubled": DOUBLED, "in_blocks": IN_BLOCKS}
QUADRATIC = ("ssd_quadratic",)  # whose definition takes as long as all else of a case
GIVEN = ("linear_scan", "diagonal_ssm_varying")  # operators whose decays need no exponential


def _operator(name: str) -> Operator:
    op = named(name)
    assert op is not None
    return op


def _fitting(op: Operator, program: Callable, cotangents: int = 0) -> Callable:
    """The program, which declines cases that are short or large."""

    def taken(*arrays, **sizes):
        core = op.sizes(*arrays[cotangents:], **sizes)
        batch = arrays[-1].ndim - len(op.input_dims[-1])
        states = np.prod([*arrays[-1].shape[:batch], core["l"], core.get("n", 1), core.get("p", 1)])
        if core["l"] <= SHORT or states > MOST:
            return None
        return program(*arrays, **sizes)

    return taken


def _of(ways: dict, gradient: bool) -> dict[str, dict[str, Callable]]:
    """By operator and way, its programs or those of its VJP."""
    found: dict[str, dict[str, Callable]] = {name: {} for name in FORMS}
    for way, scans in ways.items():
        for name, form in forms_of(scans).items():
            op = _operator(name)
            program, given = (form.vjp, len(op.outputs)) if gradient else (form.forward, 0)
            found[name][way] = _fitting(op, program, given)
    return found


def _defined(gradient: bool) -> dict[str, dict[str, Callable]]:
    """The definition and the ways of each operator."""
    found = _of(WAYS, gradient)
    for name in found.keys() - {*QUADRATIC}:
        op = _operator(name)
        program, given = (op.bare_vjp, len(op.outputs)) if gradient else (op.reference, 0)
        found[name]["defined"] = _fitting(op, program, given)
    return found


def _of_logarithms(programs: dict) -> dict:
    """Those whose decays are exponentials."""
    return {name: made for name, made in programs.items() if not name.startswith(GIVEN)}


OUTPUTS = {**DENSE_OUTPUTS, **_defined(gradient=False)}
GRADIENTS = {**DENSE_GRADIENTS, **_defined(gradient=True)}
AGAIN_OUTPUTS = _of_logarithms(_of({"rounded": ROUNDED}, gradient=False))
AGAIN_GRADIENTS = _of_logarithms(_of({"rounded": ROUNDED}, gradient=True))
