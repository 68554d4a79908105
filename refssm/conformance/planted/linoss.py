"""Planted bugs in oscillators: rows of the step, what is read, what is carried, gradients."""

import numpy as np

from refssm._declaration.recurrence import Recurrence
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import Planting, of_result
from refssm.conformance.planted.recurrences import (
    COMPLEX_LASTS,
    RESETS,
    complex_starts,
    lasts,
    starts,
)
from refssm.conformance.planted.scan.programs import late
from refssm.linoss import (
    IM,
    IMEX,
    explicit,
    explicit_slopes,
    implicit,
    implicit_slopes,
    puller,
    rows_of_each,
    runner,
)


def _old_velocity(A, dt):
    """y' = y + dt z with the velocity before, in the force of IM."""
    return rows_of_each(1 - dt * dt * A, -dt * A, dt, 1 + 0 * A, dt, 0 * dt)


def _forward_euler(A, dt):
    return rows_of_each(1 + 0 * dt * A, -dt * A, dt, 1 + 0 * A, dt, 0 * dt)


def _weighted(rows_of, z=1, y=1):
    """Other weights of the input."""

    def rows(A, dt):
        *M, of_z, of_y = np.moveaxis(rows_of(A, dt), -2, 0)
        return rows_of_each(*M, z * of_z, y * of_y)

    return rows


def _divided_by_dt(rows_of):
    """The input without the factor dt."""

    def rows(A, dt):
        *M, _, _ = np.moveaxis(rows_of(A, dt), -2, 0)
        return rows_of_each(*M, M[0] if rows_of is implicit else 1 + 0 * dt, M[2])

    return rows


def _negative(rows_of):
    return lambda A, dt: rows_of(-A, dt)


def _squared(rows_of):
    return lambda A, dt: rows_of(A * A, dt)


def _midpoint(A, dt):
    """Both with the mean of old and new: the trapezoidal rule."""
    half = dt / 2
    S = 1 / (1 + half * half * A)
    closed = (1 - half * half * A) * S
    return rows_of_each(closed, -dt * A * S, dt * S, closed, dt * S, dt * half * S)


def _position_without_dt(rows_of):
    """y' = y + z'."""

    def rows(A, dt):
        M11, M12, _, M22, of_z, _ = np.moveaxis(rows_of(A, dt), -2, 0)
        return rows_of_each(M11, M12, M11, M22, of_z, of_z)

    return rows


OF_IM = [
    ("other_variant", "−A y_{k−1} for −A y_k: linoss_imex", explicit),
    ("old_velocity", "y + dt z_{k−1} for y + dt z_k", _old_velocity),
    ("schur_without_square", "1/(1 + dt A) for 1/(1 + dt² A)", lambda A, dt: rows_of_each(
        *(lambda S: (S, -dt * A * S, dt * S, S, dt * S, dt * dt * S))(1 / (1 + dt * A)))),
    ("schur_missing_in_input", "(dt, dt²) B u: not divided by 1 + dt² A",
     lambda A, dt: rows_of_each(
        *np.moveaxis(implicit(A, dt)[..., :4, :], -2, 0), dt, dt * dt)),
    ("velocity_undamped", "z_k = z_{k−1} − …: the first entry 1", lambda A, dt: rows_of_each(
        1 + 0 * dt * A, *np.moveaxis(implicit(A, dt)[..., 1:, :], -2, 0))),
]  # fmt: skip
OF_IMEX = [
    ("other_variant", "−A y_k for −A y_{k−1}: linoss_im", implicit),
    ("old_velocity", "y + dt z_{k−1} for y + dt z_k: forward Euler", _forward_euler),
    ("last_row_without_square", "1 − dt A for 1 − dt² A", lambda A, dt: rows_of_each(
        *np.moveaxis(explicit(A, dt)[..., :3, :], -2, 0), 1 - dt * A, dt, dt * dt)),
    ("last_row_one", "1 for 1 − dt² A", lambda A, dt: rows_of_each(
        *np.moveaxis(explicit(A, dt)[..., :3, :], -2, 0), 1 + 0 * dt * A, dt, dt * dt)),
    ("sign_of_square", "1 + dt² A for 1 − dt² A", lambda A, dt: rows_of_each(
        *np.moveaxis(explicit(A, dt)[..., :3, :], -2, 0), 1 + dt * dt * A, dt, dt * dt)),
    ("stability_limited", "dt² A limited to 3.99", lambda A, dt: explicit(
        np.minimum(A, np.asarray(3.99, A.dtype) / np.maximum(dt * dt, 1e-12)).astype(A.dtype), dt)),
]  # fmt: skip


