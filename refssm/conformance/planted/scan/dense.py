"""Planted bugs in recurrences with a matrix, each written for a scan from x0, in both operators."""

import numpy as np

from refssm.broadcasting import unbroadcast_each
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting_old import Planting
from refssm.scan import DENSE_SCAN, DENSE_SCAN_FROM


def applied(A, x):
    """A x."""
    return np.einsum("...ij,...j->...i", A, x)


def stepwise(step, A, b, x0):
    """x_k = step(k, A, x_{k-1}, b_k) from x0."""
    batch = np.broadcast_shapes(A.shape[:-2], b.shape[:-2], x0.shape[:-1])
    x = np.empty((*batch, *b.shape[-2:]), np.result_type(A, b, x0))
    state = np.broadcast_to(x0, x[..., 0, :].shape).astype(x.dtype)
    for k in range(x.shape[-2]):
        x[..., k, :] = state = step(k, A, state, b[..., k, :])
    return x


def following(k, A, x, b_k):
    """The step without a bug; a state of zeros at the start is not multiplied."""
    return applied(A, x) + b_k if k or x.any() else b_k + x


def right(A, b, x0):
    """The scan without a bug."""
    return stepwise(following, A, b, x0)


def _lost(size):
    return lambda k, A, x, b_k: following(k, A, 0 * x if k and k % size == 0 else x, b_k)


def _in_tree(combined):
    """Hillis and Steele's scan, whose matrices of unlike spans are combined by `combined`."""

    def scan(A, b, x0):
        x = b.astype(np.result_type(A, b, x0))
        x[..., 0, :] += applied(A, x0)
        maps = np.broadcast_to(A[..., None, :, :], (*x.shape, x.shape[-1])).astype(x.dtype)
        step = 1
        while step < x.shape[-2]:
            late, early = maps[..., step:, :, :].copy(), maps[..., :-step, :, :].copy()
            x[..., step:, :], maps[..., step:, :, :] = combined(
                late, early, x[..., step:, :].copy(), x[..., :-step, :].copy()
            )
            step *= 2
        return x

    return scan


def _wrong_way(late, early, x_late, x_early):
    return applied(early, x_late) + x_early, early @ late


def _transposed(late, early, x_late, x_early):
    return applied(late, x_early) + x_late, (late @ early).mT


def _elementwise(late, early, x_late, x_early):
    return applied(late, x_early) + x_late, late * early


def _exclusive(A, b, x0):
    x = right(A, b, x0)
    start = np.broadcast_to(x0[..., None, :], x[..., :1, :].shape)
    return np.concatenate([start, x[..., :-1, :]], axis=-2)


def _late(b):
    return np.concatenate([0 * b[..., :1, :], b[..., :-1, :]], axis=-2)


def _lower(A):
    return np.tril(A).astype(A.dtype)


def by_step(step):
    """A whole scan from one step."""
    return lambda A, b, x0: stepwise(step, A, b, x0)


def with_matrix(change):
    """The right scan with another matrix."""
    return lambda A, b, x0: right(change(A), b, x0)


FORWARD = {
    "transposed": ("Aᵀ for A", with_matrix(lambda A: A.mT)),
    "diagonal": ("the diagonal of A", with_matrix(lambda A: A * np.eye(A.shape[-1], dtype="f4"))),
    "lower_triangle": ("the lower triangle of A", with_matrix(_lower)),
    "squared": ("A² for A", with_matrix(lambda A: A @ A)),
    "matrix_of_first_batch": (
        "the first member's matrix for the batch",
        with_matrix(lambda A: np.broadcast_to(A[:1], A.shape) if A.ndim > 2 else A),
    ),
    "sign": ("b subtracted", by_step(lambda k, A, x, b_k: applied(A, x) - b_k)),
    "input_too": ("A (x + b)", by_step(lambda k, A, x, b_k: applied(A, x + b_k))),
    "elementwise": (
        "the diagonal of A times x, entry by entry, and its first row besides",
        by_step(lambda k, A, x, b_k: A[..., 0, :] * x + b_k),
    ),
    "state_forgotten": ("x_k = b_k", by_step(lambda k, A, x, b_k: b_k + 0 * applied(A, x))),
    "exclusive": ("x_{k-1} returned for x_k", _exclusive),
    "input_late": ("b_{k-1} in place of b_k", lambda A, b, x0: right(A, _late(b), x0)),
    "backwards": (
        "scanned from the end",
        lambda A, b, x0: right(A, b[..., ::-1, :], x0)[..., ::-1, :].copy(),
    ),
    "carry_lost_16": ("the carry lost at chunks of 16", by_step(_lost(16))),
    "carry_lost_64": ("the carry lost at chunks of 64", by_step(_lost(64))),
    "carry_lost_256": ("the carry lost at chunks of 256", by_step(_lost(256))),
    "carry_undecayed": (
        "the carry of a chunk of 16 added without A",
        by_step(lambda k, A, x, b_k: (x if k and k % 16 == 0 else applied(A, x)) + b_k),
    ),
    "combined_wrong_way": ("the affine maps combined in the wrong order", _in_tree(_wrong_way)),
    "combined_transposed": ("the product of two maps transposed", _in_tree(_transposed)),
    "combined_elementwise": ("A ∘ A for A²", _in_tree(_elementwise)),
    "state_in_bfloat16": (
        "the state kept in bfloat16",
        by_step(lambda *step: bfloat16(following(*step))),
    ),
    "symmetrized": ("the symmetric part of A", with_matrix(lambda A: (A + A.mT) / 2)),
    "shrunk": (
        "A times 1 − 1e-4, for safety",
        with_matrix(lambda A: A * A.real.dtype.type(1 - 1e-4)),
    ),
}
COMPLEX = {
    "conjugate": ("A* for A", with_matrix(np.conj)),
    "hermitian": ("Aᴴ for A", with_matrix(lambda A: A.mT.conj())),
}
FROM = {
    "start_dropped": ("x0 taken as zero", lambda A, b, x0: right(A, b, 0 * x0)),
    "start_undecayed": (
        "x_0 = x0 + b_0",
        by_step(lambda k, A, x, b_k: (applied(A, x) if k else x) + b_k),
    ),
    "start_ignored_in_batch_of_one": (
        "x0 taken as zero where the batch is 1",
        lambda A, b, x0: right(A, b, x0 * (x0.shape[0] != 1) if x0.ndim > 1 else x0),
    ),
    "start_every_step": (
        "A x0 added at every step",
        lambda A, b, x0: right(A, b + applied(A, x0)[..., None, :], 0 * x0),
    ),
    "start_in_half": ("x0 rounded to float16", lambda A, b, x0: right(A, b, float16(x0))),
}


