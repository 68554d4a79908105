"""Answers to the exercises of docs/learn/nplr.md."""

import numpy as np


def normal_legs(*, n):
    i = np.arange(n)
    r = np.sqrt(2 * i + 1)
    return np.outer(r, r) / 2 * np.sign(i - i[:, None]) - np.eye(n) / 2


def nplr_legs(*, n):
    i = np.arange(n)
    w, V = np.linalg.eigh(1j * (normal_legs(n=n) + np.eye(n) / 2))
    P = V.conj().T @ np.sqrt(i + 0.5)
    return -0.5 - 1j * w, P[:, None], V.conj().T @ np.sqrt(2.0 * i + 1), V


def block_diagonal(*, n, blocks):
    w, _, _, V = nplr_legs(n=n // blocks)
    return np.tile(w, blocks), np.kron(np.eye(blocks), V)
