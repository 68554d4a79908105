"""Planted bugs in packed scans, where a sequence must not see the one before, and in one step."""

import numpy as np

from refssm.broadcasting import unbroadcast
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting_old import Planting
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_PACKED, LINEAR_STEP


def stepwise(step, a, b, resets):
    """x_k = step(k, a_k, x_{k-1}, b_k, r_k); nothing is before the first."""
    x = np.empty(np.broadcast_shapes(a.shape, b.shape), np.result_type(a, b))
    state = np.zeros_like(x[..., 0, :])
    for k in range(x.shape[-2]):
        first = resets[..., k, None] != 0
        x[..., k, :] = state = step(k, a[..., k, :], state, b[..., k, :], first)
    return x


def following(k, a_k, x, b_k, first):
    """The step without a bug; from rest it does not touch a_0."""
    return (np.where(first, 0, a_k * x) if k else 0) + b_k


def _moved(resets, by):
    """Flags earlier or later; a sequence still begins with the first step."""
    return np.roll(resets, by, axis=-1)


def _on_grid(resets, size, on=True):
    """The flags at multiples of `size` only, or only elsewhere."""
    at = np.arange(resets.shape[-1]) % size == 0
    return np.where(at if on else ~at, resets, False)


def _combined_flags_lost(a, b, resets):
    """Hillis and Steele's scan whose flags are not combined, only those of the last step seen."""
    a, x = (y.astype(np.result_type(a, b)) for y in np.broadcast_arrays(a, b))
    ended = np.broadcast_to(resets[..., None] != 0, x.shape)
    step = 1
    while step < x.shape[-2]:
        kept = np.where(ended[..., step:, :], 0, a[..., step:, :] * x[..., :-step, :])
        x[..., step:, :] = kept + x[..., step:, :]
        a[..., step:, :] = a[..., step:, :] * a[..., :-step, :]
        step *= 2
    return x


def _leaks_once(a, b, resets):
    """The second reset of a row is not seen."""
    count = np.cumsum(resets != 0, axis=-1)
    return LINEAR_SCAN_PACKED.reference(a, b, (resets != 0) & (count != 2))


def _plant_resets(p: Planting) -> None:
    right, wrong = p.right, p.forward
    wrong("reset_ignored", "no resets at all")(lambda a, b, r: LINEAR_SCAN.reference(a, b))
    wrong("reset_late", "the state forgotten one step after the reset")(
        lambda a, b, r: right(a, b, _moved(r, 1))
    )
    wrong("reset_early", "the state forgotten one step before the reset")(
        lambda a, b, r: right(a, b, _moved(r, -1))
    )
    for size in (16, 64):
        wrong(f"reset_lost_at_{size}", f"resets at multiples of {size} ignored")(
            lambda a, b, r, size=size: right(a, b, _on_grid(r, size, on=False))
        )
        wrong(f"reset_on_grid_{size}", f"resets seen only at multiples of {size}")(
            lambda a, b, r, size=size: right(a, b, _on_grid(r, size))
        )
    wrong("reset_of_chunk_start", "a chunk of 64 with a reset in it begins from rest")(
        lambda a, b, r: right(a, b, r | _chunk_with_reset(r))
    )
    wrong("leaks_once", "the second reset not seen")(_leaks_once)
    wrong("flags_not_combined", "an associative scan that sees the last step's flag only")(
        _combined_flags_lost
    )
    wrong("reset_of_first_batch", "the first row's resets for all")(
        lambda a, b, r: right(a, b, np.broadcast_to(r[:1], r.shape) if r.ndim > 1 else r)
    )
    wrong("input_dropped", "x_k = 0 at a reset")(
        lambda a, b, r: right(a, np.where(r[..., None], 0, b).astype(b.dtype), r)
    )
    wrong("first_dropped", "x_0 = 0 where the first step is flagged")(
        lambda a, b, r: right(a, _first_dropped(b, r), r)
    )
    wrong("input_decays", "the input decays at a reset")(
        lambda a, b, r: right(a, np.where(r[..., None], a * b, b), r)
    )
    wrong("flags_turned", "true where a sequence goes on")(lambda a, b, r: right(a, b, r == 0))
    wrong("half_forgotten", "the state halved at a reset")(
        lambda a, b, r: stepwise(
            lambda k, a_k, x, b_k, f: np.where(f, 0.5, 1).astype(x.dtype) * a_k * x + b_k, a, b, r
        )
    )


