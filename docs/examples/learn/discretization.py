"""Answers to the exercises of docs/learn/discretization.md."""

import numpy as np


def phi1(z):
    small = np.abs(z) < np.sqrt(np.finfo(z.dtype).eps)
    at = np.where(small, 1, z)
    return np.where(small, 1 + z / 2, np.expm1(at) / at)


def discretize_diagonal_zoh(w, B, dt):
    z = dt * w
    return np.exp(z), (dt * phi1(z))[..., None] * B


def discretize_diagonal_bilinear(w, B, dt):
    h = dt * w / 2
    return (1 + h) / (1 - h), (dt / (1 - h))[..., None] * B


def discretize_bilinear(A, B, dt):
    dt = dt[..., None, None]
    eye = np.eye(A.shape[-1], dtype=A.dtype)
    left = eye - dt * A / 2
    return np.linalg.solve(left, eye + dt * A / 2), np.linalg.solve(left, dt * B)