def _of_both(rows_of):
    """Bugs of the rows that both variants may have."""
    return [
        ("input_without_dt", "B u without its step dt", _divided_by_dt(rows_of)),
        ("input_not_in_position", "the newest input moves the velocity only",
         _weighted(rows_of, y=0)),
        ("input_not_in_velocity", "the input moves the position only", _weighted(rows_of, z=0)),
        ("input_halved", "half of the input's step in the position", _weighted(rows_of, y=0.5)),
        ("position_without_dt", "y_{k−1} + z_k without dt", _position_without_dt(rows_of)),
        ("midpoint", "means of old and new: the trapezoidal rule", _midpoint),
        ("spring_squared", "A² for A: A taken for a frequency", _squared(rows_of)),
        ("spring_pushes", "+A y for −A y", _negative(rows_of)),
    ]  # fmt: skip


def _scanned(keep=lambda x: x, carry=lambda x, k: x):
    """One step after the other with another kept state, or another carry."""

    def scan(M, F, x0, resets):
        kind, state = np.result_type(M, F, x0), x0
        batch = np.broadcast_shapes(
            M.shape[:-2], F.shape[:-3], x0.shape[:-2], resets.shape[:-1]
        )  # fmt: skip
        x = np.empty((*batch, *F.shape[-3:]), kind)
        for k in range(F.shape[-3]):
            state = carry(state, k)
            z, y = state[..., 0, :], state[..., 1, :]
            moved = np.stack([M[..., 0, :] * z + M[..., 1, :] * y,
                              M[..., 2, :] * z + M[..., 3, :] * y], axis=-2)  # fmt: skip
            moved = np.where(resets[..., k, None, None], 0, moved)
            x[..., k, :, :] = state = keep((moved + F[..., k, :, :]).astype(kind))
        return x

    return scan


def _lost(size):
    return _scanned(carry=lambda x, k: x * (k == 0 or k % size != 0))


SCANS = [
    ("state_in_bfloat16", "the state kept in bfloat16", _scanned(keep=bfloat16)),
    ("state_in_float16", "the state kept in float16", _scanned(keep=float16)),
    ("carry_lost_64", "the state lost at blocks of 64", _lost(64)),
    ("carry_lost_256", "the state lost at blocks of 256", _lost(256)),
    ("velocity_lost_64", "the velocity lost at blocks of 64", _scanned(
        carry=lambda x, k: x * np.array([k == 0 or k % 64 != 0, True])[:, None])),
]  # fmt: skip


def _instead(program):
    return lambda right, *arguments: program(*arguments)


def _quietly(function):
    def quiet(*arguments):
        with np.errstate(all="ignore"):
            return function(*arguments)

    return quiet


def _programs(recurrence: Recurrence, run, back, of_vjp=False):
    """The functions of each operator, by its name, from `run` and `back`."""
    pairs = recurrence.mirrors(run, back, lambda op: lambda f: f)
    return {
        op.name: _instead(_quietly(pair.vjp if of_vjp else pair.forward))
        for op, pair in zip(recurrence.operators, pairs, strict=True)
    }


def _swapped(x):
    """Positions, then velocities."""
    return x[..., ::-1, :].copy()


def _of_first(x):
    return np.broadcast_to(x[..., :1], x.shape)


ARGUMENTS = [
    ("dt_shared", "the first oscillator's dt for all", {"dt": _of_first}),
    ("A_shared", "the first oscillator's A for all", {"A": _of_first}),
    ("A_and_dt_exchanged", "A and dt exchanged",
     lambda right, A, B, C, dt, *more: right(dt, B, C, A, *more)),
    ("dt_through_sigmoid", "σ(dt): it was after σ already",
     {"dt": lambda dt: 1 / (1 + np.exp(-dt))}),
    ("dt_in_bfloat16", "dt rounded to bfloat16", {"dt": bfloat16}),
    ("A_in_bfloat16", "A rounded to bfloat16", {"A": bfloat16}),
    ("input_sign", "B subtracted", {"B": np.negative}),
]  # fmt: skip
COMPLEX = [
    ("C_conjugate", "C* for C", {"C": np.conj}),
    ("B_conjugate", "B* for B", {"B": np.conj}),
    ("parts_apart", "Re C Re y: the imaginary parts dropped before the product",
     {"C": lambda C: C.real + 0 * C}),
    ("imaginary_part", "Im(C y) for Re(C y)", {"C": lambda C: -1j * C}),
]  # fmt: skip


def _output(change):
    """The outputs changed, not the state."""
    return of_result(lambda y, *x: (change(y), *x) if x else change(y))


OUTPUTS = [
    ("twice", "2 Re(C y), as for conjugate pairs", _output(lambda y: 2 * y)),
    ("modulus", "|Re(C y)|", _output(np.abs)),
]  # fmt: skip


def _slopes(slopes_of, by_A=lambda r: r, by_dt=lambda r: r):
    """Derivatives by A and dt, one or both wrong."""

    def slopes(A, dt):
        right = slopes_of(A, dt)
        return by_A(right[0]), by_dt(right[1])

    return slopes


