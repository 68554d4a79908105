"""Oracles for refssm.linoss: the equations of a step, solved for the new position."""

from mpmath import mp

from refssm.oracle.building.recurrence import forms


def _driven(B, u):
    return [mp.fsum(b * v for b, v in zip(row, u, strict=True)) for row in B]


def _read(C, y):
    return [mp.fsum(c * v for c, v in zip(row, y, strict=True)).real for row in C]


def linoss_im_step(A, B, C, dt, u, x):
    """y' = y + dt z', z' = z + dt (−A y' + B u): y' (1 + dt² A) = y + dt (z + dt B u)."""
    new = []
    for a, h, v, z, y in zip(A, dt, _driven(B, u), *x, strict=True):
        position = (y + h * (z + h * v)) / (1 + h * h * a)
        new.append((z + h * (v - a * position), position))
    z, y = ([pair[i] for pair in new] for i in (0, 1))
    return _read(C, y), [z, y]


def linoss_imex_step(A, B, C, dt, u, x):
    """z' = z + dt (−A y + B u), y' = y + dt z'."""
    given = zip(A, dt, _driven(B, u), *x, strict=True)
    z, y = [], []
    for a, h, v, z_n, y_n in given:
        z.append(z_n + h * (v - a * y_n))
        y.append(y_n + h * z[-1])
    return _read(C, y), [z, y]


def _rest(A, B, C, dt, u):
    return [[0] * len(A), [0] * len(A)]


linoss_im, linoss_im_stateful, linoss_im_packed, *_ = forms(linoss_im_step, "00001", _rest)
linoss_imex, linoss_imex_stateful, linoss_imex_packed, *_ = forms(linoss_imex_step, "00001", _rest)