def _chunk_with_reset(resets):
    """True at the start of every chunk of 64 steps that has a reset in it."""
    starts = np.zeros_like(resets)
    for k in range(0, resets.shape[-1], 64):
        starts[..., k] = resets[..., k : k + 64].any(-1)
    return starts


def _first_dropped(b, resets):
    b = b.copy()
    b[..., 0, :] = np.where(resets[..., :1], 0, b[..., 0, :])
    return b


def _plant_scans(p: Planting) -> None:
    """Bugs of any scan, and NaN that crosses a reset."""
    right, wrong = p.right, p.forward
    wrong("nan_leaks", "a decay of zero in place of the reset: 0 · NaN is NaN", "nan")(
        lambda a, b, r: LINEAR_SCAN.reference(np.where(r[..., None], 0, a).astype(a.dtype), b)
    )
    wrong("masked_by_product", "the state times 0 at a reset: 0 · NaN is NaN", "nan")(
        lambda a, b, r: stepwise(
            lambda k, a_k, x, b_k, f: (a_k * (x * ~f) if k else 0) + b_k, a, b, r
        )
    )
    wrong("nan_spread", "0 · NaN of the future reaches the past", "nan")(
        lambda a, b, r: right(a, b + 0 * b.sum(axis=-2, keepdims=True), r)
    )
    wrong("carry_lost_64", "the carry lost at chunks of 64")(
        lambda a, b, r: right(a, b, r | (np.arange(r.shape[-1]) % 64 == 0))
    )
    wrong("decay_late", "a_{k-1} in place of a_k")(lambda a, b, r: right(np.roll(a, 1, -2), b, r))
    wrong("conjugate", "the decay conjugated", dtype="complex64")(
        lambda a, b, r: right(a.conj(), b, r)
    )
    wrong("backwards", "scanned from the end")(
        lambda a, b, r: right(a[..., ::-1, :], b[..., ::-1, :], r[..., ::-1])[..., ::-1, :].copy()
    )
    wrong("state_in_bfloat16", "the state kept in bfloat16")(
        lambda a, b, r: stepwise(lambda *step: bfloat16(following(*step)), a, b, r)
    )
    wrong("input_late", "b_{k-1} in place of b_k")(
        lambda a, b, r: right(a, np.concatenate([0 * b[..., :1, :], b[..., :-1, :]], -2), r)
    )


def _back(dx, a, b, resets, *, conj=np.conj, conj_x=np.conj, cut=True, cut_a=True, at=0, cast=None):
    """The adjoint; `cut` and `cut_a` say whether it, and da, stop at a reset, `at` steps later."""
    x = LINEAR_SCAN_PACKED.reference(a, b, resets)
    before = np.concatenate([0 * x[..., :1, :], x[..., :-1, :]], axis=-2)
    first, g = np.roll(resets, at, axis=-1)[..., None] != 0, np.empty(x.shape, x.dtype)
    carried = np.zeros_like(x[..., 0, :])
    for k in range(x.shape[-2] - 1, -1, -1):
        g[..., k, :] = carried = dx[..., k, :] + carried
        carried = conj(a[..., k, :]) * carried
        carried = np.where(first[..., k, :], 0, carried) if cut else carried
        carried = cast(carried) if cast else carried
    da = conj_x(before) * g
    da = np.where(resets[..., None], 0, da) if cut_a else da
    return unbroadcast(da, a), unbroadcast(g, b), None