def _without(*rows):
    mask = np.array([i not in rows for i in range(6)])[:, None]
    return lambda r: r * mask


def _of_slopes(slopes_of):
    return [
        ("ddt_of_matrix_only", "ddt without the weights of the input",
         _slopes(slopes_of, by_dt=_without(4, 5))),
        ("ddt_of_input_only", "ddt without the matrix",
         _slopes(slopes_of, by_dt=_without(0, 1, 2, 3))),
        ("dA_of_force_only", "dA through −dt A alone",
         _slopes(slopes_of, by_A=_without(0, 2, 3, 4, 5))),
        ("dA_negative", "dA with the other sign", _slopes(slopes_of, by_A=np.negative)),
        ("ddt_missing", "ddt = 0", _slopes(slopes_of, by_dt=lambda r: 0 * r)),
    ]  # fmt: skip


GRADIENTS = [
    ("dB_in_float16", "dB rounded to float16", {"B": float16}),
    ("dC_negative", "dC with the other sign", {"C": np.negative}),
    ("du_missing", "du = 0", {"u": lambda g: 0 * g}),
    ("A_and_dt_exchanged", "dA and ddt exchanged", lambda right, *given: (
        lambda g: (g[3], *g[1:3], g[0], *g[4:]))(right(*given))),
]  # fmt: skip
COMPLEX_GRADIENTS = [
    ("dB_not_conjugated", "dB*", {"B": np.conj}),
    ("dC_not_conjugated", "dC*", {"C": np.conj}),
]  # fmt: skip


def _planted(recurrence, rows_of, slopes_of, own) -> list:
    """All bugs of one variant."""
    right_back, plantings = puller(rows_of, slopes_of), {}
    for op in recurrence.operators:
        plantings[op.name] = p = Planting(op, "float32")
        p.usual()
        p.plant(*ARGUMENTS, *OUTPUTS)
        p.plant(*COMPLEX, by="value[complex64]")
        p.plant(*GRADIENTS, by="gradient")
        p.plant(*COMPLEX_GRADIENTS, by="gradient[complex64]")
    for name, what, rows in (*own, *_of_both(rows_of)):
        for op, program in _programs(recurrence, runner(rows), right_back).items():
            plantings[op].plant((name, what, program))
    for name, what, scan in SCANS:
        made = _programs(recurrence, runner(rows_of, scan), right_back)
        for op, program in made.items():
            if not op.endswith("_step") or name.startswith("state_"):
                plantings[op].plant((name, what, program))
    for name, what, slopes in _of_slopes(slopes_of):
        back = puller(rows_of, slopes)
        for op, vjp in _programs(recurrence, runner(rows_of), back, of_vjp=True).items():
            plantings[op].plant((name, what, vjp), by="gradient")
    constant = puller(rows_of, slopes_of, _scanned(carry=lambda x, k: 0 * x))
    for op, vjp in _programs(recurrence, runner(rows_of), constant, of_vjp=True).items():
        if not op.endswith("_step"):
            what = "neither states nor cotangents carried from one step to the next"
            plantings[op].plant(("carry_constant", what, vjp), by="gradient")
    _of_states(recurrence, plantings)
    return [bug for planting in plantings.values() for bug in planting.bugs]


def _of_states(recurrence, plantings) -> None:
    """Bugs of first and last states, and of resets."""
    plain, stateful, packed, step = (plantings[op.name] for op in recurrence.operators)
    for planting, name, check in ((stateful, "x0", "state"), (step, "x", "value")):
        planting.plant(*starts(name, core=2))
        planting.plant(*complex_starts(name), by="value[complex64]")
        planting.plant(("start_swapped", "the state read as (y, z)", {name: _swapped}))
        ending = of_result(lambda y, x: (y, _swapped(x)))
        planting.plant(("last_swapped", "the state returned as (y, z)", ending),
                       *lasts(core=2), by=check)  # fmt: skip
        planting.plant(*COMPLEX_LASTS, by=f"{check}[complex64]")
        planting.plant(("start_missing", "no gradient of the state", {name: lambda g: 0 * g}),
                       ("last_dropped", "the last state has no gradient",
                        {f"d{planting.op.outputs[1]}": lambda g: 0 * g}),
                       by="gradient")  # fmt: skip
    packed.plant(*RESETS)
    for planting in (plain, stateful, packed):
        planting.plant(("input_late", "u_{k−1} for u_k", {"u": late}))
        planting.plant(("nan_spread", "masked by multiplication: 0 · NaN reaches the past",
                        {"u": lambda u: u + 0 * u.sum(axis=-2, keepdims=True)}),
                       by="nan")  # fmt: skip


BUGS = [
    *_planted(IM, implicit, implicit_slopes, OF_IM),
    *_planted(IMEX, explicit, explicit_slopes, OF_IMEX),
]
BUGS.sort(key=lambda bug: (bug.op, bug.caught_by))