def adjoint(A):
    """Aᴴ."""
    return A.mT.conj()


def same(A):
    """A itself."""
    return A


def back(
    dx, A, b, x0, *, through=adjoint, before=1, conj=np.conj, forget=0, cast=None, turned=False
):
    """The adjoint with its parts exchangeable."""
    x = DENSE_SCAN_FROM.reference(A, b, x0)
    start = np.broadcast_to(x0[..., None, :], x[..., :1, :].shape)
    states = np.concatenate([start, x], axis=-2)
    states = states[..., 1 - before : x.shape[-2] + 1 - before, :]
    g, carried = np.empty(x.shape, x.dtype), np.zeros_like(x[..., 0, :])
    for k in range(x.shape[-2] - 1, -1, -1):
        carried = 0 * carried if forget and (k + 1) % forget == 0 else carried
        g[..., k, :] = carried = dx[..., k, :] + carried
        carried = applied(through(A), carried)
        carried = cast(carried) if cast else carried
    dA = g.mT @ conj(states)
    return unbroadcast_each((dA.mT if turned else dA, g, carried), (A, b, x0))


def from_rest(scan):
    """What is written for a scan from x0, for one from rest: a forward function or a VJP."""

    def rested(*args):
        y = scan(*args, np.zeros_like(args[-1][..., 0, :]))
        return y[:2] if isinstance(y, tuple) else y

    return rested


GRADIENTS = {
    "not_transposed": ("A for Aᴴ in the adjoint", {"through": same}),
    "state_one_late": ("dA with x_k for x_{k-1}", {"before": 0}),
    "outer_product_turned": ("dA transposed: x g for g xᴴ", {"turned": True}),
    "carry_lost_64": ("the adjoint's carry lost at chunks of 64", {"forget": 64}),
    "recurrence_forgotten": ("db = dx", {"forget": 1}),
    "float16": ("the adjoint carried in float16", {"cast": float16}),
}
COMPLEX_GRADIENTS = {
    "only_transposed": ("Aᵀ for Aᴴ in the adjoint", {"through": lambda A: A.mT}),
    "only_conjugated": ("A* for Aᴴ in the adjoint", {"through": np.conj}),
    "state_not_conjugated": ("dA with xᵀ for xᴴ", {"conj": same}),
}


def _plant(p: Planting, adapted) -> None:
    for name, (what, scan) in FORWARD.items():
        p.forward(name, what)(adapted(scan))
    for name, (what, scan) in COMPLEX.items():
        p.forward(name, what, dtype="complex64")(adapted(scan))
    p.forward("nan_spread", "0 · NaN of the future reaches the past", "nan")(
        adapted(lambda A, b, x0: right(A, b + 0 * b.sum(axis=-2, keepdims=True), x0))
    )
    for table, dtype in ((GRADIENTS, ""), (COMPLEX_GRADIENTS, "complex64")):
        for name, (what, how) in table.items():
            p.gradient(name, what, dtype)(adapted(lambda *args, how=how: back(*args, **how)))
    p.changed_gradient("sign", "db with the other sign", b=lambda g, _: -g)


REST, FROM_STATE = Planting(DENSE_SCAN, "float32"), Planting(DENSE_SCAN_FROM, "float32")
REST.usual()
_plant(REST, from_rest)
FROM_STATE.usual()
_plant(FROM_STATE, same)
for _name, (_what, _scan) in FROM.items():
    FROM_STATE.forward(_name, _what)(_scan)
FROM_STATE.changed_gradient("start_missing", "dx0 = 0", x0=lambda g, _: 0 * g)
FROM_STATE.gradient("start_undecayed", "dx0 = g_0")(
    lambda dx, A, b, x0: (*(r := back(dx, A, b, x0))[:2], np.array(r[1][..., 0, :]))
)
FROM_STATE.gradient("start_ignored", "dA without g_0 x0ᴴ")(
    lambda dx, A, b, x0: (back(dx, A, b, 0 * x0)[0], *back(dx, A, b, x0)[1:])
)
FROM_STATE.gradient("start_not_conjugated", "dx0 = Aᵀ g_0", "complex64")(
    lambda dx, A, b, x0: (*(r := back(dx, A, b, x0))[:2], _plain(A, r[1], x0))
)


def _plain(A, db, x0):
    """Aᵀ g_0, as real as x0."""
    return unbroadcast_each([applied(A.mT, db[..., 0, :])], [x0])[0]


DEVIATIONS = [*REST.bugs, *FROM_STATE.bugs]