def _plant_gradients(p: Planting) -> None:
    wrong = {
        "leaks": ("db goes on through a reset", {"cut": False}),
        "decay_leaks": ("da_k = x_{k-1}* g_k at a reset", {"cut_a": False}),
        "both_leak": ("no gradient cut", {"cut": False, "cut_a": False}),
        "cut_late": ("the adjoint cut one step after the reset", {"at": 1}),
        "cut_early": ("the adjoint cut one step before the reset", {"at": -1}),
        "float16": ("the adjoint carried in float16", {"cast": float16}),
    }
    for name, (what, how) in wrong.items():
        p.gradient(name, what)(lambda *args, how=how: _back(*args, **how))
    for name, part in {"decay": "conj", "state": "conj_x"}.items():
        p.gradient(f"{name}_not_conjugated", f"the {name} not conjugated", "complex64")(
            lambda *args, part=part: _back(*args, **{part: np.asarray})
        )
    p.changed_gradient("sign", "db with the other sign", b=lambda g, _: -g)


def _plant_usual(p: Planting) -> None:
    """`usual`, where a flag is kept out of the arithmetic."""
    p.usual()
    p.bugs = [bug for bug in p.bugs if bug.name != "writes_scratch"]

    @p.forward("writes_scratch", "an argument written to and restored", "readonly")
    def _(a, b, resets):
        a *= 1
        return p.right(a, b, resets)


def _plant_steps(p: Planting) -> None:
    right, wrong = p.right, p.forward
    wrong("decay_and_state_apart", "a + x + b")(lambda a, b, x: a + x + b)
    wrong("input_decays", "a (x + b)")(lambda a, b, x: a * (x + b))
    wrong("sign", "a x − b")(lambda a, b, x: a * x - b)
    wrong("exchanged", "b x + a: decay and input exchanged")(lambda a, b, x: right(b, a, x))
    wrong("state_and_input", "a b + x: state and input exchanged")(lambda a, b, x: right(a, x, b))
    wrong("state_forgotten", "b alone")(lambda a, b, x: b + 0 * a * x)
    wrong("not_updated", "the state as it was")(lambda a, b, x: x + 0 * a * b)
    wrong("negative_decay", "|a| in place of a")(
        lambda a, b, x: right(np.abs(a).astype(a.dtype), b, x)
    )
    wrong("conjugate", "the decay conjugated", dtype="complex64")(
        lambda a, b, x: right(a.conj(), b, x)
    )
    wrong("state_in_bfloat16", "the new state rounded to bfloat16")(
        lambda a, b, x: bfloat16(right(a, b, x))
    )
    wrong("state_in_half", "the state before rounded to float16")(
        lambda a, b, x: right(a, b, float16(x))
    )
    wrong("small_input_lost", "inputs below 1e-3 of the state dropped")(
        lambda a, b, x: right(a, np.where(np.abs(b) < 1e-3 * np.abs(x), 0, b).astype(b.dtype), x)
    )
    wrong("masked_by_product", "a x dropped where a is 0, NaN and all", "nan")(
        lambda a, b, x: np.where(a == 0, b, np.nan_to_num(a, nan=1) * x + b)
    )
    vjp = p.right_vjp
    p.gradient("exchanged", "da and dx exchanged")(lambda *args: vjp(*args)[::-1])
    p.gradient("decay_for_state", "da = a* dx'")(
        lambda d, a, b, x: (unbroadcast(a.conj() * d, a), *vjp(d, a, b, x)[1:])
    )
    p.gradient("decay_forgotten", "dx = dx'")(
        lambda d, a, b, x: (*vjp(d, a, b, x)[:2], unbroadcast(d + 0 * a, x))
    )
    for name in ("a", "x"):
        i = 0 if name == "a" else 2  # the other factor of what is not conjugated
        p.gradient(f"{name}_not_conjugated", f"{name} for {name}*", "complex64")(
            lambda d, *args, i=i: _unconjugated(vjp, d, args, 2 - i)
        )


def _unconjugated(vjp, d, args, i):
    """The gradient of argument i with its factor not conjugated."""
    gradients = list(vjp(d, *args))
    gradients[i] = unbroadcast(args[2 - i] * d, args[i])
    return tuple(gradients)


PACKED, STEP = Planting(LINEAR_SCAN_PACKED, "float32"), Planting(LINEAR_STEP, "float32")
_plant_usual(PACKED)
_plant_resets(PACKED)
_plant_scans(PACKED)
_plant_gradients(PACKED)
STEP.usual()
_plant_steps(STEP)
DEVIATIONS = [*PACKED.bugs, *STEP.bugs]
