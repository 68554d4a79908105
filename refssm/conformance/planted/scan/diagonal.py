"""Planted bugs in diagonal systems: states, matrices, conjugate pairs, two directions."""

import numpy as np

from refssm.conformance.planted.planting_old import Planting
from refssm.conformance.planted.scan.diagonal_states import (
    FROM,
    FROM_COMPLEX,
    LAST,
    LAST_COMPLEX,
    STATES,
    VARYING,
    built,
    output,
)
from refssm.conformance.planted.scan.diagonal_vjp import plant_gradients
from refssm.scan import (
    DIAGONAL_SSM,
    DIAGONAL_SSM_BIDIRECTIONAL,
    DIAGONAL_SSM_REAL,
    DIAGONAL_SSM_REAL_STATEFUL,
    DIAGONAL_SSM_STATEFUL,
    DIAGONAL_SSM_VARYING,
    DIAGONAL_SSM_VARYING_STATEFUL,
)


def _plant_states(p: Planting) -> None:
    bugs = STATES | (VARYING if "varying" in p.op.name else {})
    stateful = p.op.name.endswith("_stateful")
    for name, (what, states) in (bugs | (FROM if stateful else {})).items():
        p.forward(name, what)(built(p.op, states=states))
    for name, (what, states) in (FROM_COMPLEX if stateful else {}).items():
        p.forward(name, what, dtype="complex64")(built(p.op, states=states))
    for name, (what, last) in (LAST if stateful else {}).items():
        p.forward(name, what, "state")(built(p.op, last=last))
    for name, (what, last) in (LAST_COMPLEX if stateful else {}).items():
        p.forward(name, what, "state", "complex64")(built(p.op, last=last))


def _turned_if_square(M):
    return M.mT if M.shape[-1] == M.shape[-2] else M


def _plant_matrices(p: Planting) -> None:
    """Arguments exchanged or changed, the rest of the call as it was."""

    def given(name, what, dtype="", caught_by="", **changes):
        def wrong(*args):
            named = dict(zip(p.op.inputs, args, strict=True))
            return p.right(*(changes.get(n, np.asarray)(x) for n, x in named.items()))

        p.forward(name, what, caught_by, dtype)(wrong)

    given("skip_forgotten", "D taken as zero", D=lambda D: 0 * D)
    given("skip_diagonal", "D taken as diagonal", D=lambda D: D * np.eye(*D.shape[-2:], dtype="f4"))
    given("skip_transposed", "Dᵀ where D is square", D=_turned_if_square)
    given("input_transposed", "Bᵀ where B is square", B=_turned_if_square)
    if p.op is not DIAGONAL_SSM_BIDIRECTIONAL:
        given("output_transposed", "Cᵀ where C is square", C=_turned_if_square)
    given("one_output_row", "the first row of C for all outputs", C=lambda C: 0 * C + C[..., :1, :])
    given("channels_reversed", "the input channels in reverse order", B=lambda B: B[..., ::-1])
    for name, what in {"a": "the decay", "B": "the input matrix", "C": "the output matrix"}.items():
        given(f"{name}_conjugated", f"{what} conjugated", "complex64", **{name: np.conj})
    if p.op is DIAGONAL_SSM_BIDIRECTIONAL:
        return  # there NaN does reach everything
    p.forward("nan_spread", "masked by multiplication: 0 · NaN reaches the past", "nan")(
        built(p.op, read=lambda C, x, D, u, real: output(C, x, D, u + 0 * _total(u), real))
    )


def _total(u):
    return u.sum(axis=-2, keepdims=True)


def _plant_pairs(p: Planting) -> None:
    """The factor 2 of conjugate pairs."""

    def read(name, what, wrong, dtype=""):
        p.forward(name, what, dtype=dtype)(
            built(p.op, read=lambda C, x, D, u, real: wrong(x @ C.mT, u @ D.mT))
        )

    read("pairs_once", "Re(C x), without the factor 2", lambda y, skip: y.real + skip)
    read("pairs_twice", "4 Re(C x)", lambda y, skip: 4 * y.real + skip)
    read("skip_doubled", "2 (Re(C x) + D u)", lambda y, skip: 2 * (y.real + skip))
    read("modulus", "2 |C x|", lambda y, skip: 2 * np.abs(y) + skip)
    read("imaginary", "2 Im(C x)", lambda y, skip: 2 * y.imag + skip, "complex64")

    @p.forward("imaginary_kept", "2 C x + D u, complex", dtype="complex64")
    def _(a, B, C, D, u, *x0):
        y = p.right(a, B, C, D, u, *x0)
        turned = p.right(a, B, -1j * C, 0 * D, u, *x0)
        return (y[0] + 1j * turned[0], y[1]) if x0 else y + 1j * turned

    @p.forward("real_modes_once", "no factor 2 for modes on the real axis")
    def _(a, B, C, D, u, *x0):
        paired = np.where(a.imag == 0, 0.5, 1).astype(a.real.dtype)
        return p.right(a, B, C * paired[..., None, :], D, u, *x0)

    if p.op is DIAGONAL_SSM_REAL_STATEFUL:
        p.forward("state_doubled", "the last state doubled as y is", "state")(
            built(p.op, last=lambda x, a, b, x0: 2 * x[..., -1, :])
        )


def _plant_directions(p: Planting) -> None:
    """The backward scan at the wrong lag, half or place."""

    def halves(name, what, wrong):
        def read(C, x, D, u, real):
            n = x.shape[-1] // 2
            return wrong(C[..., :n], C[..., n:], x[..., :n], x[..., n:]) + u @ D.mT

        p.forward(name, what)(built(p.op, read=read))

    def later(x):
        return np.concatenate([x[..., 1:, :], 0 * x[..., :1, :]], axis=-2)

    halves(
        "backward_from_next",
        "the backward scan one step late: z_{k+1} read for z_k",
        lambda C, E, x, z: x @ C.mT + later(z) @ E.mT,
    )
    halves(
        "halves_exchanged",
        "the halves of C exchanged",
        lambda C, E, x, z: x @ E.mT + z @ C.mT,
    )
    halves(
        "not_turned_back",
        "the backward half not reversed back in time",
        lambda C, E, x, z: x @ C.mT + z[..., ::-1, :] @ E.mT,
    )
    halves(
        "forward_only", "the backward half left out", lambda C, E, x, z: x @ C.mT + 0 * z[..., :1]
    )
    halves("past_twice", "the past read by both halves", lambda C, E, x, z: x @ (C + E).mT)
    halves("averaged", "the mean of both directions", lambda C, E, x, z: (x @ C.mT + z @ E.mT) / 2)


DEVIATIONS = []
for _op in (
    DIAGONAL_SSM,
    DIAGONAL_SSM_STATEFUL,
    DIAGONAL_SSM_VARYING,
    DIAGONAL_SSM_VARYING_STATEFUL,
    DIAGONAL_SSM_REAL,
    DIAGONAL_SSM_REAL_STATEFUL,
    DIAGONAL_SSM_BIDIRECTIONAL,
):
    _p = Planting(_op, "float32")
    _p.usual()
    _plant_states(_p)
    _plant_matrices(_p)
    if "real" in _op.name:
        _plant_pairs(_p)
    if _op is DIAGONAL_SSM_BIDIRECTIONAL:
        _plant_directions(_p)
    plant_gradients(_p)
    DEVIATIONS += _p.bugs
